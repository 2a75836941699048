"""Recording for an agent that runs the OpenAI Agents SDK behind the user's own function.

    with captured(trial):
        answer = function(task)

Model calls, tool calls, hand-offs and guardrails inside are then in the trace, of nested and streamed runs too, and the
fixture's stand-ins and faults apply to the tools of its agents; in sync code, tasks and threads that take the context
along. Interruptions for approval stay the function's own business. It does not load the SDK (`joining`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.agents.openai_agents.joining import listen, recording
from seatrial.environment.trial import TrialEnvironment

if TYPE_CHECKING:
    from seatrial.agents.openai_agents.recorder import AgentsRecorder

__all__ = ["captured"]


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what the SDK runs in this context."""

    def recorder() -> AgentsRecorder:
        from seatrial.agents.openai_agents.recorder import AgentsRecorder

        return AgentsRecorder(trial)

    listen()
    with recording.by_one_made_by(recorder):
        yield
