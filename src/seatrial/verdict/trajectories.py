"""What an agent did in one trial, as far as it is compared: calls, hand-offs and approvals in order.

Free words (messages, answers, reasons of hand-offs) are left out: they differ whenever a model speaks. Calls that one
model turn asked for have no order among themselves and stand in alphabetical order, so that equal behaviour is equal.
A trajectory that is kept in a file is cut; what it is compared with is cut alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, Literal, NamedTuple

from pydantic import Field, model_serializer, model_validator

from seatrial.core.encoding import dumps
from seatrial.core.frozen import Frozen
from seatrial.core.ledger import Counted
from seatrial.core.trace import Approval, CallState, Event, Handoff, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.verdict.trials import stable

__all__ = ["Detail", "Step", "TraceOf", "Trajectory", "representative", "trajectory_of"]

TraceOf = Callable[[TrialRecord], Trace]
"""Reads the trace of a trial back; raises StorageError when there is none."""

Kind = Literal["call", "handoff", "approval"]
_KINDS: tuple[Kind, ...] = ("call", "handoff", "approval")


class Step(Frozen):
    """One thing an agent did. In JSON its kind is the key of its name: `{"call": "pay", "arguments": {"sum": 5}}`.

    A call about which nothing else is known is its name alone.
    """

    kind: Kind
    name: str
    """The tool, the target of a hand-off, or the action to approve."""
    source: str | None = None
    """Who handed over; None for anything else."""
    arguments: Any = None
    """Of a call or approval; the context of a hand-off. None: none, or not observed."""
    state: str = ""
    """What became of it, where that is not the usual: a call's state unless executed, `refused` for a hand-off that was
    not completed, an approval's decision."""
    turn: int = Field(default=1, ge=1)
    """The user's turn."""

    @model_validator(mode="before")
    @classmethod
    def _named_by_kind(cls, data: object) -> object:
        if isinstance(data, str):
            return {"kind": "call", "name": data}
        kind = next((kind for kind in _KINDS if isinstance(data, Mapping) and kind in data), None)
        if kind is None or not isinstance(data, Mapping):
            return data
        return {"kind": kind, "name": data[kind], **{key: value for key, value in data.items() if key != kind}}

    @model_serializer
    def _by_kind(self) -> dict[str, Any] | str:
        rest: dict[str, Any] = {"source": self.source, "arguments": self.arguments, "state": self.state or None}
        known = {name: value for name, value in rest.items() if value is not None}
        if self.turn > 1:
            known["turn"] = self.turn
        return {self.kind: self.name, **known} if known or self.kind != "call" else self.name


class Detail(StrEnum):
    """How much of a trajectory is kept, most first."""

    WHOLE = "whole"
    FULL = "full"
    SHORT = "short"
    CALLS = "calls"
    """Short, without reasons."""
    NAMES = "names"
    NOTHING = "nothing"


class _Kept(NamedTuple):
    steps: int
    text: int
    """Characters of each argument; 0: no arguments."""
    reasons: int
    """Characters of each reason; 0: no reasons."""


_LIMITS = {
    Detail.FULL: _Kept(steps=40, text=160, reasons=240),
    Detail.SHORT: _Kept(steps=12, text=40, reasons=60),
    Detail.CALLS: _Kept(steps=12, text=24, reasons=0),
    Detail.NAMES: _Kept(steps=8, text=0, reasons=0),
    Detail.NOTHING: _Kept(steps=0, text=0, reasons=0),
}
_MOST_ARGUMENTS = 12


class Trajectory(Frozen):
    """The steps of one trial, and what its graders said of it."""

    steps: tuple[Step, ...] = ()
    more: int = Field(default=0, ge=0)
    """Steps that followed and were not kept."""
    ordered: bool = True
    """False when the order between calls and hand-offs is unknown: then calls stand first."""
    reasons: dict[str, str] = Field(default_factory=dict)
    """What its grades said, by name; those that said nothing are left out."""

    @property
    def calls(self) -> tuple[Step, ...]:
        """The tool calls alone."""
        return tuple(step for step in self.steps if step.kind == "call")

    @property
    def handoffs(self) -> tuple[Step, ...]:
        """The hand-offs alone."""
        return tuple(step for step in self.steps if step.kind == "handoff")

    @property
    def apart(self) -> Trajectory:
        """The same with calls and approvals first, for comparing with one whose order is unknown."""
        return self.model_copy(update={"steps": _handoffs_last(self.steps), "ordered": False})

    def cut(self, detail: Detail) -> Trajectory:
        """What is kept of it at this level of detail; the same again when it was cut so before."""
        if detail is Detail.WHOLE:
            return self
        kept = _LIMITS[detail]
        dropped = max(len(self.steps) - kept.steps, 0)
        return Trajectory(
            steps=tuple(_cut_step(step, kept.text) for step in self.steps[: kept.steps]),
            more=self.more + dropped,
            ordered=self.ordered,
            reasons={name: _cut_text(why, kept.reasons) for name, why in self.reasons.items()} if kept.reasons else {},
        )


def _cut_step(step: Step, limit: int) -> Step:
    return step.model_copy(update={"arguments": _cut_arguments(step.arguments, limit) if limit else None})


def _cut_arguments(arguments: Any, limit: int) -> Any:
    if not isinstance(arguments, Mapping):
        return _cut_value(arguments, limit)
    kept = list(arguments.items())[:_MOST_ARGUMENTS]
    return {_cut_text(name, limit): _cut_value(value, limit) for name, value in kept}


def _cut_value(value: Any, limit: int) -> Any:
    """A text cut, and anything else that is longer as the beginning of its JSON text."""
    if isinstance(value, str):
        return _cut_text(value, limit)
    text = dumps(value)
    return value if len(text) <= limit else _cut_text(text, limit)


def _cut_text(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def trajectory_of(trace: Trace, record: TrialRecord | None = None) -> Trajectory:
    """The trajectory of a trace; `record` adds the reasons of its grades."""
    steps = tuple(step for group in _together(trace.events) for step in group)
    grades = () if record is None else record.grades
    return Trajectory(
        steps=steps if trace.ordered else _handoffs_last(steps),
        ordered=trace.ordered,
        reasons={grade.name: stable(grade.reason) for grade in grades if grade.reason},
    )


def _handoffs_last(steps: Sequence[Step]) -> tuple[Step, ...]:
    return tuple(sorted(steps, key=lambda step: step.kind == "handoff"))


def _together(events: Iterable[Event]) -> Iterator[list[Step]]:
    """Steps in order; those that one model turn asked for together, in alphabetical order."""
    acted = [event for event in events if isinstance(event, (ToolCallEvent, Handoff, Approval))]
    for asked_by, group in groupby(acted, key=_asked_by):
        steps = [_step(event) for event in group]
        yield steps if asked_by[0] is None else sorted(steps, key=_sorting)


def _asked_by(event: ToolCallEvent | Handoff | Approval) -> tuple[int | None, int]:
    return (None if isinstance(event, Approval) else event.step, event.turn)


def _sorting(step: Step) -> tuple[str, str, str]:
    return (step.kind, step.name, dumps(step.arguments, sort_keys=True))


def _step(event: ToolCallEvent | Handoff | Approval) -> Step:
    if isinstance(event, ToolCallEvent):
        state = "" if event.state is CallState.EXECUTED else str(event.state)
        return Step(kind="call", name=event.name, arguments=event.arguments or None, state=state, turn=event.turn)
    if isinstance(event, Handoff):
        return Step(
            kind="handoff",
            name=event.target,
            source=event.source,
            arguments=event.context or None,
            state="" if event.completed else "refused",
            turn=event.turn,
        )
    return Step(
        kind="approval",
        name=event.action,
        arguments=event.arguments or None,
        state=event.decision,
        turn=event.turn,
    )


def representative(records: Iterable[Counted], trace_of: TraceOf) -> Trajectory | None:
    """The trajectory that stands for these trials: of the passing ones (of the valid ones where none passed), the first
    whose names of calls, in order, are the most common. None without a valid trial; raises what `trace_of` raises.
    """
    valid = [record for record in records if record.valid]
    passing = [record for record in valid if record.status is TrialStatus.PASSED]
    traces = [(record.whole, trace_of(record.whole)) for record in passing or valid]
    if not traces:
        return None
    names = [tuple(call.name for call in trace.tool_calls) for _, trace in traces]
    ((usual, _),) = Counter(names).most_common(1)  # of equally common ones the first
    record, trace = traces[names.index(usual)]
    return trajectory_of(trace, record)
