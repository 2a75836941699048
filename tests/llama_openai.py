"""LlamaIndex's own OpenAI package does not install beside openai 3: as much of one as an agent needs, for tests."""

from __future__ import annotations

import json
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
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from openai import AsyncOpenAI


class OpenAILLM(FunctionCallingLLM):
    """Chat completions with tools through the real client; async alone, as workflows call it."""

    base_url: str
    model: str = "m"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, model_name=self.model)

    def _prepare_chat_with_tools(
        self, tools: Any, user_msg: Any = None, chat_history: Any = None, **_: Any
    ) -> dict[str, Any]:
        messages = [*(chat_history or []), *([user_msg] if user_msg else [])]
        return {"messages": messages, "tools": [tool.metadata.to_openai_tool() for tool in tools]}

    async def achat(self, messages: Any, tools: Any = None, **_: Any) -> ChatResponse:
        ask: Any = {"model": self.model, "messages": [_sent(message) for message in messages]}
        async with AsyncOpenAI(base_url=self.base_url, api_key="x", max_retries=0) as client:
            answer = await client.chat.completions.create(**ask, **({"tools": tools} if tools else {}))
        return ChatResponse(message=_read(answer.choices[0].message), raw=answer)

    async def astream_chat(self, messages: Any, **options: Any) -> Any:
        async def whole() -> Any:
            yield await self.achat(messages, **options)

        return whole()

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> Any:
        return await self.astream_chat(**self._prepare_chat_with_tools(tools, chat_history=chat_history))

    def get_tool_calls_from_response(self, response: Any, *_: Any, **__: Any) -> list[ToolSelection]:
        return [
            ToolSelection(tool_id=call.tool_call_id, tool_name=call.tool_name, tool_kwargs=json.loads(call.tool_kwargs))
            for call in _calls(response.message)
        ]

    def chat(self, *_: Any, **__: Any) -> ChatResponse:
        raise NotImplementedError

    def complete(self, *_: Any, **__: Any) -> CompletionResponse:
        raise NotImplementedError

    stream_chat = stream_complete = acomplete = astream_complete = complete  # type: ignore[assignment]


def _calls(message: ChatMessage) -> list[Any]:
    return [block for block in message.blocks if isinstance(block, ToolCallBlock)]


def _sent(message: ChatMessage) -> dict[str, Any]:
    said: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.role is MessageRole.TOOL:
        said["tool_call_id"] = message.additional_kwargs["tool_call_id"]
    if calls := _calls(message):
        made = [(call.tool_call_id, {"name": call.tool_name, "arguments": call.tool_kwargs}) for call in calls]
        said["tool_calls"] = [{"id": call_id, "type": "function", "function": function} for call_id, function in made]
    return said


def _read(said: Any) -> ChatMessage:
    blocks: list[Any] = [TextBlock(text=said.content)] if said.content else []
    for call in said.tool_calls or []:
        made = call.function
        blocks.append(ToolCallBlock(tool_call_id=call.id, tool_name=made.name, tool_kwargs=made.arguments))
    return ChatMessage(role="assistant", blocks=blocks)
