"""A deterministic model that plays the agent offline, in a language model's place.

It is sent what a language model is sent (prompt, conversation, tools) and follows the sentences of the prompt that it
knows, so a build with a changed prompt behaves differently for the reason a real one would.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool

__all__ = ["SupportModel"]

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_CHARACTERS_PER_TOKEN = 4


class _Conversation:
    """What the model has read since the customer last spoke."""

    def __init__(self, messages: Sequence[BaseMessage]) -> None:
        self.prompt = "\n".join(message.text for message in messages if isinstance(message, SystemMessage))
        asked = max(i for i, message in enumerate(messages) if isinstance(message, HumanMessage))
        self.question = messages[asked].text
        self.numbers = [float(number) for number in _NUMBER.findall(self.question)]
        self.results = {m.name: m.text for m in messages[asked:] if isinstance(m, ToolMessage)}

    def told(self, words: str) -> bool:
        """Whether the prompt says so."""
        return words in self.prompt

    def asks(self, *words: str) -> bool:
        """Whether the customer's question holds any of these words."""
        return any(word in self.question.lower() for word in words)


def _call(*calls: tuple[str, dict[str, Any]]) -> AIMessage:
    asked = [{"name": name, "args": given, "id": f"call_{uuid.uuid4().hex[:12]}"} for name, given in calls]
    return AIMessage("", tool_calls=asked)


def _reckoned(talk: _Conversation, tool: str, work_out: Callable[[float, float], str]) -> str | None:
    """The result of a calculation: the calculator's, which is None until it was called, or the model's own."""
    return talk.results.get(tool) if talk.told("Use the calculator") else work_out(*talk.numbers[:2])


def _calculation(talk: _Conversation, tool: str, work_out: Callable[[float, float], str], says: str) -> AIMessage:
    result = _reckoned(talk, tool, work_out)
    if result is None:
        return _call((tool, dict(zip("ab", talk.numbers, strict=False))))
    if result.startswith("error"):
        return AIMessage("That is not possible: a number cannot be divided by zero.")
    return AIMessage(says.format(f"{float(result):g}"))


def _shipping(talk: _Conversation) -> AIMessage:
    rule = talk.results.get("search_knowledge_base")
    if rule is None:
        return _call(("search_knowledge_base", {"query": "free shipping"}))
    limit = float(_NUMBER.findall(rule)[0])
    basket = talk.numbers[0]
    if talk.told("with what the customer is about to add"):
        total = _reckoned(talk, "add", lambda a, b: str(a + b))
        if total is None:
            return _call(("add", {"a": basket, "b": talk.numbers[1]}))
        basket = float(total)
    verdict = "free" if basket >= limit else "not free"
    return AIMessage(f"With {basket:g} dollars in the basket shipping is {verdict}; the limit is {limit:g} dollars.")


def _customs(talk: _Conversation) -> AIMessage:
    found = talk.results.get("search_web")
    return _call(("search_web", {"query": "customs clearance Norway"})) if found is None else AIMessage(found)


def _next_message(talk: _Conversation) -> AIMessage:
    if talk.told("Search the knowledge base before") and "search_knowledge_base" not in talk.results:
        return _call(("search_knowledge_base", {"query": talk.question}))
    if talk.asks("shipping"):
        return _shipping(talk)
    if talk.asks("customs"):
        return _customs(talk)
    if talk.asks("split", "divide"):
        return _calculation(talk, "divide", lambda a, b: str(a / b) if b else "0", "That makes {} dollars each.")
    if talk.asks("how much"):
        return _calculation(talk, "multiply", lambda a, b: str(round(a) * round(b)), "That makes {} dollars.")
    return AIMessage("I can help with arithmetic, shipping and questions about orders.")


class SupportModel(BaseChatModel):
    """The next message of a conversation, by rules."""

    model_name: str = "scripted-support"

    @property
    def _llm_type(self) -> str:
        return "scripted-support"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **options: Any
    ) -> ChatResult:
        message = _next_message(_Conversation(messages))
        message.usage_metadata = _usage(messages, options.get("tools", ()), message)
        message.response_metadata = {"model_name": self.model_name}
        return ChatResult(generations=[ChatGeneration(message=message)])


def _usage(messages: Sequence[BaseMessage], tools: Any, answer: AIMessage) -> Any:
    """Tokens, reckoned from the length of the texts."""
    sent = sum(len(message.text) for message in messages) + len(str(tools))
    written = len(answer.text) + len(str(answer.tool_calls))
    tokens_in, tokens_out = sent // _CHARACTERS_PER_TOKEN, written // _CHARACTERS_PER_TOKEN
    return {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
