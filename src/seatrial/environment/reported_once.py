"""Which reports of an agent's author are about the same event.

A call of a hand-off tool is its hand-off, by the target alone: one of the two reports may not know the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import CallState, Handoff, Message, ModelCallEvent, ToolCallEvent, Usage
from seatrial.environment.entries import Entry
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.reports import read_arguments

__all__ = ["identity_of", "identity_of_entry", "unrecorded"]


def unrecorded(events: Iterable[Any], others: Iterable[Any], recorded: Iterable[Entry]) -> tuple[list[Any], bool]:
    """Of a turn that its author reports afterwards, what is not among the `recorded` events yet, in order.

    What stands among both `events`, which are in their order, and the `others` counts once. And whether every tool call
    and hand-off of it then stands where it happened.
    """
    events, others = _each_once(events), _each_once(others)
    known = Counter(identity_of_entry(kind, fields) for kind, fields in recorded if kind is not Message)
    listed = Counter(identity_of(item) for item in events)
    rest = [item for item in others if not _take(listed, item)]
    placed = [(item, _take(known, item)) for item in events]
    late = [item for item in rest if not _take(known, item)]
    return [*(item for item, was_known in placed if not was_known), *late], not _out_of_place(placed, late)


def _out_of_place(placed: Sequence[tuple[Any, bool]], late: Sequence[Any]) -> bool:
    """Whether some reported calls or hand-offs do not stand where they happened.

    Those without a place do not, nor does one that was reported before one that the trial had recorded already.
    """
    recorded = [known for _, known in placed]
    misplaced = False in recorded and True in recorded[recorded.index(False) :]
    return misplaced or any(isinstance(item, (ToolCall, HandoffEvent)) for item in late)


def _take(counts: Counter[str], item: Any) -> bool:
    """Whether there is one more that is the same; it is used up."""
    key = identity_of(item) if counts else ""
    if counts[key] <= 0:
        return False
    counts[key] -= 1
    return True


def identity_of(item: ToolCall | HandoffEvent | ModelCall) -> str:
    """What two reports of the same event have in common."""
    if isinstance(item, ModelCall):
        return _identity("model_call", item.model, item.input, item.output)
    if isinstance(item, HandoffEvent):
        return _identity("handoff", item.target)
    if _hands_over(item):
        return _identity("handoff", asked_handoff(item.name, item.arguments).target)
    return _identity("tool_call", item.name, read_arguments(item.arguments)[0])


def identity_of_entry(kind: type, fields: Mapping[str, Any]) -> str:
    """The same of an event on record."""
    if kind is ToolCallEvent:
        return _identity("tool_call", fields["name"], fields["arguments"])
    if kind is Handoff:
        return _identity("handoff", fields["target"])
    if kind is ModelCallEvent:
        usage = fields.get("usage") or Usage()
        return _identity("model_call", fields["model"], usage.input, usage.output)
    return ""


def _identity(*parts: Any) -> str:
    return dumps(to_json(parts), sort_keys=True)


def _each_once(items: Iterable[Any]) -> list[Any]:
    """Reported items without the calls of hand-off tools whose hand-off is reported beside them."""
    every = list(items)
    told = Counter(item.target for item in every if isinstance(item, HandoffEvent))
    return [item for item in every if not _is_told(item, told)]


def _is_told(item: Any, told: Counter[str]) -> bool:
    if not _hands_over(item) or item.error is not None or item.state not in (None, CallState.EXECUTED):
        return False
    target = asked_handoff(item.name, item.arguments).target
    told[target] -= 1
    return told[target] >= 0


def _hands_over(item: Any) -> bool:
    """Whether it is a call of a hand-off tool. (Its name is checked when it is recorded.)"""
    return isinstance(item, ToolCall) and isinstance(item.name, str) and is_handoff_tool(item.name)
