"""Agents of Pydantic AI.

See `agent` for what happens in a trial, `mapping` for `input:` and `output:` of the agent's spec, `deferred` for
approvals, `watching` for what is observed and where, `joining` for how it is found in a running process.

Importing this package loads nothing of the framework; the first use of the adapter does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.agents.pydantic_ai.agent import PydanticAIAgent

__all__ = ["PydanticAIAgent"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seatrial.agents.pydantic_ai import agent

    return getattr(agent, name)
