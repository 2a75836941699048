"""What surroundings raise: FixtureError when they broke, TrialOver when someone uses them too late.

Code of users (fixtures, observers, simulated users, graders) may raise anything, SystemExit and KeyboardInterrupt too,
and it stays that code's failure. The one exception that passes through is the harness's own cancellation.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.environment.cancelling import cancelled_by_us

__all__ = ["FixtureError", "TrialOver", "as_raised", "error_text", "fixture_part"]


_STOPPED = frozenset(
    f"{what} raised {kind}"
    for what in ("coroutine", "generator", "async generator")
    for kind in ("StopIteration", "StopAsyncIteration")
)
"""What Python says in place of an exception that would end an iteration."""


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
    except BaseException as error:
        if cancelled_by_us(error):
            raise
        raise FixtureError(f"{what}: {error_text(error)}") from error


def as_raised(error: BaseException) -> BaseException:
    """The exception that the user's code raised.

    Python does not let StopIteration out of a coroutine: what arrives is `RuntimeError: coroutine raised
    StopIteration` with the real one as its cause (PEP 479).
    """
    cause = error.__cause__
    if isinstance(cause, (StopIteration, StopAsyncIteration)) and type(error) is RuntimeError:
        return as_raised(cause) if str(error) in _STOPPED else error
    return error


def error_text(error: object) -> str:
    """`Type: message` of an exception; other things as text."""
    raised = as_raised(error) if isinstance(error, BaseException) else error
    try:
        return f"{type(raised).__name__}: {raised}" if isinstance(raised, BaseException) else str(raised)
    except Exception as broken:  # noqa: BLE001  an agent's own __str__ may raise anything
        return f"{type(raised).__name__} (its text raised {type(broken).__name__})"
