"""Agents of the OpenAI Agents SDK for the conformance kit, with a scripted model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents import Agent, Handoff, ModelResponse, function_tool
from seatrial.core.trace import Usage
from seatrial.environment.trial import running_trial
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, player_of
from seatrial.testing.conformance.script import Ways
from seatrial.testing.openai_agents import ScriptedAgentsModel, say

__all__ = ["FRAMEWORKS", "OpenAIAgentsFramework"]


class OpenAIAgentsFramework:
    """Builds situations with the SDK."""

    kind = "openai_agents"
    absent: Mapping[str, str] = {"streaming": "whoever runs the agent decides, and Seatrial asks for whole replies"}
    own_call_ids = False
    ways = Ways(unknown_tool="ends", refused_handoff="ends", nested_argument="input")

    def build(self, script: Script) -> Any:
        """The first agent, with those that it hands over to and asks."""
        made: dict[str, Agent[Any]] = {}
        for agent in script.agents:
            made[agent.name] = Agent(
                name=agent.name, instructions=f"You are {agent.name}.", model=_model(agent, script)
            )
        for agent in script.agents:
            own = made[agent.name]
            own.tools = [function_tool(tool.function, needs_approval=tool.needs_approval) for tool in agent.tools]
            own.tools += [made[name].as_tool(name, f"Ask {name}.") for name in agent.nested]
            own.handoffs = [_handoff(made[name]) for name in agent.handoffs if name in made]
        return made[script.agents[0].name]


def _model(agent: AgentScript, script: Script) -> ScriptedAgentsModel:
    def reply(items: Sequence[Any]) -> ModelResponse:
        return _said(player_of(running_trial(), script).line(agent.name), items)

    return ScriptedAgentsModel(reply, model=agent.model)


def _said(line: Line, items: Sequence[Any]) -> ModelResponse:
    if line.error is not None:
        raise line.error
    heard = [item["content"] for item in items if item.get("role") == "user"]
    calls = [(ask.name, _arguments(ask), ask.call_id) for ask in line.calls]
    if line.handoff is not None:
        given = {"reason": line.reason or "", "context": dict(getattr(line, "context", {}))}
        calls.append((f"transfer_to_{line.handoff}", given, f"handoff-{line.handoff}"))
    return say(line.said(heard), calls, usage=None if line.usage is None else _as_told(line.usage))


def _arguments(ask: Ask) -> Any:
    return ask.arguments if isinstance(ask.arguments, str) else dict(ask.arguments)


def _as_told(usage: Usage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "cached_tokens": usage.cached,
        "cache_write_tokens": usage.cache_write,
        "reasoning_tokens": usage.reasoning,
    }


def _handoff(target: Agent[Any]) -> Handoff[Any, Any]:
    """A hand-off that carries why, and what the other one needs."""
    invoke: Callable[..., Any] = _takes_over(target)
    properties = {"reason": {"type": "string"}, "context": {"type": "object"}}
    return Handoff(
        tool_name=f"transfer_to_{target.name}",
        tool_description=f"Let {target.name} take over.",
        input_json_schema={"type": "object", "properties": properties},
        on_invoke_handoff=invoke,
        agent_name=target.name,
        strict_json_schema=False,
    )


def _takes_over(target: Agent[Any]) -> Callable[..., Any]:
    async def invoke(context: Any, arguments: str) -> Agent[Any]:
        return target

    return invoke


FRAMEWORKS = (OpenAIAgentsFramework(),)
