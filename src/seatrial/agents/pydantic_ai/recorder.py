"""Writes what agents of Pydantic AI do into a trial's trace.

- A model call is one step, also one that is tried again; it raises StepLimitReached at its start when there were as
  many as allowed.
- A tool call is on record while its body runs. What never reaches a body (an unknown tool, arguments that do not fit,
  a denied approval) is known by what the model was told: `outcome` and `retry.cause` of the returned part.
- A call of a tool or output tool named `handoff` or `transfer_to_X` is a hand-off. Calls of other output tools are the
  model's structured answer.
- Tools that the provider runs itself (native tools) are calls that have happened already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from seatrial.agents.asked import AskedCall, AskedCalls
from seatrial.core.trace import CallState, Observable, Usage
from seatrial.environment.recorder import is_handoff_tool
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "PydanticAIRecorder", "Run"]

OBSERVES = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
    }
)
_ANSWER_PREFIX = "final_result_"
"""Before the name of what an output tool gives, where its author gave the tool none."""


@dataclass(frozen=True)
class Run:
    """One run of one agent."""

    agent: str | None = None
    conversation: str | None = None
    """Id of what it and the runs that go on with it have in common."""


class PydanticAIRecorder:
    """Records one trial, whatever agents run in it."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self.trial = trial
        self.calls = AskedCalls(trial)
        trial.recorder.observe(*OBSERVES)

    def agent_name(self, agent: Any) -> str | None:
        """The agent's own name, else that of whoever acts in this trial."""
        named = getattr(agent, "name", None) or self.trial.recorder.active_agent or self.trial.identity.get("agent")
        return None if named is None else str(named)

    # --- models ------------------------------------------------------------------------------------------------------

    async def begin_model_call(self, model: str, messages: Iterable[ModelMessage], run: Run) -> int:
        """A model is about to be asked; the messages tell what became of earlier calls."""
        self.settle(messages, run)
        await self.trial.pace.ready("model", model)
        return self.trial.recorder.begin_model_call(model, agent=run.agent)

    def end_model_call(self, number: int, response: ModelResponse, offered: ModelRequestParameters, run: Run) -> None:
        """A model answered. `offered` are the tools it had."""
        recorder = self.trial.recorder
        recorder.end_model_call(number, usage=_usage(response.usage), model=response.model_name)
        if response.text:
            recorder.message("assistant", response.text, agent=run.agent)
        answers = {tool.name for tool in offered.output_tools}
        tools = {tool.name for tool in offered.function_tools}
        for part in response.parts:
            if isinstance(part, NativeToolCallPart):
                self._record_native(part, response, number, run.agent)
            elif isinstance(part, ToolCallPart) and not (part.tool_name in answers and not _hands_over(part.tool_name)):
                name, call_id = _plain_name(part.tool_name), part.tool_call_id
                call = AskedCall(name, part.args, call_id, number, run.agent, run.conversation)
                call.offered = part.tool_name in tools | answers
                self.calls.ask(call)

    def _record_native(self, part: NativeToolCallPart, response: ModelResponse, step: int, agent: str | None) -> None:
        recorder = self.trial.recorder
        call_id = part.tool_call_id
        returns = (one for one in response.parts if isinstance(one, NativeToolReturnPart))
        result = next((one.content for one in returns if one.tool_call_id == call_id), None)
        number = recorder.begin_tool_call(
            part.tool_name, part.args, call_id=call_id, agent=agent, step=step, reported=True
        )
        recorder.end_tool_call(number, result=result)
        recorder.amend(number, duration_ms=None)

    # --- tools -------------------------------------------------------------------------------------------------------

    def asked(self, name: str, arguments: Mapping[str, Any], call_id: str | None, run: Run) -> AskedCall:
        """The call that is about to run; one that no model asked for is new."""
        known = self.calls.by_id(call_id, run.conversation)
        if known is not None and known.name == _plain_name(name):
            return known
        new = AskedCall(_plain_name(name), dict(arguments), call_id, agent=run.agent, owner=run.conversation)
        return self.calls.ask(new)

    def settle(self, messages: Iterable[ModelMessage], run: Run) -> None:
        """Learn from a conversation what became of calls, and what the model was told of those on record."""
        for call_id, part in _returned(messages).items():
            call = self.calls.by_id(call_id, run.conversation)
            if call is not None and not call.settled:
                self._settle(call, part)
            elif call is not None:
                self.calls.tell(call, _told(part))

    def _settle(self, call: AskedCall, part: ToolReturnPart[Any]) -> None:
        told = _told(part)
        cause = None if part.retry is None else part.retry.cause
        if cause in ("unknown_tool", "unavailable_tool"):
            self.calls.put(call, CallState.UNKNOWN_TOOL, error=told, told=told)
        elif part.outcome == "denied":
            self.calls.put(call, CallState.REFUSED, error=told, told=told)
        elif part.outcome == "retried":
            self.calls.put(call, CallState.INVALID_ARGUMENTS, error=told, told=told)
        elif part.outcome == "failed":
            self.calls.put(call, CallState.FAILED, error=told, told=told)
        else:
            self.calls.put(call, CallState.UNKNOWN, error="its body never ran", told=told)

    def close(self) -> None:
        """The turn is over: nothing that is still open will run."""
        self.calls.close()


def _returned(messages: Iterable[ModelMessage]) -> dict[str, ToolReturnPart[Any]]:
    """What models were told of each call. An answer counts for the latest request of its id only."""
    found: dict[str, ToolReturnPart[Any]] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart):
                found.pop(part.tool_call_id, None)
            elif isinstance(part, ToolReturnPart):
                found[part.tool_call_id] = part
    return found


def _told(part: ToolReturnPart[Any]) -> Any:
    """What the model was told: a result as it is, everything else as text."""
    return part.content if part.outcome == "success" else part.model_response_str(wrap_if_error=False)


def _plain_name(name: str) -> str:
    """The name that the agent's author gave an output function, where that hands over."""
    own = name.removeprefix(_ANSWER_PREFIX)
    return own if is_handoff_tool(own) else name


def _hands_over(name: str) -> bool:
    return is_handoff_tool(_plain_name(name))


def _usage(usage: RequestUsage) -> Usage | None:
    """Tokens as Pydantic AI counts them: `input` with the cached, `output` with the reasoning ones."""
    if usage.unmeasured_requests or not usage.has_values():
        return None
    return Usage(
        input=usage.input_tokens,
        output=usage.output_tokens,
        cached=usage.cache_read_tokens or None,
        cache_write=usage.cache_write_tokens or None,
        reasoning=usage.output_reasoning_tokens or usage.details.get("reasoning_tokens") or None,
    )
