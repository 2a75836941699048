"""The events of one trial as they stand so far, in the order in which they began.

An event is its kind and the fields that are known of it. It gets its number when it begins; what is learnt later fills
it in. All of it from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from seatrial.core.trace import (
    Approval,
    ErrorEvent,
    Fault,
    Guardrail,
    Handoff,
    Message,
    ModelCallEvent,
    Retrieval,
    SafetyEvent,
    ToolCallEvent,
    Usage,
)

__all__ = ["Entries", "Entry", "Lock", "kind_name"]

Lock = AbstractContextManager[object]
"""A trial has one, which its parts share; a thread that holds it may take it once more."""

Entry = tuple[type, dict[str, Any]]
"""Kind and fields of one event. Its fields change as long as the trial lasts."""

_NAMES: dict[type, str] = {
    kind: kind.model_fields["kind"].default
    for kind in (
        *(Message, ModelCallEvent, ToolCallEvent, Retrieval, Handoff),
        *(Approval, Guardrail, Fault, SafetyEvent, ErrorEvent),
    )
}
_KINDS = {name: kind for kind, name in _NAMES.items()}


def kind_name(kind: type) -> str:
    """The word for a sort of event: tool_call, message ..."""
    return _NAMES[kind]


class Entries:
    """What is on record of one trial."""

    turn: int = 1
    """Number of the user turn that events belong to from now on."""
    on_change: Callable[[dict[str, Any]], None] | None = None
    """Called with every change as it happens, as JSON data that `apply` takes."""

    def __init__(self, lock: Lock) -> None:
        self.lock = lock
        self.all: list[Entry] = []
        """Event number n stands at n - 1, those that were withdrawn too."""
        self.withdrawn: list[int] = []
        """Numbers of events that did not happen after all."""
        self.unchecked: set[int] = set()
        """Numbers of events with fields that were put there by others."""
        self._began = time.perf_counter_ns()

    def elapsed_ms(self) -> float:
        """Milliseconds since the trial began, monotonic, to the microsecond."""
        return (time.perf_counter_ns() - self._began) // 1_000 / 1_000

    def since(self, at_ms: float) -> float:
        """Milliseconds since that time of the trial."""
        return round(self.elapsed_ms() - at_ms, 3)

    # --- writing ---------------------------------------------------------------------------------------------------

    def begin(self, kind: type, fields: dict[str, Any], *, ended: bool = False) -> int:
        """An event begins, and takes these fields for its own; gives its number. `ended`: it is over at once."""
        with self.lock:
            fields["number"] = number = len(self.all) + 1
            fields["at_ms"] = self.elapsed_ms()
            fields["turn"] = self.turn
            if ended:
                fields["ended"] = number + 1
            self.all.append((kind, fields))
            if self.on_change is not None:
                self.changed(number)
            return number

    def fields(self, number: int) -> dict[str, Any]:
        """What is known of an event. Who changes it says so with `changed`."""
        return self.all[number - 1][1]

    def kind(self, number: int) -> type:
        """What sort of event it is."""
        return self.all[number - 1][0]

    def fill(self, number: int, **fields: Any) -> None:
        """More is known of an event."""
        with self.lock:
            self.fields(number).update(fields)
            self.changed(number)

    def changed(self, number: int) -> None:
        """Tell of an event as it stands now."""
        if self.on_change is not None:
            kind, fields = self.all[number - 1]
            usage = fields.get("usage")
            shown = {"usage": usage.model_dump()} if isinstance(usage, Usage) else {}
            self.tell({"kind": _NAMES[kind], **fields, **shown})

    def tell(self, change: dict[str, Any]) -> None:
        """Tell of a change."""
        if self.on_change is not None:
            self.on_change(change)

    def withdraw(self, number: int) -> None:
        """Take an event back. Later ones move up when the trace is made, so that numbers stay positions."""
        with self.lock:
            self.withdrawn.append(number)
            self.tell({"withdrawn": [number]})

    def apply(self, change: Mapping[str, Any]) -> None:
        """Make a change that was told elsewhere; in the order in which they were told."""
        with self.lock:
            if "kind" in change:
                fields = {name: value for name, value in change.items() if name != "kind"}
                at = fields["number"] - 1
                self.all[at : at + 1] = [(_KINDS[change["kind"]], fields)]
                self.unchecked.add(at + 1)
            self.withdrawn.extend(change.get("withdrawn", ()))

    # --- finding ---------------------------------------------------------------------------------------------------

    def first(self, kind: type, fits: Callable[[dict[str, Any]], bool], *, after: int = 0) -> int | None:
        """Number of the first event of this kind that fits; of those after event `after`."""
        with self.lock:
            found = (fields["number"] for of, fields in self.all[after:] if of is kind and fits(fields))
            return next(found, None)

    def of_turn(self) -> list[Entry]:
        """Those of the turn that lasts, without withdrawn ones."""
        with self.lock:
            return [entry for entry in self._standing() if entry[1]["turn"] == self.turn]

    def _standing(self) -> Iterator[Entry]:
        return (entry for entry in self.all if entry[1]["number"] not in self.withdrawn)
