"""What surroundings raise: FixtureError when they broke, TrialOver when someone uses them too late."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["FixtureError", "TrialOver", "fixture_part"]


class FixtureError(Exception):
    """A trial's surroundings could not be made, observed or removed: the trial is invalid, nobody's failure."""


class TrialOver(BaseException):
    """The trial has ended, and something still runs in it (an agent that timed out, a forgotten thread).

    A BaseException, so that an agent's own `except Exception` does not let it go on acting.
    """


@contextmanager
def fixture_part(what: str) -> Iterator[None]:
    """What goes wrong inside is a FixtureError that says where."""
    try:
        yield
    except FixtureError as error:
        raise FixtureError(f"{what}: {error}") from error
    except (Exception, SystemExit) as error:
        raise FixtureError(f"{what}: {type(error).__name__}: {error}") from error
