"""A scripted model for Google ADK.

from seatrial.testing.google_adk import ScriptedLlm, say

model = ScriptedLlm(script=[say(calls=[("lookup_order", {"order_id": "O-100"})]), say("It has been delivered.")])
agent = LlmAgent(name="desk", model=model, tools=[lookup_order])
"""

from __future__ import annotations

import re
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from seatrial.testing.lines import Lines, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedLlm", "say"]

Call = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str]
Usage = types.GenerateContentResponseUsageMetadata


def say(
    text: str = "",
    calls: Sequence[Call] = (),
    usage: tuple[int, int] | Usage | None = (10, 5),
    *,
    model: str | None = None,
) -> LlmResponse:
    """A response of a model.

    `calls` are tool calls as (name, arguments) or (name, arguments, id); without an id each gets one of its own.
    `usage` is (input tokens, output tokens), or the framework's own object; None = the provider said nothing.
    `model` is the name that the provider reports; None = the scripted model's own.
    """
    parts = [*([types.Part(text=text)] if text else []), *(_call(*call) for call in calls)]
    content = types.Content(role="model", parts=parts)
    return LlmResponse(content=content, usage_metadata=_usage(usage), model_version=model)


def _call(name: str, arguments: Mapping[str, Any], call_id: str | None = None) -> types.Part:
    asked = types.FunctionCall(id=call_id or f"call_{uuid.uuid4().hex[:12]}", name=name, args=dict(arguments))
    return types.Part(function_call=asked)


def _usage(usage: tuple[int, int] | Usage | None) -> Usage | None:
    if not isinstance(usage, tuple):
        return usage
    return Usage(prompt_token_count=usage[0], candidates_token_count=usage[1], total_token_count=sum(usage))


class ScriptedLlm(BaseLlm):
    """Plays its script, one line a call: a response (see `say`), an exception to raise, or a function of the request's
    contents that gives the response.

    A script that is one function plays every call; it depends on nothing but the conversation, so one model serves many
    trials at once. A list is played once over all calls; a call beyond its end raises ScriptExhausted. With `pieces` it
    streams its text word by word, whether it is asked to or not.
    """

    model: str = "scripted"
    script: Any
    """A sequence of lines, or one function."""
    pieces: bool = False
    _lines: Lines[LlmResponse] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Take up the script."""
        self._lines = Lines(self.script)

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The next line, in pieces first when it streams."""
        line = self._lines.play(list(llm_request.contents))
        response = line.model_copy(deep=True, update={"model_version": line.model_version or self.model})
        if self.pieces or stream:
            for word in _words(response):
                content = types.Content(role="model", parts=[types.Part(text=word)])
                yield LlmResponse(content=content, partial=True, model_version=response.model_version)
        yield response


def _words(response: LlmResponse) -> list[str]:
    parts = (response.content.parts if response.content else None) or []
    return [word for part in parts if part.text for word in re.findall(r"\S+\s*|\s+", part.text)]
