"""What surroundings raise: FixtureError when they broke, TrialOver when someone uses them too late."""

from __future__ import annotations

__all__ = ["FixtureError", "TrialOver"]


class FixtureError(Exception):
    """A trial's surroundings could not be made, observed or removed: the trial is invalid, nobody's failure."""


class TrialOver(BaseException):
    """The trial has ended, and something still runs in it (an agent that timed out, a forgotten thread).

    A BaseException, so that an agent's own `except Exception` does not let it go on acting.
    """
