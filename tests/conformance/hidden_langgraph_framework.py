"""The kit's scripts as a plain function that runs LangGraph inside, and tells Seatrial nothing of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from conformance.langgraph_framework import CreateAgent
from seatrial.core.trace import Observable
from seatrial.testing.conformance import Script, Ways


def is_async(script: Script) -> bool:
    return any(inspect.iscoroutinefunction(tool.function) for agent in script.agents for tool in agent.tools)


class HiddenGraph:
    """A function that keeps its conversation and runs its graph."""

    kind = "function"
    name = "function (LangGraph inside)"
    own_call_ids = False
    ways = Ways(raising_tool="ends", malformed_arguments="answers")
    observes = frozenset(Observable) - {Observable.APPROVALS, Observable.OUTCOME, Observable.SAFETY}
    absent: Mapping[str, str] = dict.fromkeys(
        ("approval_granted", "approval_denied", "approval_edited", "approval_unanswered"),
        "the function has to ask by itself",
    )

    def build(self, script: Script) -> Any:
        graph = CreateAgent().build(script)

        def conversation() -> Callable[[str], Any]:
            said: list[Any] = []

            def answer(text: str) -> str:
                said[:] = graph.invoke({"messages": [*said, ("user", text)]})["messages"]
                return said[-1].text

            async def answer_waiting(text: str) -> str:
                said[:] = (await graph.ainvoke({"messages": [*said, ("user", text)]}))["messages"]
                return said[-1].text

            return answer_waiting if is_async(script) else answer

        return conversation


FRAMEWORKS = (HiddenGraph(),)
