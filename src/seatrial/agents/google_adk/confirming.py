"""Confirmations that a run asked for, answered by the trial's script.

The framework asks with a call of `adk_request_confirmation` in an event; the answer is a function response of the same
id in the user's next message. It knows confirmed and not confirmed: an edited approval is confirmed, with the edited
arguments as `payload`, which only a tool that reads `tool_confirmation.payload` will heed.

Every question is put on record, also when another one stays unanswered; then the turn ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from google.adk.events.event import Event
from google.genai import types

from seatrial.agents.google_adk.recorder import GoogleADKRecorder

__all__ = ["answered", "open_calls"]

_ASKS = "adk_request_confirmation"


def open_calls(events: Iterable[Event]) -> list[types.FunctionCall]:
    """Long-running calls of a run that nothing has answered: questions, and tools that answer later."""
    waiting: dict[str, types.FunctionCall] = {}
    for event in events:
        long_running = event.long_running_tool_ids or ()
        waiting.update({call.id: call for call in event.get_function_calls() if call.id and call.id in long_running})
        for response in event.get_function_responses():
            waiting.pop(response.id or "", None)
    return list(waiting.values())


def answered(waiting: Iterable[types.FunctionCall], recorder: GoogleADKRecorder) -> types.Content | None:
    """What the agent goes on with; None when something stayed unanswered."""
    answers = [_answer(call, recorder) for call in waiting]
    return None if None in answers else types.Content(role="user", parts=[part for part in answers if part])


def _answer(asked: types.FunctionCall, recorder: GoogleADKRecorder) -> types.Part | None:
    original = (asked.args or {}).get("originalFunctionCall") if asked.name == _ASKS else None
    if original is None:  # a tool that answers later, or a question of another kind: nobody does
        return None
    name, arguments, call_id = str(original.get("name")), original.get("args") or {}, original.get("id")
    call = recorder.calls.waiting(call_id)
    answer = recorder.trial.approve(name, arguments, call_id=call_id, agent=call.agent if call else None)
    if answer.decision == "unanswered":
        return None
    response: dict[str, Any] = {"confirmed": answer.allowed}
    if answer.decision == "edited":
        response["payload"] = answer.arguments
    return types.Part(function_response=types.FunctionResponse(id=asked.id, name=_ASKS, response=response))
