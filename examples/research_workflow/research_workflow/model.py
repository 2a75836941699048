"""What the scripted model says, in a language model's place.

It is sent what a language model is sent (prompt, conversation) and follows the sentences of the prompt that it knows,
so a build with a changed prompt behaves differently for the reason a real one would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, MessageRole, ToolCallBlock

from seatrial.testing.llamaindex import say

__all__ = ["next_message"]

_CHARACTERS_PER_TOKEN = 4


class _Conversation:
    """What the model has read."""

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        self.prompt = "\n".join(str(m.content) for m in messages if m.role == MessageRole.SYSTEM)
        self.question = next(str(m.content) for m in messages if m.role == MessageRole.USER)
        asked = {block.tool_call_id: block.tool_name for m in messages for block in m.blocks if _is_call(block)}
        answered = [m for m in messages if m.role == MessageRole.TOOL]
        self.results = {asked.get(m.additional_kwargs.get("tool_call_id")): str(m.content) for m in answered}

    def told(self, words: str) -> bool:
        """Whether the prompt says so."""
        return words in self.prompt

    def numbers(self) -> list[int]:
        """The numbers of the question, else the passengers in the notes."""
        of_question = [int(number) for number in re.findall(r"\d+", self.question)]
        notes = self.results.get("search_notes", "")
        return of_question or [int(number) for number in re.findall(r"(\d+) passengers", notes)]


def _is_call(block: Any) -> bool:
    return isinstance(block, ToolCallBlock)


def next_message(messages: list[ChatMessage]) -> ChatResponse:
    """The next reply of whichever agent is asked."""
    talk = _Conversation(messages)
    text, calls = _calculator(talk) if talk.told("You are the calculator") else _researcher(talk)
    sent = sum(len(str(message.content)) for message in messages)
    usage = (sent // _CHARACTERS_PER_TOKEN, len(text + str(calls)) // _CHARACTERS_PER_TOKEN)
    return say(text, calls, usage)


Reply = tuple[str, list[tuple[str, dict[str, Any]]]]


def _researcher(talk: _Conversation) -> Reply:
    if "What can you do" in talk.question:
        return "I look things up in the notes about two ships, and have calculations made.", []
    if re.search(r"\d", talk.question):
        return _handed_over("a product and a sum")
    if talk.told("search them first") and "search_notes" not in talk.results:
        return "", [("search_notes", {"query": talk.question})]
    if "together" in talk.question:
        return _handed_over("the sum of both")
    return talk.results.get("search_notes", "It is about 50 metres long, as far as I know."), []


def _handed_over(reason: str) -> Reply:
    return "", [("handoff", {"to_agent": "calculator", "reason": reason})]


def _calculator(talk: _Conversation) -> Reply:
    first, *rest = talk.numbers() or [100, 100]  # what it believes, where nobody looked it up
    if "times" not in talk.question:
        return _calculation(talk, "add", first, rest[0])
    if talk.told("Multiply before you add"):
        return _chain(talk, ("multiply", first, rest[0]), ("add", rest[1]))
    return _chain(talk, ("add", rest[0], rest[1]), ("multiply", first))


def _chain(talk: _Conversation, first: tuple[str, int, int], second: tuple[str, int]) -> Reply:
    """Two calculations, the second with the result of the first."""
    tool, a, b = first
    if tool not in talk.results:
        return "", [(tool, {"a": a, "b": b})]
    return _calculation(talk, second[0], round(float(talk.results[tool])), second[1])


def _calculation(talk: _Conversation, tool: str, a: int, b: int) -> Reply:
    if tool not in talk.results:
        return "", [(tool, {"a": a, "b": b})]
    return f"The result is {float(talk.results[tool]):g}.", []
