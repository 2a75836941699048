"""A scripted model for Pydantic AI.

    from seatrial.testing.pydantic_ai import ScriptedModel, say

    model = ScriptedModel([say(calls=[("lookup_order", {"order_id": "O-100"})]), say("It has been delivered.")])
    agent = Agent(model, tools=[lookup_order])

Pydantic AI's own FunctionModel does for most tests; this one also says what a provider reports as usage, and streams
by the same script.
"""

from __future__ import annotations

import copy
import re
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    ModelResponseStreamEvent,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from seatrial.testing.lines import Lines, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedModel", "say"]

Call = tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str]
Line = ModelResponse | BaseException | Callable[[list[ModelMessage]], ModelResponse]


def say(
    text: str = "",
    calls: Sequence[Call] = (),
    usage: tuple[int, int] | RequestUsage | None = (10, 5),
    *,
    model: str | None = None,
) -> ModelResponse:
    """A response of a model.

    `calls` are tool calls as (name, arguments) or (name, arguments, id); without an id each gets one of its own, and
    arguments that are a text go out as they are. `usage` is (input tokens, output tokens), or the framework's own
    object; None = the provider said nothing. `model` is the name that the provider reports; None = the model's own.
    """
    parts: list[ModelResponsePart] = [*([TextPart(text)] if text else []), *(_call(*call) for call in calls)]
    return ModelResponse(parts=parts, usage=_usage(usage), model_name=model)


def _call(name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None) -> ToolCallPart:
    given = arguments if isinstance(arguments, str) else dict(arguments)
    return ToolCallPart(name, given, tool_call_id=call_id or f"call_{uuid.uuid4().hex[:12]}")


def _usage(usage: tuple[int, int] | RequestUsage | None) -> RequestUsage:
    if isinstance(usage, RequestUsage):
        return usage
    if usage is None:
        return RequestUsage(unmeasured_requests=1)
    return RequestUsage(input_tokens=usage[0], output_tokens=usage[1])


class ScriptedModel(Model):
    """Plays its script, one line a call: a response (see `say`), an exception to raise, or a function of the messages
    that gives the response.

    A script that is one function plays every call; it depends on nothing but the conversation, so one model serves many
    trials at once. A list is played once over all calls; a call beyond its end raises ScriptExhausted.
    """

    def __init__(self, script: Sequence[Line] | Callable[[Any], ModelResponse], model_name: str = "scripted") -> None:
        super().__init__()
        self._lines: Lines[ModelResponse] = Lines(script)
        self._name = model_name

    @property
    def model_name(self) -> str:
        return self._name

    @property
    def system(self) -> str:
        return "scripted"

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        response = copy.deepcopy(self._lines.play(list(messages)))  # the framework writes into what it gets
        response.model_name = response.model_name or self._name
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        response = await self.request(messages, model_settings, model_request_parameters)
        yield _Streamed(model_request_parameters, response)


@dataclass
class _Streamed(StreamedResponse):
    """A response in pieces: text word by word, calls whole."""

    response: ModelResponse

    def __post_init__(self) -> None:
        self._usage = self.response.usage

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for place, part in enumerate(self.response.parts):
            if isinstance(part, TextPart):
                for word in re.findall(r"\S+\s*|\s+", part.content):
                    for event in self._parts_manager.handle_text_delta(vendor_part_id=place, content=word):
                        yield event
            else:
                yield self._parts_manager.handle_part(vendor_part_id=place, part=part)

    async def close_stream(self) -> None:
        """There is no connection."""

    @property
    def model_name(self) -> str:
        return self.response.model_name or ""

    @property
    def provider_name(self) -> None:
        return None

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return datetime.now(UTC)
