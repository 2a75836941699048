"""What the scripted model understands of a conversation: the same texts that a language model is sent, parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

__all__ = ["Reading", "Result", "Wish"]

_ORDER = re.compile(r"\bO-\d+\b")
_AMOUNT = re.compile(r"\b\d+(?:\.\d+)?(?= dollars)")


@dataclass(frozen=True)
class Wish:
    """A refund that the customer asks for."""

    order_id: str
    amount: float | None
    """None: the whole price."""


@dataclass(frozen=True)
class Result:
    """A tool's answer, with what it was asked."""

    tool: str
    arguments: dict[str, Any]
    data: dict[str, Any]
    """Empty when the tool failed or was refused."""
    failed: bool
    position: int
    """Index of its message in the conversation."""


@dataclass(frozen=True)
class Reading:
    """One conversation as far as it has gone."""

    messages: Sequence[BaseMessage]
    tools: frozenset[str]
    """Names of the tools the model may call."""

    @cached_property
    def prompt(self) -> str:
        return "\n".join(message.text for message in self.messages if isinstance(message, SystemMessage))

    def told(self, words: str) -> bool:
        """Whether the system prompt says so."""
        return words in self.prompt

    @cached_property
    def said(self) -> tuple[str, ...]:
        """What the customer said, in order."""
        return tuple(message.text for message in self.messages if isinstance(message, HumanMessage))

    @property
    def latest(self) -> str:
        return self.said[-1] if self.said else ""

    @property
    def customer(self) -> str:
        found = re.search(r"signed-in customer is (\S+)\.", self.prompt)
        return found[1] if found else ""

    @property
    def limit(self) -> float:
        """What the prompt allows to be refunded without a supervisor."""
        found = re.search(r"above (\d+) dollars", self.prompt)
        return float(found[1]) if found else float("inf")

    @cached_property
    def _turn_begins(self) -> int:
        return max((i for i, message in enumerate(self.messages) if isinstance(message, HumanMessage)), default=0)

    @cached_property
    def asked(self) -> dict[str, dict[str, Any]]:
        """Arguments of every tool call so far by call id."""
        calls = (call for message in self.messages if isinstance(message, AIMessage) for call in message.tool_calls)
        return {str(call["id"]): call["args"] for call in calls}

    @cached_property
    def results(self) -> tuple[Result, ...]:
        """Answers of tools, in order."""
        return tuple(self._read_results())

    def _read_results(self) -> Iterator[Result]:
        for position, message in enumerate(self.messages):
            if isinstance(message, ToolMessage):
                failed = message.status == "error"
                data = {} if failed else _data(message.text)
                asked = self.asked.get(message.tool_call_id, {})
                yield Result(message.name or "", asked, data, failed, position)

    def of(self, tool: str, *, this_turn: bool = False, **arguments: Any) -> list[Result]:
        """Answers of one tool to calls with these arguments."""
        since = self._turn_begins if this_turn else 0
        return [
            result
            for result in self.results
            if result.tool == tool and result.position >= since and arguments.items() <= result.arguments.items()
        ]

    @property
    def calls_so_far(self) -> int:
        return len(self.asked)

    def wishes(self, *, first_number: bool = False) -> list[Wish]:
        """Refunds asked for in the latest message; order numbers are looked for after the word `refund`.

        `first_number`: take the first order number of the message instead, whatever it stands for.
        """
        text = self.latest
        wanted = text[text.lower().rfind("refund") :] if "refund" in text.lower() else text
        ids = _ORDER.findall(wanted) or _ORDER.findall(text)
        if first_number and _ORDER.findall(text):
            ids = [_ORDER.findall(text)[0], *ids[1:]]
        amounts = [float(amount) for amount in _AMOUNT.findall(wanted)]
        if len(amounts) != len(ids):
            amounts = amounts[:1] * len(ids)
        return [Wish(order_id, amount) for order_id, amount in zip(ids, amounts or [None] * len(ids), strict=True)]


def _data(text: str) -> dict[str, Any]:
    """The JSON object in a tool's answer. Before that of an edited call the framework puts a note."""
    try:
        found = json.loads(text.rpartition("Tool response:")[2])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
