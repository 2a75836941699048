"""The tool calls that models asked for, and what became of each.

LangChain announces most calls while they run, but not all: one of an unknown tool, one that was rejected at approval,
one that the user's node ran by hand leave only a ToolMessage; one whose run ended before it leaves nothing. So what
was asked for is kept here until it is settled, by an event of its own or by what the model was told.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AskedCall", "AskedCalls", "Told"]


@dataclass
class AskedCall:
    """One call that a model asked for, or that ran without being asked for (`step` None)."""

    name: str
    arguments: Mapping[str, Any]
    """As asked."""
    call_id: str | None = None
    step: int | None = None
    """Event number of the model call."""
    agent: str | None = None
    bound: bool = True
    """Whether the model was offered a tool of that name (True where that is not known)."""
    number: int | None = None
    """Event number, once it is on record."""
    tries: int = 0
    interrupted: bool = False
    """Its body waits for an approval; it will run again from the start."""
    settled: bool = False
    """It ended, or stands in the trace for good."""
    result: Any = None
    """What the tool gave, where that was seen."""
    approval_asked: bool = False
    unanswered: bool = False
    """Its body asked a question of a shape that nobody can answer."""
    edited: Mapping[str, Any] | None = None
    """What an approval that its body asked for permits instead."""
    named: frozenset[str] = field(default_factory=frozenset)
    """Arguments that were named, in the request or by who edited it; others are defaults or injected."""

    def as_run(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments among `inputs` that were named, or what was approved in their place."""
        if self.edited is not None:
            return dict(self.edited)
        return {key: value for key, value in inputs.items() if key in self.named}


@dataclass(frozen=True)
class Told:
    """What a model was told of a call."""

    call_id: str
    content: Any
    failed: bool


class AskedCalls:
    """Every call asked for in one trial."""

    def __init__(self) -> None:
        self._all: list[AskedCall] = []
        self._by_id: dict[str, AskedCall] = {}
        self._lock = threading.RLock()

    def ask(self, call: AskedCall) -> None:
        """A model asked for this call. An id that comes again (fake models repeat them) means the latest call."""
        with self._lock:
            self._all.append(call)
            if call.call_id is not None:
                self._by_id[call.call_id] = call

    def by_id(self, call_id: str | None) -> AskedCall | None:
        """The latest call with this id."""
        return None if call_id is None else self._by_id.get(call_id)

    def starting(self, name: str, inputs: Mapping[str, Any], call_id: str | None) -> AskedCall:
        """The call that now begins to run: asked for with this id, else with this name and arguments, else new."""
        with self._lock:
            found = self.by_id(call_id) or self._unstarted(name, inputs)
            if found is None:
                found = AskedCall(name=name, arguments=dict(inputs), call_id=call_id, named=frozenset(inputs))
                self.ask(found)
            found.tries += not found.interrupted
            return found

    def _unstarted(self, name: str, inputs: Mapping[str, Any]) -> AskedCall | None:
        for call in self._all:
            waits = call.interrupted or (call.tries == 0 and not call.settled)
            if waits and call.name == name and call.arguments.items() <= inputs.items():
                return call
        return None

    def awaiting_approval(self, name: str, arguments: Mapping[str, Any]) -> AskedCall | None:
        """The open call that a request for approval is about, each taken once."""
        for call in self.open():
            if not call.approval_asked and call.name == name and dict(call.arguments) == dict(arguments):
                call.approval_asked = True
                return call
        return None

    def open(self) -> Iterator[AskedCall]:
        """Calls that are not settled, in the order in which they were asked for."""
        with self._lock:
            return iter([call for call in self._all if not call.settled])

    def told(self, messages: Iterable[Any]) -> Iterator[tuple[AskedCall, Told]]:
        """Calls of which a conversation says how they ended.

        `messages` are LangChain messages; an answer counts for the latest request of its id only.
        """
        answers: dict[str, Told] = {}
        for message in messages:
            for asked in getattr(message, "tool_calls", None) or ():
                answers.pop(str(asked.get("id")), None)
            call_id = getattr(message, "tool_call_id", None)
            if call_id:
                failed = getattr(message, "status", "success") == "error"
                answers[call_id] = Told(call_id, getattr(message, "content", None), failed)
        for call_id, answer in answers.items():
            call = self.by_id(call_id)
            if call is not None:
                yield call, answer
