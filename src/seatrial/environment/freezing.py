"""The trace's events from what is on record, once nothing more is added."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from seatrial.core.trace import Approval, CallState, ErrorEvent, Event, Message, ToolCallEvent
from seatrial.environment.entries import Entries, kind_name
from seatrial.environment.handing_over import is_handoff_tool
from seatrial.environment.handoffs import OPEN

__all__ = ["events_of"]

_NEVER_ENDED = {"state": CallState.FAILED, "error": "never ended"}


def events_of(entries: Entries, problems: list[str]) -> tuple[Event, ...]:
    """The events so far. A tool call that never ended has failed with `never ended`; a hand-off whose tool never ended
    was not completed.

    An approval that was denied or stayed unanswered, and of whose action there is no tool call, stopped that call: it
    stands at the end as a refused one.

    An event that cannot be made, since an adapter recorded something else than it should, is an error event that says
    so; what it says joins the `problems`.
    """
    with entries.lock:
        entered, unchecked = entries.all, entries.unchecked
        if entries.withdrawn:
            gone = sorted(entries.withdrawn)
            entered = [(kind, _moved_up(fields, gone)) for kind, fields in entered if fields["number"] not in gone]
            unchecked = {number - bisect_left(gone, number) for number in unchecked.difference(gone)}
        events = tuple(
            [
                _SURE[kind](fields)
                if kind in _SURE and fields["number"] not in unchecked
                else _checked(kind, fields, problems)
                for kind, fields in entered
            ]
        )
    return (*events, *_stopped_calls(events)) if Approval in map(type, events) else events


def _checked(kind: type, fields: dict[str, Any], problems: list[str]) -> Event:
    try:
        return _validated(kind, fields)
    except ValidationError as error:
        wrong = ", ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        problems.append(f"event {fields['number']} ({kind_name(kind)}) cannot be kept ({wrong})")
        known = {name: fields[name] for name in ("number", "at_ms", "turn")}
        return ErrorEvent.trusted({**known, "type": "ValidationError", "message": problems[-1]})


def _tool_call(fields: dict[str, Any]) -> ToolCallEvent:
    return ToolCallEvent.trusted(fields if "state" in fields else fields | _NEVER_ENDED)


_SURE: Mapping[type, Callable[[dict[str, Any]], Event]] = {Message: Message.trusted, ToolCallEvent: _tool_call}
"""Kinds of which the recorder itself makes every field, unless it was told elsewhere."""


def _validated(kind: type, fields: dict[str, Any]) -> Event:
    if kind is ToolCallEvent and "state" not in fields:
        fields = fields | _NEVER_ENDED
    if fields.get(OPEN):
        fields = {name: value for name, value in fields.items() if name != OPEN} | {"completed": False}
    event: Event = kind(**fields)
    return event


def _moved_up(fields: dict[str, Any], gone: list[int]) -> dict[str, Any]:
    """The fields with numbers of events as they are once the withdrawn ones (sorted) have gone."""
    moved = dict(fields)
    for key in ("number", "ended", "step", "call"):
        at = fields.get(key)
        if isinstance(at, int):
            moved[key] = None if key == "call" and at in gone else at - bisect_left(gone, at)
    return moved


def _stopped_calls(events: Sequence[Event]) -> Iterator[ToolCallEvent]:
    """The calls that approvals stopped before they became tool calls."""
    calls = [event for event in events if isinstance(event, ToolCallEvent)]
    number = len(events)
    for approval in events:
        if not isinstance(approval, Approval) or approval.decision not in ("denied", "unanswered"):
            continue
        if is_handoff_tool(approval.action) or any(_is_of(approval, call) for call in calls):
            continue
        number += 1
        calls.append(_stopped(approval, number))
        yield calls[-1]


def _stopped(approval: Approval, number: int) -> ToolCallEvent:
    return ToolCallEvent(
        number=number,
        at_ms=approval.at_ms,
        agent=approval.agent,
        turn=approval.turn,
        name=approval.action,
        call_id=approval.call_id,
        arguments=approval.arguments,
        state=CallState.REFUSED,
        error=f"approval {approval.decision}",
        ended=number + 1,
    )


def _is_of(approval: Approval, call: ToolCallEvent) -> bool:
    """Whether an approval is about this call: its id, its name and arguments, or asked for in its body."""
    if approval.call_id is not None and call.call_id is not None:
        return approval.call_id == call.call_id
    same = call.name == approval.action and approval.arguments in (call.arguments, call.asked)
    return same or call.number < approval.number < (call.ended or approval.number + 1)
