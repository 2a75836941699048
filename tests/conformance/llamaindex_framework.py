"""LlamaIndex's agents for the conformance kit, with a scripted model; several in an AgentWorkflow."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse
from llama_index.core.tools import FunctionTool
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from seatrial.core.trace import Usage
from seatrial.environment.trial import running_trial
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, Tool, player_of
from seatrial.testing.conformance.script import Ways
from seatrial.testing.llamaindex import ScriptedLLM, say

__all__ = ["FRAMEWORKS", "LlamaIndexFramework", "ReActFramework"]


class LlamaIndexFramework:
    """FunctionAgents, whose models call functions."""

    kind = "llamaindex"
    name = "llamaindex (FunctionAgent)"
    absent: Mapping[str, str] = {}
    own_call_ids = False
    ways = Ways(handoff_carries=frozenset({"reason"}))
    agent_class: type = FunctionAgent

    def build(self, script: Script) -> Any:
        """One agent, or an AgentWorkflow where there are agents to hand over to."""
        agents = {agent.name: agent for agent in script.agents}
        nested = {name for agent in script.agents for name in agent.nested}
        members = [self._agent(agent, script, agents) for agent in script.agents if agent.name not in nested]
        if len(members) == 1 and not script.agents[0].handoffs:
            return members[0]
        if len(members) == 1:  # a workflow of one has no hand-off tool: somebody has to be there
            members.append(FunctionAgent(name="bystander", description="is never asked", llm=ScriptedLLM(script=())))
        return AgentWorkflow(agents=members, root_agent=script.agents[0].name)

    def _agent(self, agent: AgentScript, script: Script, agents: Mapping[str, AgentScript]) -> Any:
        tools: list[Any] = [_asking(tool) if tool.needs_approval else tool.function for tool in agent.tools]
        tools += [_nested(self._agent(agents[name], script, agents)) for name in agent.nested]
        return self.agent_class(
            name=agent.name,
            description=f"is {agent.name}",
            tools=tools,
            can_handoff_to=list(agent.handoffs) or None,
            llm=self._model(agent, script),
            streaming=script.streaming,
        )

    def _model(self, agent: AgentScript, script: Script) -> ScriptedLLM:
        def reply(messages: Sequence[ChatMessage]) -> ChatResponse:
            return self.said(player_of(running_trial(), script).line(agent.name), messages)

        return ScriptedLLM(script=reply, model=agent.model)

    def said(self, line: Line, messages: Sequence[ChatMessage]) -> ChatResponse:
        """A line as the model's reply."""
        if line.error is not None:
            raise line.error
        calls = [(ask.name, _arguments(ask), ask.call_id) for ask in line.calls]
        if line.handoff is not None:
            calls.append(("handoff", _handoff(line), f"handoff-{line.handoff}"))
        return say(line.said(_heard(messages)), calls, usage=_as_provider(line.usage))


class ReActFramework(LlamaIndexFramework):
    """ReActAgents, whose models write what they want to do: that text stands among the messages, so that the kit, which
    compares those, is not run with it."""

    name = "llamaindex (ReActAgent)"
    agent_class = ReActAgent
    own_call_ids = True
    absent: Mapping[str, str] = {
        "parallel_calls": "one action a reply",
        "parallel_blocking_calls": "one action a reply",
        "malformed_arguments": "an action's input is read out of any text",
    }

    def said(self, line: Line, messages: Sequence[ChatMessage]) -> ChatResponse:
        """A line as the model's reply, in words."""
        if line.error is not None:
            raise line.error
        asked = [(ask.name, _arguments(ask)) for ask in line.calls]
        asked += [] if line.handoff is None else [("handoff", _handoff(line))]
        text = f"Thought: I know.\nAnswer: {line.said(_heard(messages))}"
        for name, given in asked:
            text = f"Thought: I need a tool.\nAction: {name}\nAction Input: {json.dumps(given)}"
        return say(text, usage=_as_provider(line.usage))


def _arguments(ask: Ask) -> Any:
    return ask.arguments if isinstance(ask.arguments, str) else dict(ask.arguments)


def _handoff(line: Line) -> dict[str, Any]:
    return {"to_agent": line.handoff, "reason": line.reason or ""}


def _heard(messages: Sequence[ChatMessage]) -> list[str]:
    said = [message.content or "" for message in messages if message.role == "user"]
    return [text for text in said if not text.startswith("Observation:")]


def _as_provider(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def _asking(tool: Tool) -> FunctionTool:
    """The tool as its author would write it: it asks, and goes on when it may."""

    async def asking(ctx: Any, **arguments: Any) -> Any:
        ticket = f"{tool.name} {json.dumps(arguments, sort_keys=True)}"
        request = InputRequiredEvent(action=tool.name, arguments=arguments, ticket=ticket)
        answer = await ctx.wait_for_event(
            HumanResponseEvent, waiter_id=ticket, waiter_event=request, requirements={"ticket": ticket}
        )
        if answer.response == "denied":
            raise PermissionError("denied")
        result = tool.function(**answer.arguments)
        return await result if inspect.isawaitable(result) else result

    own = inspect.signature(tool.function)
    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Context)
    asking.__signature__ = own.replace(parameters=[context, *own.parameters.values()])  # type: ignore[attr-defined]
    return FunctionTool(async_fn=asking, metadata=FunctionTool.from_defaults(tool.function).metadata)


def _nested(agent: Any) -> FunctionTool:
    async def ask(request: str) -> str:
        return str(await agent.run(user_msg=request))

    return FunctionTool.from_defaults(async_fn=ask, name=agent.name, description=f"Ask {agent.name}.")


FRAMEWORKS = (LlamaIndexFramework(),)
