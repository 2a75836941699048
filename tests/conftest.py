"""Settings of every test."""

from __future__ import annotations

from hypothesis import settings

# Deadlines judge the machine, not the code: the suite runs on busy ones.
settings.register_profile("any-machine", deadline=None)
settings.load_profile("any-machine")
