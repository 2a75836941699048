"""A LangChain chat model that plays one agent's part of a script, whole or streamed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from seatrial.core.trace import Usage
from seatrial.environment.trial import running_trial
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, player_of


class PlayedChatModel(BaseChatModel):
    """What the script has for this agent in the running trial."""

    script: Any
    agent: str
    streaming: bool = False

    @property
    def part(self) -> AgentScript:
        return self.script.agent(self.agent)

    @property
    def _llm_type(self) -> str:
        return "played"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.part.model}

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _line(self) -> Line:
        line = player_of(running_trial(), self.script).line(self.agent)
        if line.error is not None:
            raise line.error
        return line

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        message = message_of(self._line(), messages)
        message.response_metadata = {"model_name": self.part.model}
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        for chunk in chunks_of(message_of(self._line(), messages), self.part.model):
            if run_manager is not None:
                run_manager.on_llm_new_token(chunk.content, chunk=ChatGenerationChunk(message=chunk))
            yield ChatGenerationChunk(message=chunk)


def played(script: Script, agent: AgentScript) -> PlayedChatModel:
    return PlayedChatModel(script=script, agent=agent.name, streaming=script.streaming)


def message_of(line: Line, messages: Sequence[BaseMessage]) -> AIMessage:
    heard = [message.text for message in messages if message.type == "human"]
    calls = [*line.calls, *([] if line.handoff is None else [handoff_of(line)])]
    whole = [call for call in calls if not isinstance(call.arguments, str)]
    broken = [call for call in calls if isinstance(call.arguments, str)]
    return AIMessage(
        line.said(heard),
        tool_calls=[{"name": one.name, "args": dict(one.arguments), "id": call_id(one)} for one in whole],
        invalid_tool_calls=[
            {"name": one.name, "args": one.arguments, "id": call_id(one), "error": "no JSON"} for one in broken
        ],
        usage_metadata=None if line.usage is None else usage_of(line.usage),
    )


def handoff_of(line: Line) -> Ask:
    said = {"reason": line.reason, "context": dict(line.context)}
    return Ask(f"transfer_to_{line.handoff}", {key: value for key, value in said.items() if value})


def call_id(ask: Ask) -> str:
    return ask.call_id or uuid.uuid4().hex


def usage_of(usage: Usage) -> Any:
    details = {"cache_read": usage.cached, "cache_creation": usage.cache_write}
    return {
        "input_tokens": usage.input,
        "output_tokens": usage.output,
        "total_tokens": (usage.input or 0) + (usage.output or 0),
        "input_token_details": {key: value for key, value in details.items() if value is not None},
        "output_token_details": {} if usage.reasoning is None else {"reasoning": usage.reasoning},
    }


def chunks_of(message: AIMessage, model: str) -> Iterator[AIMessageChunk]:
    """As providers stream: text in pieces, calls in pieces, the tokens with the last one."""
    own = uuid.uuid4().hex
    for piece in message.text.split(" "):
        if piece:
            yield AIMessageChunk(piece if message.text.startswith(piece) else f" {piece}", id=own)
    for index, call in enumerate(message.tool_calls):
        text = json.dumps(call["args"])
        for place, part in enumerate((text[:5], text[5:])):
            named = {"name": call["name"], "id": call["id"]} if place == 0 else {"name": None, "id": None}
            yield AIMessageChunk("", id=own, tool_call_chunks=[{**named, "args": part, "index": index}])
    last = AIMessageChunk("", id=own, usage_metadata=message.usage_metadata)
    last.response_metadata = {"model_name": model}
    yield last
