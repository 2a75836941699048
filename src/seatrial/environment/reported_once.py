"""Which reports of an agent's author are about the same event.

A call of a hand-off tool is its hand-off, by the target alone: one of the two reports may not know the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import CallState, Handoff, ModelCallEvent, ToolCallEvent, Usage
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.reports import read_arguments

__all__ = ["each_once", "identity_of", "identity_of_entry"]


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


def each_once(items: Iterable[Any]) -> list[Any]:
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
