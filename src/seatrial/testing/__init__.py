"""For tests of agents, yours and ours: models that play a script behind the real framework.

    from seatrial.testing import ScriptedChatModel, say

    model = ScriptedChatModel(script=[
        say(calls=[("lookup_order", {"order_id": "O-100"})]),
        say("It has been delivered."),
    ])
    agent = create_agent(model, [lookup_order])

`ScriptedLLM` is the like for LlamaIndex, `ScriptedAgentsModel` for the OpenAI Agents SDK; their replies are made by
`say` of `seatrial.testing.llamaindex` and `seatrial.testing.openai_agents`.

Importing this package loads no framework; the first use of a name does.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.testing.langchain import ScriptedChatModel, ScriptExhausted, say
    from seatrial.testing.llamaindex import ScriptedLLM
    from seatrial.testing.openai_agents import ScriptedAgentsModel

__all__ = ["ScriptExhausted", "ScriptedAgentsModel", "ScriptedChatModel", "ScriptedLLM", "say"]

_ELSEWHERE = {"ScriptedAgentsModel": "openai_agents", "ScriptedLLM": "llamaindex"}
"""Names that come from another module than `langchain`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"seatrial.testing.{_ELSEWHERE.get(name, 'langchain')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
