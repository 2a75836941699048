"""Recording for an agent that runs the OpenAI Agents SDK behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls, hand-offs and guardrails inside are then in the trace, of nested and streamed runs too, and the
fixture's stand-ins and faults apply to the tools of its agents; in sync code, tasks and threads that take the context
along. Interruptions for approval stay the function's own business. It does not load the SDK (`joining`).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.agents.openai_agents.joining import listen, recorded_by
from seatrial.environment.trial import TrialEnvironment

if TYPE_CHECKING:
    from seatrial.agents.openai_agents.recorder import AgentsRecorder

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what the SDK runs in this context."""
    recorder = _OnDemand(trial)
    listen()
    try:
        with recorded_by(recorder.get):
            yield
    finally:
        recorder.close()


class _OnDemand:
    """A recorder that is made when the SDK runs something for the first time."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self._trial = trial
        self._made: AgentsRecorder | None = None
        self._lock = threading.Lock()

    def get(self) -> AgentsRecorder:
        from seatrial.agents.openai_agents.recorder import AgentsRecorder

        with self._lock:
            if self._made is None:
                self._made = AgentsRecorder(self._trial)
            return self._made

    def close(self) -> None:
        if self._made is not None:
            self._made.close()
