"""For tests of agents, yours and ours: models that play a script behind the real framework.

    from seatrial.testing import ScriptedChatModel, say

    model = ScriptedChatModel(script=[
        say(calls=[("lookup_order", {"order_id": "O-100"})]),
        say("It has been delivered."),
    ])
    agent = create_agent(model, [lookup_order])

Importing this package loads no framework; the first use of a name does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.testing.langchain import ScriptedChatModel, ScriptExhausted, say

__all__ = ["ScriptExhausted", "ScriptedChatModel", "say"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from seatrial.testing import langchain

    return getattr(langchain, name)


def __dir__() -> list[str]:
    return sorted(__all__)
