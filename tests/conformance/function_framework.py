"""The kit's scripts as a plain function: the user's own loop around a model, with `environment.tool`."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from seatrial import HandoffEvent, ModelCall
from seatrial.core.trace import Observable
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, Tool, Ways, player_of


@dataclass
class Conversation:
    """One trial of the function: its agents, its tools, and who has the word."""

    script: Script
    environment: Any
    heard: list[str] = field(default_factory=list)
    acting: str = ""

    def __post_init__(self) -> None:
        self.acting = self.script.agents[0].name

    async def answer(self, given: str) -> str:
        self.heard.append(given)
        return await self.run(self.acting, self.heard)

    async def run(self, name: str, heard: Sequence[str]) -> str:
        agent = self.script.agent(name)
        tools = {tool.name: self.recorded(tool, agent) for tool in agent.tools}
        tools |= {other: self.nested(other, agent) for other in agent.nested}
        while True:
            line = self.reply(agent)
            if line.handoff is not None:
                return await self.run(self.hand_over(agent, line), heard)
            if not line.calls:
                return line.said(heard)
            await asyncio.gather(*(self.call(tools, ask) for ask in line.calls))

    def reply(self, agent: AgentScript) -> Line:
        line = player_of(self.environment, self.script).line(agent.name)
        counts = {} if line.usage is None else line.usage.model_dump()
        self.environment.record(ModelCall(agent.model, agent=agent.name, error=line.error, **counts))
        if line.error is not None:
            raise line.error
        return line

    def recorded(self, tool: Tool, agent: AgentScript) -> Callable[..., Any]:
        wrapped = self.environment.tool(tool.function, agent=agent.name)
        return self.guarded(tool.name, wrapped, agent) if tool.needs_approval else wrapped

    def guarded(self, name: str, wrapped: Callable[..., Any], agent: AgentScript) -> Callable[..., Any]:
        def ask_first(**arguments: Any) -> Any:
            answer = self.environment.approve(name, arguments, agent=agent.name)
            return wrapped(**answer.arguments) if answer.allowed else f"not allowed: {answer.decision}"

        return ask_first

    def nested(self, name: str, agent: AgentScript) -> Callable[..., Any]:
        async def ask(request: str) -> str:
            return await self.run(name, [request])

        ask.__name__ = name
        return self.environment.tool(ask, agent=agent.name)

    async def call(self, tools: Mapping[str, Callable[..., Any]], ask: Ask) -> None:
        tool = tools.get(ask.name) or self.environment.tools[ask.name]
        with suppress(Exception):  # its model is told, and goes on
            await in_thread_if_blocking(tool, dict(ask.arguments))

    def hand_over(self, agent: AgentScript, line: Line) -> str:
        target = str(line.handoff)
        self.environment.record(HandoffEvent(agent.name, target, line.reason, line.context))
        self.acting = target
        return target


def in_thread_if_blocking(tool: Callable[..., Any], arguments: Mapping[str, Any]) -> Awaitable[Any]:
    if inspect.iscoroutinefunction(tool):
        return tool(**arguments)
    return asyncio.to_thread(tool, **arguments)


class PlainFunction:
    """A factory of an async function of the input."""

    kind = "function"
    own_call_ids = True
    ways = Ways(says_step=False, says_told=False, says_asked=False, unanswered="told")
    observes = frozenset(
        {
            Observable.MODEL_CALLS,
            Observable.USAGE,
            Observable.TOOL_CALLS,
            Observable.HANDOFFS,
            Observable.HANDOFF_CONTEXT,
            Observable.APPROVALS,
        }
    )
    absent: Mapping[str, str] = {
        "malformed_arguments": "a function is called with arguments, not with text",
        "refused_handoff": "only a hand-off that happened can be recorded",
        "streaming": "the function gives its answer whole",
    }

    def build(self, script: Script) -> Any:
        def factory(environment: Any) -> Callable[[str], Awaitable[str]]:
            return Conversation(script, environment).answer

        return factory


FRAMEWORKS = (PlainFunction(),)
