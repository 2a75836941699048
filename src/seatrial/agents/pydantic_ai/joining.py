"""Joining Pydantic AI without loading it: told when it is loaded, asked when it runs something.

Every run of any agent asks here, by context variable, for its recorder: nested agents and those in sync tools, tasks
and thread pools that take the context along too. Outside a trial a run is what it always was. It does not load the
framework: where the function does so itself, in its first call even, what runs from then on is recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from seatrial.agents.on_load import when_loaded
from seatrial.agents.pydantic_ai.recording import recording

__all__ = ["listen"]


def listen() -> None:
    """Runs of agents ask `recording` from now on, or from when the framework is loaded."""
    when_loaded("pydantic_ai.agent", _join)


def _join(module: ModuleType) -> None:
    agent = module.Agent
    if not hasattr(agent.iter, "_asks_recording"):
        agent.iter = _asking(agent.iter)


def _asking(iterate: Callable[..., Any]) -> Callable[..., Any]:
    """`Agent.iter`, through which every run goes, with the context's recorder watching."""

    @functools.wraps(iterate)
    def iter(self: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: A001  the name that it takes the place of
        recorder = recording.here()
        if recorder is not None:
            from seatrial.agents.pydantic_ai.watching import Watch

            kwargs["capabilities"] = [*(kwargs.get("capabilities") or ()), Watch(recorder)]
        return iterate(self, *args, **kwargs)

    iter._asks_recording = True  # type: ignore[attr-defined]
    return iter
