"""The wiring behind every door: load, run, save. The Python API and the command line both go through it."""
