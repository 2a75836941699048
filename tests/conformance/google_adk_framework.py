"""Google ADK for the conformance kit: real agents around a scripted model, built as its users build them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from google.adk.agents import LlmAgent
from google.adk.apps.app import App
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.function_tool import FunctionTool
from google.genai import types

from seatrial.core.trace import Usage
from seatrial.environment.trial import current_trial
from seatrial.testing.conformance.script import AgentScript, Script, Ways, player_of
from seatrial.testing.google_adk import ScriptedLlm, say

__all__ = ["GoogleADKFramework"]

_QUOTED = "<<<BEGIN_QUOTED_AGENT_CONTENT>>>"
"""In what the framework tells one agent of another, as if the user had said it."""


class GoogleADKFramework:
    """Agents are called as tools by AgentTool, and hand over to their sub-agents by transfer_to_agent."""

    kind = "google_adk"
    absent: Mapping[str, str] = {
        "approval_edited": "a confirmation is given or not; it cannot change arguments",
        "parallel_blocking_calls": "functions that block run one after the other, on the event loop",
        "malformed_arguments": "its models give arguments as a mapping",
    }
    own_call_ids = False
    ways = Ways(
        raising_tool="ends",
        refused_handoff="ends",
        handoff_carries=frozenset({"reason"}),
        usage_kinds=frozenset({"input", "output", "cached", "reasoning"}),
    )

    def build(self, script: Script) -> App:
        """An app around the script's first agent, with the others below it."""
        return App(name="conformance", root_agent=_agent(script, script.agents[0]))


def _agent(script: Script, spec: AgentScript) -> LlmAgent:
    tools = [FunctionTool(tool.function, require_confirmation=tool.needs_approval) for tool in spec.tools]
    nested = [AgentTool(_agent(script, script.agent(name))) for name in spec.nested]
    return LlmAgent(
        name=spec.name,
        description=f"the agent {spec.name}",
        model=ScriptedLlm(model=spec.model, script=_replies(script, spec.name), pieces=script.streaming),
        tools=[*tools, *nested],
        sub_agents=[_agent(script, script.agent(name)) for name in spec.handoffs],
    )


def _replies(script: Script, agent: str) -> Callable[[list[types.Content]], LlmResponse]:
    def reply(contents: list[types.Content]) -> LlmResponse:
        line = player_of(current_trial(), script).line(agent)
        if line.error is not None:
            raise line.error
        calls = [(ask.name, dict(ask.arguments), ask.call_id) for ask in line.calls]
        if line.handoff is not None:
            reason = {} if line.reason is None else {"transfer_reason": line.reason}
            calls.append(("transfer_to_agent", {"agent_name": line.handoff, **reason}, ""))
        return say(line.said(_heard(contents)), calls, _usage(line.usage))

    return reply


def _heard(contents: list[types.Content]) -> list[str]:
    texts = [part.text for content in contents if content.role == "user" for part in content.parts or () if part.text]
    return [text for text in texts if _QUOTED not in text and text != "For context:"]


def _usage(usage: Usage | None) -> types.GenerateContentResponseUsageMetadata | None:
    if usage is None:
        return None
    thoughts = usage.reasoning or 0
    return types.GenerateContentResponseUsageMetadata(
        prompt_token_count=usage.input,
        candidates_token_count=(usage.output or 0) - thoughts,
        thoughts_token_count=usage.reasoning,
        cached_content_token_count=usage.cached,
        total_token_count=(usage.input or 0) + (usage.output or 0),
    )
