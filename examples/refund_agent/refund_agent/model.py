"""A deterministic model that plays both agents offline, in a language model's place.

It is sent what a language model is sent (system prompt, conversation, tools) and follows the sentences of the prompt
that it knows, so a build with a changed prompt behaves differently for the reason a real one would.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

from refund_agent.desk import next_message
from refund_agent.reading import Reading

__all__ = ["PolicyModel"]

_CHARACTERS_PER_TOKEN = 4


class PolicyModel(BaseChatModel):
    """The next message of a conversation, by rules."""

    model_name: str = "scripted-policy"
    quirks: frozenset[str] = frozenset()
    """Habits of a careless model: `first_order_number`."""

    @property
    def _llm_type(self) -> str:
        return "scripted-policy"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": self.model_name}

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        tools = options.get("tools", ())
        reading = Reading(messages, frozenset(tool["function"]["name"] for tool in tools))
        message = next_message(reading, self.quirks)
        message.usage_metadata = _usage(messages, tools, message)
        message.response_metadata = {"model_name": self.model_name}
        return ChatResult(generations=[ChatGeneration(message=message)])


def _usage(messages: Sequence[BaseMessage], tools: Any, answer: AIMessage) -> Any:
    """Tokens, reckoned from the length of the texts."""
    sent = sum(len(message.text) for message in messages) + len(str(tools))
    written = len(answer.text) + len(str(answer.tool_calls))
    tokens_in, tokens_out = sent // _CHARACTERS_PER_TOKEN, written // _CHARACTERS_PER_TOKEN
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
