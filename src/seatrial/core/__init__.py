"""What everything else agrees on: frozen models and pure rules; no files, no clock, no network."""
