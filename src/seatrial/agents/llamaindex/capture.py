"""Recording for an agent that runs LlamaIndex behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls, hand-offs and retrieval inside are then in the trace, and the fixture's stand-ins and faults
apply to the tools of its agents; in sync code, tasks and threads that take the context along. Questions to a person
stay the function's own business. It does not load LlamaIndex (`joining`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.agents.llamaindex.joining import listen, recorded_by
from seatrial.environment.trial import TrialEnvironment

if TYPE_CHECKING:
    from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what LlamaIndex runs in this context."""
    recorder = _OnDemand(trial)
    listen()
    try:
        with recorded_by(recorder.get):
            yield
    finally:
        recorder.close()


class _OnDemand:
    """A recorder that is made when LlamaIndex runs something for the first time."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self._trial = trial
        self._made: LlamaIndexRecorder | None = None
        self._lock = threading.Lock()

    def get(self) -> LlamaIndexRecorder:
        from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

        with self._lock:
            if self._made is None:
                self._made = LlamaIndexRecorder(self._trial)
            return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
