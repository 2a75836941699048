"""A scripted chat model for LangChain and LangGraph."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr

from seatrial.testing.lines import Lines, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedChatModel", "say"]

Call = tuple[str, Mapping[str, Any]] | tuple[str, Mapping[str, Any], str]


def say(
    text: str = "",
    calls: Sequence[Call] = (),
    usage: tuple[int, int] | Mapping[str, Any] | None = (10, 5),
    *,
    model: str | None = None,
) -> AIMessage:
    """A message of a model.

    `calls` are tool calls as (name, arguments) or (name, arguments, id); without an id each gets one of its own.
    `usage` is (input tokens, output tokens), or a whole `usage_metadata` mapping; None = the provider said nothing.
    `model` is the name that the provider reports; None = the scripted model's own.
    """
    message = AIMessage(text, tool_calls=[_tool_call(*call) for call in calls])
    if usage is not None:
        message.usage_metadata = _usage(usage)
    if model is not None:
        message.response_metadata = {"model_name": model}
    return message


def _tool_call(name: str, arguments: Mapping[str, Any], call_id: str | None = None) -> Any:
    return {
        "name": name,
        "args": dict(arguments),
        "id": call_id or f"call_{uuid.uuid4().hex[:12]}",
        "type": "tool_call",
    }


def _usage(usage: tuple[int, int] | Mapping[str, Any]) -> Any:
    if isinstance(usage, Mapping):
        total = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        return {"total_tokens": total, **usage}
    return {"input_tokens": usage[0], "output_tokens": usage[1], "total_tokens": sum(usage)}


class ScriptedChatModel(BaseChatModel):
    """Plays its script, one line a call: an AIMessage (see `say`), an exception to raise, or a function of the
    messages that gives the AIMessage.

    A script that is one function plays every call; it depends on nothing but the conversation, so one model serves
    many trials at once. A list is played once over all calls of the model, whoever makes them; a call beyond its end
    raises ScriptExhausted.
    """

    script: Any
    """A sequence of lines, or one function."""
    model_name: str = "scripted"
    _lines: Lines[AIMessage] = PrivateAttr()

    def model_post_init(self, _: Any, /) -> None:
        self._lines = Lines(self.script)

    @property
    def seen(self) -> tuple[tuple[BaseMessage, ...], ...]:
        """The messages of every call so far, in order."""
        return self._lines.seen

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """The model with tools offered to it, as providers' models do it."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: list[str] | None = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        # The framework writes ids into messages and merges by them, so no message is ever handed out twice.
        message = self._lines.play(messages).model_copy(deep=True)
        message.response_metadata.setdefault("model_name", self.model_name)
        return ChatResult(generations=[ChatGeneration(message=message)])
