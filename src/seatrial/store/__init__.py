"""Run folders: the truth, kept as JSON lines."""
