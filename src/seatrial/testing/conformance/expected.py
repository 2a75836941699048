"""What a trace must say, as data. Whatever is not listed must not be there.

`step` is the place of a model call in `Expected.model_calls`, from 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.trace import CallState, Observable, StopReason, Usage
from seatrial.testing.conformance.script import Script, Ways
from seatrial.testing.conformance.signals import Signal

__all__ = [
    "AGENT",
    "USAGE",
    "Asked",
    "Body",
    "Call",
    "Expected",
    "Facts",
    "Ledger",
    "ModelCalled",
    "Passed",
    "Plan",
    "Said",
]

AGENT = "alice"
"""Who gets the user's message, in every situation."""
USAGE = Usage(input=10, output=5)
"""Of a line that says nothing else."""

Body = tuple[str, Mapping[str, Any]]
"""A tool's body that ran, with the arguments it got."""


@dataclass(frozen=True)
class ModelCalled:
    """One model call."""

    agent: str = AGENT
    usage: Usage | None = USAGE
    error: str = ""
    """Part of its error; empty = none."""
    turn: int = 1


@dataclass(frozen=True)
class Call:
    """One tool call."""

    name: str
    arguments: Any = field(default_factory=dict)
    """As run."""
    result: Any = None
    call_id: str = ""
    """As the script has it."""
    state: CallState = CallState.EXECUTED
    error: str = ""
    """Part of its error; empty = anything but none, where the call did not execute."""
    told: bool = False
    """The model is told of it and goes on, though it did not execute."""
    asked: Any = None
    agent: str = AGENT
    step: int = 1
    until: int | None = None
    """The model call that begins after its end; None = the one after `step`."""
    stand_in: bool = False
    malformed: bool = False
    turn: int = 1


@dataclass(frozen=True)
class Passed:
    """One hand-off."""

    target: str
    reason: str | None = None
    context: Mapping[str, Any] = field(default_factory=dict)
    completed: bool = True
    source: str = AGENT
    step: int = 1


@dataclass(frozen=True)
class Asked:
    """One approval."""

    action: str
    arguments: Mapping[str, Any]
    decision: str
    approved: Mapping[str, Any] | None = None
    """What an edited approval permits."""
    approver: str | None = None
    step: int = 1


@dataclass(frozen=True)
class Said:
    """What an agent said in words."""

    text: str
    agent: str = AGENT
    turn: int = 1


@dataclass(frozen=True)
class Expected:
    """The whole of one trial."""

    outputs: tuple[Any, ...] = ()
    """Of the turns that ended with an answer."""
    stop: StopReason = StopReason.ANSWERED
    error: str = ""
    """Part of what the agent raised, where it did."""
    model_calls: tuple[ModelCalled, ...] = ()
    tool_calls: tuple[Call, ...] = ()
    overlapping: bool = False
    """The two tool calls run at once."""
    handoffs: tuple[Passed, ...] = ()
    approvals: tuple[Asked, ...] = ()
    said: tuple[Said, ...] = ()
    faults: tuple[tuple[str, str], ...] = ()
    """(tool, fault)."""


@dataclass
class Ledger:
    """Which tools' bodies ran in a situation: the truth that a trace is held against. From any thread."""

    entries: list[Body] = field(default_factory=list)

    def note(self, name: str, /, **arguments: Any) -> None:
        """A body runs."""
        self.entries.append((name, arguments))


@dataclass
class EndsInOrder:
    """In which order the calls of a trial come to their end: told of each change of the record as it happens.

    The trace itself cannot say that of two ends between which nothing begins.
    """

    expected: tuple[Any, ...]
    """Arguments of the calls, in the order of their ends."""
    first_ended: Signal = field(default_factory=Signal)
    """Set when the first of these has ended."""
    seen: dict[int, Any] = field(default_factory=dict)
    """Arguments by event number, in the order of the ends."""

    def on_change(self, change: Mapping[str, Any]) -> None:
        """A change of the record, as JSON data; from any thread."""
        if change.get("kind") == "tool_call" and change.get("ended") is not None:
            self.seen.setdefault(change["number"], change["arguments"])
            if change["arguments"] == self.expected[0]:
                self.first_ended.set()


@dataclass(frozen=True)
class Facts:
    """What is known of a framework before anything runs."""

    ways: Ways
    declared: frozenset[Observable]
    """What its trials may observe."""
    own_call_ids: bool = False
    always: frozenset[Observable] = frozenset()
    """What the adapter itself declares: every trial must claim it."""

    def observes(self, *any_of: Observable) -> bool:
        """Whether it can see one of these."""
        return any(observable in self.declared for observable in any_of)


@dataclass(frozen=True)
class Plan:
    """A situation for one framework: what happens, and what the trace must say."""

    script: Script
    expected: Callable[[int], Expected]
    """By trial number, from 1."""
    about: frozenset[Observable] = frozenset()
    """What the situation is about: a framework of which none is declared passes nothing here, it is "not observed"."""
    only_if_observed: bool = False
    """Nothing comes of it where that cannot be seen, so it is not run then."""
    ledger: Ledger = field(default_factory=Ledger)
    ends: EndsInOrder | None = None
    """Watches in which order calls come to their end, as it is recorded."""
    bodies: tuple[Body, ...] = ()
    """Which bodies run, over all trials, in any order."""
    fixture: Mapping[str, Any] = field(default_factory=dict)
    says: Callable[[int], tuple[str, ...]] = lambda _: ("go",)
    """What the user says in the turns of a trial, by its number."""
    trials: int = 1
    at_once: bool = False
    steps: int = 20
    timeout_s: float = 60.0
    overdue: Signal | None = None
    """When this happens the time is up: the clock of the trial's event loop goes forward by `timeout_s`."""
    over: Signal | None = None
    """Set once the trials are over, for tools that wait that long."""
