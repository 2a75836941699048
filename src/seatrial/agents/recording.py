"""Finding the recorder of the trial that code runs in, for frameworks that are joined once for a process.

A framework asks at every step; the context says who records, in tasks and threads that take it along. Behind a user's
function nobody knows which framework will run, or whether one is loaded at all, so there a recorder is made when its
framework asks for the first time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, Protocol, TypeVar

from seatrial.agents.leaving import let_out
from seatrial.environment.trial import TrialEnvironment
from seatrial.registry import load_object

__all__ = ["HIDDEN", "Hidden", "Recording"]


class _Recorder(Protocol):
    def close(self) -> None: ...


R = TypeVar("R", bound=_Recorder)


class Recording(Generic[R]):
    """Who records what one framework does."""

    def __init__(self, name: str, recorder: str) -> None:
        """`recorder` is the import path of its recorder, which is made for a trial: loading it loads the framework."""
        self._recorder = recorder
        self._give: ContextVar[Callable[[], R] | None] = ContextVar(name, default=None)

    def made_for(self, trial: TrialEnvironment) -> R:
        """The recorder of a trial in which the framework runs behind a user's function."""
        recorder: R = load_object(self._recorder)(trial)
        return recorder

    def here(self) -> R | None:
        """The recorder of this context; None outside a trial."""
        give = self._give.get()
        if give is not None:
            return give()
        hidden = HIDDEN.get()
        return None if hidden is None else hidden.recorder(self)

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


class Hidden:
    """A user's function in one trial: whatever framework it runs is recorded, each by a recorder of its own."""

    __slots__ = ("_lock", "_made", "_trial")

    def __init__(self, trial: TrialEnvironment) -> None:
        self._trial = trial
        self._made: dict[Recording[Any], Any] = {}
        self._lock = threading.Lock()

    def recorder(self, recording: Recording[R]) -> R:
        """The recorder of one framework, made once, from whichever thread asks first."""
        with self._lock:
            if recording not in self._made:
                self._made[recording] = recording.made_for(self._trial)
            made: R = self._made[recording]
            return made

    def close(self) -> None:
        """The function has ended."""
        for recorder in self._made.values():
            recorder.close()


HIDDEN: ContextVar[Hidden | None] = ContextVar("seatrial_hidden_agent", default=None)
"""Who records behind the user's function that this context runs in."""
