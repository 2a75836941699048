"""Finding the recorder of the trial that code runs in, for frameworks that are joined once for a process.

A framework asks at every step; the context says who records, in tasks and threads that take it along. Behind a user's
function the recorder cannot exist before the framework is loaded, so the context holds a function that gives it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, Protocol, TypeVar

from seatrial.agents.leaving import let_out

__all__ = ["OnDemand", "Recording"]


class _Recorder(Protocol):
    def close(self) -> None: ...


R = TypeVar("R", bound=_Recorder)


class Recording(Generic[R]):
    """Who records what one framework does."""

    def __init__(self, name: str) -> None:
        self._give: ContextVar[Callable[[], R] | None] = ContextVar(name, default=None)

    def here(self) -> R | None:
        """The recorder of this context; None outside a trial."""
        give = self._give.get()
        return None if give is None else give()

    @contextmanager
    def by(self, give: Callable[[], R]) -> Iterator[None]:
        """What runs in here, in tasks and threads that take this context too, is told to `give()`.

        What left a tool as AgentLeft leaves here as what the tool raised.
        """
        outer = self._give.get()
        self._give.set(give)
        try:
            with let_out():
                yield
        finally:
            self._give.set(outer)

    @contextmanager
    def by_one_made_by(self, make: Callable[[], R]) -> Iterator[None]:
        """The same with a recorder that is made when the framework does something for the first time."""
        recorder = OnDemand(make)
        try:
            with self.by(recorder.get):
                yield
        finally:
            recorder.close()


class OnDemand(Generic[R]):
    """A recorder that is made when it is needed, once, from whichever thread."""

    def __init__(self, make: Callable[[], R]) -> None:
        self._make = make
        self._made: R | None = None
        self._lock = threading.Lock()

    def get(self) -> R:
        """The recorder."""
        with self._lock:
            if self._made is None:
                self._made = self._make()
            return self._made

    def close(self) -> None:
        """Let it say what became of what is still open, if there is one."""
        if self._made is not None:
            self._made.close()
