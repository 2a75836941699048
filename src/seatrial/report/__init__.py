"""Showing results: rows, terminal, files. Nothing is computed here that a verdict rests on."""
