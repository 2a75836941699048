"""A scripted model for the OpenAI Agents SDK.

from seatrial.testing.openai_agents import ScriptedAgentsModel, say

model = ScriptedAgentsModel(script=[say(calls=[("add", {"a": 1, "b": 2})]), say("3")])
agent = Agent(name="sums", tools=[add], model=model)
"""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from agents.testing import assistant_message, function_call
from openai.types.responses import Response, ResponseCompletedEvent
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage

from agents import Model, ModelResponse, Usage
from seatrial.testing.lines import Lines, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedAgentsModel", "say"]

Call = tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str]
_NAMES = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")


def say(
    text: str = "",
    calls: Sequence[Call] = (),
    usage: tuple[int, int] | Mapping[str, Any] | None = (10, 5),
) -> ModelResponse:
    """A reply of a model.

    `calls` are tool calls as (name, arguments) or (name, arguments, id); without an id each gets one of its own;
    arguments that are text go to the SDK as they are. `usage` is (input tokens, output tokens), or a mapping of
    input_tokens, output_tokens, cached_tokens, cache_write_tokens, reasoning_tokens; None = the provider said nothing.
    """
    output: list[Any] = [_tool_call(*call) for call in calls]
    if text or not output:
        output.append(assistant_message(text))
    return ModelResponse(output=output, usage=_usage(usage), response_id=None)


def _tool_call(name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None) -> Any:
    given = arguments if isinstance(arguments, str) else json.dumps(dict(arguments))
    return function_call(name, given, call_id=call_id or f"call_{uuid.uuid4().hex[:12]}")


def _usage(told: tuple[int, int] | Mapping[str, Any] | None) -> Usage:
    if told is None:
        return Usage()
    given = told if isinstance(told, Mapping) else dict(zip(_NAMES, told, strict=False))
    sent, written, cached, cache_write, reasoning = (given.get(name) or 0 for name in _NAMES)
    return Usage(
        requests=1,
        input_tokens=sent,
        output_tokens=written,
        total_tokens=sent + written,
        input_tokens_details=InputTokensDetails(cached_tokens=cached, cache_write_tokens=cache_write),
        output_tokens_details=OutputTokensDetails(reasoning_tokens=reasoning),
    )


class ScriptedAgentsModel(Model):
    """Plays its script, one line a call: a ModelResponse (see `say`), an exception to raise, or a function of the
    input items that gives the ModelResponse.

    A script that is one function plays every call; it depends on nothing but the conversation, so one model serves
    many trials at once. A list is played once over all calls of the model, whoever makes them; a call beyond its end
    raises ScriptExhausted.
    """

    def __init__(self, script: Any, model: str = "scripted") -> None:
        self.model = model
        self._lines: Lines[ModelResponse] = Lines(script)

    @property
    def seen(self) -> tuple[tuple[Any, ...], ...]:
        """The input items of every call so far, in order."""
        return self._lines.seen

    async def get_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002  the SDK's name
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        """The next reply."""
        return self._play(input)

    async def stream_response(
        self,
        system_instructions: str | None,
        input: str | list[Any],  # noqa: A002  the SDK's name
        *_: Any,
        **__: Any,
    ) -> AsyncIterator[Any]:
        """The next reply, in one piece."""
        played = self._play(input)
        yield ResponseCompletedEvent(type="response.completed", sequence_number=0, response=self._response(played))

    def _response(self, played: ModelResponse) -> Response:
        told = played.usage
        usage = ResponseUsage(
            input_tokens=told.input_tokens,
            input_tokens_details=told.input_tokens_details,
            output_tokens=told.output_tokens,
            output_tokens_details=told.output_tokens_details,
            total_tokens=told.total_tokens,
        )
        return Response(
            id=f"resp_{uuid.uuid4().hex[:12]}",
            created_at=0,
            model=self.model,
            object="response",
            output=played.output,
            parallel_tool_calls=True,
            tool_choice="auto",
            tools=[],
            usage=usage if told.requests else None,
        )

    def _play(self, given: str | list[Any]) -> ModelResponse:
        return self._lines.play([{"role": "user", "content": given}] if isinstance(given, str) else given)
