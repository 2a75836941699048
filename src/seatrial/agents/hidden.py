"""Recording for agents that run a framework behind the user's own function.

    with captured(trial):
        answer = function(task)

What a known framework runs inside is then in the trace, with stand-ins and faults where it allows them, in sync code,
tasks and thread pools that take the context along (a bare `threading.Thread` does not). None is loaded by it: where the
function does so itself, in its first call even, what runs from then on is recorded. Questions to a person stay the
function's own business.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from functools import cache

from seatrial.agents.google_adk import joining as google_adk
from seatrial.agents.langchain import joining as langchain
from seatrial.agents.leaving import AgentLeft
from seatrial.agents.llamaindex import joining as llamaindex
from seatrial.agents.openai_agents import joining as openai_agents
from seatrial.agents.pydantic_ai import joining as pydantic_ai
from seatrial.agents.recording import HIDDEN, Hidden
from seatrial.environment.trial import TrialEnvironment

__all__ = ["captured", "listen"]


def captured(trial: TrialEnvironment) -> AbstractContextManager[None]:
    """A context in which what any known framework runs is recorded for this trial."""
    if not trial.capture_hidden:
        return nullcontext()
    listen()
    return _Captured(trial)


_listening = threading.Lock()


@cache
def listen() -> None:
    """Once for a process: what a framework asks is settled when it is loaded.

    That takes milliseconds, so it is done before an agent's time is measured.
    """
    with _listening:  # agents that begin at once, each in its thread, search the path once
        for framework in (langchain, llamaindex, openai_agents, pydantic_ai, google_adk):
            framework.listen()


class _Captured(Hidden):
    """While this lasts it records here, and LangSmith's tracing is off.

    What left a tool as AgentLeft leaves here as what the tool raised.
    """

    __slots__ = ("_outer", "_quiet")

    def __enter__(self) -> None:
        self._quiet = langchain.hush(self)
        self._outer = HIDDEN.get()
        HIDDEN.set(self)

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        langchain.unhush(self, self._quiet)
        HIDDEN.set(self._outer)
        if self._made:
            self.close()
        if isinstance(error, AgentLeft):
            raise error.error from error
