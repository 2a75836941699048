"""Tests of the evaluation itself."""
