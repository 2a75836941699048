"""A scripted function-calling model for LlamaIndex.

from seatrial.testing.llamaindex import ScriptedLLM, say

llm = ScriptedLLM(script=[say(calls=[("add", {"a": 1, "b": 2})]), say("3")])
agent = FunctionAgent(tools=[add], llm=llm)
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    CompletionResponse,
    LLMMetadata,
    MessageRole,
    TextBlock,
    ToolCallBlock,
)
from llama_index.core.llms.callbacks import llm_chat_callback, llm_completion_callback
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import PrivateAttr

from seatrial.testing.lines import Lines, ScriptExhausted

__all__ = ["ScriptExhausted", "ScriptedLLM", "say"]

Call = tuple[str, Mapping[str, Any] | str] | tuple[str, Mapping[str, Any] | str, str]


def say(
    text: str = "",
    calls: Sequence[Call] = (),
    usage: tuple[int, int] | Mapping[str, Any] | None = (10, 5),
    *,
    model: str | None = None,
) -> ChatResponse:
    """A reply of a model.

    `calls` are tool calls as (name, arguments) or (name, arguments, id); without an id each gets one of its own;
    arguments that are text are those of a model that wrote no JSON object. `usage` is (input tokens, output tokens),
    or a whole mapping as a provider gives it; None = the provider said nothing. `model` is the name that the provider
    reports; None = the scripted model's own.
    """
    blocks: list[Any] = [TextBlock(text=text)] if text else []
    blocks += [_tool_call(*call) for call in calls]
    raw: dict[str, Any] = {} if model is None else {"model": model}
    if usage is not None:
        raw["usage"] = dict(usage) if isinstance(usage, Mapping) else _usage(*usage)
    return ChatResponse(message=ChatMessage(role=MessageRole.ASSISTANT, blocks=blocks), raw=raw, delta=text)


def _tool_call(name: str, arguments: Mapping[str, Any] | str, call_id: str | None = None) -> ToolCallBlock:
    given = arguments if isinstance(arguments, str) else dict(arguments)
    return ToolCallBlock(tool_call_id=call_id or f"call_{uuid.uuid4().hex[:12]}", tool_name=name, tool_kwargs=given)


def _usage(sent: int, written: int) -> dict[str, int]:
    return {"prompt_tokens": sent, "completion_tokens": written, "total_tokens": sent + written}


class ScriptedLLM(FunctionCallingLLM):
    """Plays its script, one line a call: a ChatResponse (see `say`), an exception to raise, or a function of the
    messages that gives the ChatResponse.

    A script that is one function plays every call; it depends on nothing but the conversation, so one model serves
    many trials at once. A list is played once over all calls of the model, whoever makes them; a call beyond its end
    raises ScriptExhausted. For agents of any kind: a ReActAgent reads what it says as text.
    """

    script: Any
    """A sequence of lines, or one function."""
    model: str = "scripted"
    _lines: Lines[ChatResponse] = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        super().model_post_init(context)
        self._lines = Lines(self.script)

    @property
    def seen(self) -> tuple[tuple[ChatMessage, ...], ...]:
        """The messages of every call so far, in order."""
        return self._lines.seen

    @property
    def metadata(self) -> LLMMetadata:
        """A chat model that calls functions."""
        return LLMMetadata(is_chat_model=True, is_function_calling_model=True, model_name=self.model)

    def _prepare_chat_with_tools(
        self,
        tools: Any,
        user_msg: Any = None,
        chat_history: Any = None,
        verbose: bool = False,
        allow_parallel_tool_calls: bool = False,
        tool_required: bool = False,
        **kwargs: Any,
    ) -> dict[str, Any]:
        said = [ChatMessage(role=MessageRole.USER, content=user_msg)] if isinstance(user_msg, str) else [user_msg]
        return {"messages": [*(chat_history or ()), *(message for message in said if message is not None)]}

    def get_tool_calls_from_response(
        self, response: ChatResponse, error_on_no_tool_call: bool = True, **kwargs: Any
    ) -> list[ToolSelection]:
        """The calls of a reply; arguments that are no JSON object become none, as with the framework's own models."""
        blocks = [block for block in response.message.blocks if isinstance(block, ToolCallBlock)]
        return [
            ToolSelection(
                tool_id=block.tool_call_id or "",
                tool_name=block.tool_name,
                tool_kwargs={} if isinstance(block.tool_kwargs, str) else block.tool_kwargs,
            )
            for block in blocks
        ]

    def _play(self, messages: Sequence[ChatMessage]) -> ChatResponse:
        # The framework writes into messages (a ReActAgent cuts its answer out), so none is ever handed out twice.
        played = self._lines.play(messages).model_copy(deep=True)
        played.raw = {"model": self.model, **(played.raw or {})}
        return played

    @llm_chat_callback()
    def chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The next reply."""
        return self._play(messages)

    @llm_chat_callback()
    async def achat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> ChatResponse:
        """The next reply."""
        return self._play(messages)

    @llm_chat_callback()
    def stream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        """The next reply, in one piece."""

        def pieces() -> Iterator[ChatResponse]:
            yield self._play(messages)

        return pieces()

    @llm_chat_callback()
    async def astream_chat(self, messages: Sequence[ChatMessage], **kwargs: Any) -> Any:
        """The next reply, in one piece."""

        async def pieces() -> AsyncIterator[ChatResponse]:
            yield self._play(messages)

        return pieces()

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The next reply as text."""
        played = self._play([ChatMessage(role=MessageRole.USER, content=prompt)])
        return CompletionResponse(text=played.message.content or "", raw=played.raw)

    @llm_completion_callback()
    async def acomplete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        """The next reply as text."""
        played = self._play([ChatMessage(role=MessageRole.USER, content=prompt)])
        return CompletionResponse(text=played.message.content or "", raw=played.raw)

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """The next reply as text, in one piece."""
        return iter([self.complete(prompt, formatted)])

    async def astream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        """The next reply as text, in one piece."""
        played = await self.acomplete(prompt, formatted)

        async def pieces() -> AsyncIterator[CompletionResponse]:
            yield played

        return pieces()
