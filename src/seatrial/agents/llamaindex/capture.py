"""Recording for an agent that runs LlamaIndex behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls, hand-offs and retrieval inside are then in the trace, and the fixture's stand-ins and faults
apply to the tools of its agents; in sync code, tasks and threads that take the context along. Questions to a person
stay the function's own business. It does not load LlamaIndex (`joining`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.agents.llamaindex.joining import listen, recording
from seatrial.environment.trial import TrialEnvironment

if TYPE_CHECKING:
    from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what LlamaIndex runs in this context."""

    def recorder() -> LlamaIndexRecorder:
        from seatrial.agents.llamaindex.recorder import LlamaIndexRecorder

        return LlamaIndexRecorder(trial)

    listen()
    with recording.by_one_made_by(recorder):
        yield
