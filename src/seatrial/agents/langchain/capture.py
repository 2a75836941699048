"""Recording for an agent that runs LangChain behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls and hand-offs inside are then in the trace, in sync code, tasks and thread pools that take
the context along (a bare `threading.Thread` does not). It does not load LangChain: where the function does so itself,
in its first call even, what runs from then on is recorded like in every later call (`joining`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.agents.langchain.joining import listen, recording, untraced
from seatrial.environment.trial import TrialEnvironment

if TYPE_CHECKING:
    from seatrial.agents.langchain.recorder import LangChainRecorder

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what LangChain runs in this context, and keep its own tracing from sending anything."""
    recorder = _OnDemand(trial)
    listen()
    outer = recording.tell(recorder.get)
    try:
        with untraced():
            yield
    finally:
        recording.tell(outer)
        recorder.close()


class _OnDemand:
    """A recorder that is made when LangChain runs something for the first time."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self._trial = trial
        self._made: LangChainRecorder | None = None
        self._lock = threading.Lock()

    def get(self) -> LangChainRecorder:
        from seatrial.agents.langchain.recorder import LangChainRecorder

        with self._lock:
            if self._made is None:
                self._made = LangChainRecorder(self._trial)
            return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
