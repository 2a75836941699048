"""One adapter a file; none imports another. Names stand for them here and in `agent: {kind: ...}`."""

from __future__ import annotations

from seatrial.registry import Registry

__all__ = ["AGENTS"]

AGENTS = Registry(
    "agent",
    {
        "function": "seatrial.agents.function:FunctionAgent",
        "langgraph": "seatrial.agents.langgraph:LangGraphAgent",
    },
)
