"""Writes what agents of Google ADK do into a trial's trace.

- A model call is one step, however many pieces it streams; it raises StepLimitReached at its start when there were as
  many as allowed.
- A tool call is on record while its body runs. What never reaches a body (an unknown tool, missing arguments, a
  rejected confirmation) is known by the response that the model gets.
- A call of `transfer_to_agent`, or of a tool named `handoff` or `transfer_to_X`, is a hand-off. One whose target never
  starts, because the framework does not find or allow it, was refused.
- Calls of the framework's `set_model_response` and `finish_task` are the model's structured answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from google.adk.models.llm_response import LlmResponse
from google.genai import types

from seatrial.agents.asked import AskedCall, AskedCalls
from seatrial.core.trace import CallState, Observable, Usage
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "GoogleADKRecorder", "gives_answer", "text_of_parts", "whose"]

OBSERVES = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
    }
)
_ANSWERS = ("SetModelResponseTool", "FinishTaskTool")


def gives_answer(tool: Any) -> bool:
    """Whether a tool is the framework's own way of giving a structured answer."""
    return type(tool).__name__ in _ANSWERS and type(tool).__module__.startswith("google.adk.")


def whose(context: Any) -> tuple[str | None, str]:
    """The agent that acts in an invocation, and whose call ids count there."""
    name = getattr(context.agent, "name", None)
    return name, f"{context.session.id}/{name}"


class GoogleADKRecorder:
    """Records one trial, whatever agents run in it."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self.trial = trial
        self.calls = AskedCalls(trial)
        self._leaving: int | None = None
        """Event number of a hand-off after which no model has been asked yet."""
        trial.recorder.observe(*OBSERVES)

    # --- models ------------------------------------------------------------------------------------------------------

    async def begin_model_call(self, model: str, agent: str | None) -> int:
        """A model is about to be asked."""
        self._leaving = None
        await self.trial.pace.ready("model", model)
        return self.trial.recorder.begin_model_call(model, agent=agent)

    def end_model_call(self, number: int, response: LlmResponse, usage: Usage | None) -> None:
        """A model answered, or said what went wrong."""
        error = None
        if response.error_code is not None:
            error = f"{response.error_code}: {response.error_message or 'no message'}"
        self.trial.recorder.end_model_call(number, usage=usage, model=response.model_version, error=error)

    def read(self, number: int, response: LlmResponse, offered: Mapping[str, Any], context: Any) -> None:
        """What a model said, and the calls that it asks for. `offered` are its tools by name."""
        agent, owner = whose(context)
        text = text_of_parts(response.content)
        if text:
            self.trial.recorder.message("assistant", text, agent=agent)
        for part in _parts(response.content):
            asked = part.function_call
            name = "" if asked is None else asked.name or ""
            if asked is not None and not gives_answer(offered.get(name)):
                call = AskedCall(name, dict(asked.args or {}), asked.id or None, number, agent, owner)
                call.offered = name in offered
                call.shows_context = name != "transfer_to_agent"
                self.calls.ask(call)

    # --- tools -------------------------------------------------------------------------------------------------------

    def asked(self, name: str, arguments: Mapping[str, Any], call_id: str | None, context: Any) -> AskedCall:
        """The call that is taken up: asked for with this id, or without any (the framework makes one), else new."""
        agent, owner = whose(context)
        known = self.calls.by_id(call_id, owner)
        if known is not None and known.name == name:
            return known
        for call in self.calls.open():
            if call.call_id is None and (call.name, call.owner, call.named) == (name, owner, dict(arguments)):
                return self.calls.identify(call, call_id)
        call = AskedCall(name, dict(arguments), call_id, agent=agent, owner=owner)
        call.shows_context = name != "transfer_to_agent"
        return self.calls.ask(call)

    async def take_through(self, prepared: Any, context: Any, execute: Callable[[], Awaitable[Any]]) -> Any:
        """Take a call through its callbacks and its body, and learn what the model is told of it."""
        asked = prepared.function_call
        if gives_answer(prepared.tool):
            return await execute()
        call = self.asked(asked.name or "", asked.args or {}, asked.id, context)
        event = await execute()
        if event is not None and asked.id not in event.actions.requested_tool_confirmations:
            self._settle(call, prepared, _told(event, asked.id))
        if call.target is not None:
            self._leave(call, context)
        return event

    def _leave(self, call: AskedCall, context: Any) -> None:
        """The agent hands over. The framework looks for the target only now, and raises when there is none."""
        self._leaving = call.number
        if call.name == "transfer_to_agent" and context.agent.root_agent.find_agent(call.target) is None:
            self.broke_off()

    def _settle(self, call: AskedCall, prepared: Any, told: Any) -> None:
        confirmation = prepared.tool_context.tool_confirmation
        said = told.get("error") if isinstance(told, Mapping) else None
        if call.settled:
            self.calls.tell(call, told)
        elif prepared.tool_lookup_error is not None:
            self.calls.put(call, CallState.UNKNOWN_TOOL, error=said or told, told=told)
        elif (confirmation is not None and not confirmation.confirmed) or self.calls.stopped(call):
            self.calls.put(call, CallState.REFUSED, error=said or told, told=told)
        elif call.rejected is not None:
            self.calls.put(call, CallState.INVALID_ARGUMENTS, error=said or call.rejected, told=told)
        else:
            self.calls.put(call, CallState.UNKNOWN, error="its body never ran", told=told)

    # --- the end -----------------------------------------------------------------------------------------------------

    def broke_off(self) -> None:
        """The run raised: a hand-off right before that led nowhere."""
        if self._leaving is not None:
            self.trial.recorder.settle_handoff(self._leaving, completed=False)
            self._leaving = None

    def close(self) -> None:
        """The turn is over: nothing that is still open will run."""
        self._leaving = None
        self.calls.close()


def _parts(content: types.Content | None) -> list[types.Part]:
    return [] if content is None else list(content.parts or ())


def text_of_parts(content: types.Content | None) -> str:
    """What a content says, without the model's thoughts."""
    return "".join(part.text for part in _parts(content) if part.text and not part.thought)


def _told(event: Any, call_id: str | None) -> Any:
    """What the model gets for a call: the framework puts a result that is no mapping under `result`."""
    for response in event.get_function_responses():
        if response.id == call_id:
            given = response.response
            return given["result"] if isinstance(given, dict) and set(given) == {"result"} else given
    return None
