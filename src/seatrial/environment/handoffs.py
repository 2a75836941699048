"""The hand-offs on record of one trial: who has the conversation, and which reports tell of the same hand-off.

A hand-off may be told of by the model call that asked for it, by the tool whose call made it and by the agent's author.
It is one event, and whether it was completed may be known only later.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.trace import Handoff
from seatrial.environment.entries import Entries
from seatrial.environment.reports import as_text

__all__ = ["OPEN", "Handoffs"]

OPEN = "open"
"""A field of a hand-off whose tool has begun and not ended."""


class Handoffs:
    """Those among the events of one trial."""

    active_agent: str | None = None
    """Target of the last completed one; None before the first."""
    _by_tool: frozenset[int] = frozenset()
    """Numbers of those that calls of tools made."""
    _told: frozenset[int] = frozenset()
    """Numbers of those of them that somebody told of once more, as a hand-off."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries

    def add(
        self,
        source: str,
        target: str,
        *,
        reason: str | None = None,
        context: Mapping[str, Any] | None = None,
        completed: bool = True,
        step: int | None = None,
    ) -> int:
        """One more; gives its number, or that of the one that a tool has put on record since model call `step`."""
        source, target = as_text(source) or "", as_text(target) or ""
        known = None if step is None else self._unclaimed(target, step)
        if known is not None:
            self._entries.fill(known, step=step, source=source, agent=source)
            return known
        if completed:
            self.active_agent = target
        fields = {
            "source": source,
            "target": target,
            "reason": as_text(reason),
            "context": None if context is None else to_json(context),
            "completed": completed,
            "step": step,
            "agent": source,
        }
        return self._entries.begin(Handoff, fields)

    def _unclaimed(self, target: str, step: int) -> int | None:
        """Number of one to this target that a tool's call made after model call `step`, and no model claims."""

        def fits(fields: dict[str, Any]) -> bool:
            made = fields["number"] in self._by_tool - set(self._entries.withdrawn)
            return made and fields["target"] == target and fields["step"] is None

        return self._entries.first(Handoff, fits, after=step)

    def opened(self, number: int) -> None:
        """A call of a tool has made it, and has not ended."""
        with self._entries.lock:
            self._by_tool |= {number}
            self._entries.fill(number, **{OPEN: True})

    def settle(self, number: int, *, completed: bool) -> None:
        """Only now it is known whether it was completed; who has the conversation follows."""
        with self._entries.lock:
            self._entries.fields(number)["completed"] = completed
            made = [fields for kind, fields in self._entries.all if kind is Handoff and fields["completed"]]
            self.active_agent = made[-1]["target"] if made else None
            self._entries.changed(number)

    def asked_for(self, target: str, *, besides: Collection[int] = ()) -> int | None:
        """Number of the first one of this turn to this target that a model asked for; none of `besides`."""
        for kind, fields in self._entries.of_turn():
            asked = kind is Handoff and fields["step"] is not None and fields["number"] not in besides
            if asked and fields["target"] == target:
                return int(fields["number"])
        return None

    def tell_again(self, target: str, reason: str | None, context: Mapping[str, Any] | None) -> int | None:
        """Number of the last one, where a tool's call to this target made it and nobody told of it yet: it takes what
        is told now."""
        number = self._just_by_tool(target)
        if number is not None:
            more = {"reason": reason, "context": None if context is None else to_json(context)}
            with self._entries.lock:
                self._told |= {number}
                self._entries.fill(number, **{name: value for name, value in more.items() if value is not None})
        return number

    def _just_by_tool(self, target: str) -> int | None:
        entries = self._entries
        with entries.lock:
            last = next((fields for kind, fields in reversed(entries.all) if kind is Handoff), None)
            if last is None or last["target"] != target or not last["completed"]:
                return None
            number = int(last["number"])
            return number if number in self._by_tool - self._told - set(entries.withdrawn) else None
