"""The kit's scripts as a plain function that runs LangGraph inside; its tools ask for approval by themselves."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from conformance.langgraph_framework import OwnGraph
from seatrial import current_trial
from seatrial.core.trace import Observable
from seatrial.testing.conformance import Script, Tool, Ways


def is_async(script: Script) -> bool:
    return any(inspect.iscoroutinefunction(tool.function) for agent in script.agents for tool in agent.tools)


class HiddenGraph:
    """A function that keeps its conversation and runs its graph."""

    kind = "function"
    name = "function (LangGraph inside)"
    own_call_ids = False
    ways = Ways(malformed_arguments="answers", unanswered="told")
    observes = frozenset(Observable) - {Observable.OUTCOME, Observable.SAFETY}
    absent: Mapping[str, str] = {}

    def build(self, script: Script) -> Any:
        asking = [replace(agent, tools=tuple(map(asking_first, agent.tools))) for agent in script.agents]
        graph = OwnGraph().build(replace(script, agents=tuple(asking)))

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


def asking_first(tool: Tool) -> Tool:
    if not tool.needs_approval:
        return tool

    @functools.wraps(tool.function)
    def asking(**arguments: Any) -> Any:
        answer = current_trial().approve(tool.name, arguments)
        if not answer.allowed:
            raise PermissionError("not allowed")
        return tool.function(**answer.arguments)

    return Tool(asking)


FRAMEWORKS = (HiddenGraph(),)
