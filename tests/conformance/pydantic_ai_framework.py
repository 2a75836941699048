"""Pydantic AI for the conformance kit: real agents around a scripted model, built as its users build them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolOutput
from pydantic_ai import Tool as AgentTool
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.usage import RequestUsage

from seatrial.core.trace import Usage
from seatrial.environment.trial import current_trial
from seatrial.testing.conformance.script import AgentScript, Script, Ways, player_of
from seatrial.testing.pydantic_ai import ScriptedModel, say

__all__ = ["PydanticAIFramework"]


class PydanticAIFramework:
    """Agents delegate by tools that run another agent, and hand over by output functions."""

    kind = "pydantic_ai"
    absent: Mapping[str, str] = {}
    own_call_ids = False
    ways = Ways(raising_tool="ends")

    def build(self, script: Script) -> Agent[None, Any]:
        """The script's first agent, with the others behind it."""
        built: dict[str, Agent[None, Any]] = {}

        def agent(name: str) -> Agent[None, Any]:
            if name not in built:
                built[name] = _agent(script, script.agent(name), agent)
            return built[name]

        return agent(script.agents[0].name)


def _agent(script: Script, spec: AgentScript, find: Callable[[str], Agent[None, Any]]) -> Agent[None, Any]:
    tools = [AgentTool(tool.function, requires_approval=tool.needs_approval) for tool in spec.tools]
    nested = [AgentTool(_asks(name, find), name=name) for name in spec.nested]
    handoffs = [ToolOutput(_hands_over(name, find), name=f"transfer_to_{name}") for name in spec.handoffs]
    waits = [DeferredToolRequests] if any(tool.needs_approval for tool in spec.tools) else []
    return Agent(
        ScriptedModel(_replies(script, spec.name), spec.model),
        name=spec.name,
        tools=[*tools, *nested],
        output_type=[str, *handoffs, *waits],
        capabilities=[ProcessEventStream(_listen)] if script.streaming else [],
    )


def _replies(script: Script, agent: str) -> Callable[[list[ModelMessage]], ModelResponse]:
    def reply(messages: list[ModelMessage]) -> ModelResponse:
        line = player_of(current_trial(), script).line(agent)
        if line.error is not None:
            raise line.error
        calls = [(ask.name, ask.arguments, ask.call_id) for ask in line.calls]
        if line.handoff is not None:
            why = {} if line.reason is None else {"reason": line.reason}
            what = {"context": dict(line.context)} if line.context else {}
            calls.append((f"transfer_to_{line.handoff}", {**why, **what}, ""))
        return say(line.said(_heard(messages)), calls, _usage(line.usage))

    return reply


def _heard(messages: list[ModelMessage]) -> list[str]:
    prompts = [part for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    return [str(part.content) for part in prompts]


def _usage(usage: Usage | None) -> RequestUsage | None:
    if usage is None:
        return None
    return RequestUsage(
        input_tokens=usage.input or 0,
        output_tokens=usage.output or 0,
        cache_read_tokens=usage.cached or 0,
        cache_write_tokens=usage.cache_write or 0,
        output_reasoning_tokens=usage.reasoning or 0,
    )


def _asks(name: str, find: Callable[[str], Agent[None, Any]]) -> Callable[..., Any]:
    async def ask(request: str) -> Any:
        """Ask another agent."""
        return (await find(name).run(request)).output

    return ask


def _hands_over(name: str, find: Callable[[str], Agent[None, Any]]) -> Callable[..., Any]:
    async def transfer(ctx: RunContext[Any], reason: str = "", context: dict[str, Any] | None = None) -> Any:
        """Let another agent answer the user."""
        asked = ctx.prompt or _heard(ctx.messages)[-1]  # a run that goes on after an approval has no prompt of its own
        return (await find(name).run(asked)).output

    return transfer


async def _listen(_: Any, events: Any) -> None:
    async for _event in events:
        pass
