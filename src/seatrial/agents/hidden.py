"""Recording for agents that run a framework behind the user's own function.

Each framework has a `captured(trial)` of its own: a context in which what it runs is recorded for the trial, in sync
code, tasks and thread pools that take the context along. None of them loads its framework (`on_load` tells them when
the agent does), and entering one costs next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from seatrial.agents.google_adk import capture as google_adk
from seatrial.agents.langchain import capture as langchain
from seatrial.agents.llamaindex import capture as llamaindex
from seatrial.agents.openai_agents import capture as openai_agents
from seatrial.agents.pydantic_ai import capture as pydantic_ai
from seatrial.environment.trial import TrialEnvironment

__all__ = ["captured"]

_CAPTURES = (
    langchain.captured,
    llamaindex.captured,
    openai_agents.captured,
    pydantic_ai.captured,
    google_adk.captured,
)


@contextmanager
def captured(trial: TrialEnvironment) -> Iterator[None]:
    """Record what any known framework runs in this context."""
    with ExitStack() as stack:
        for capture in _CAPTURES if trial.capture_hidden else ():
            stack.enter_context(capture(trial))
        yield
