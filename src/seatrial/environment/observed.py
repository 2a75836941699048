"""A tool call that an adapter sees from outside and records itself, while its body runs.

A framework's callbacks announce a call; its body may be a function that went through `trial.tool`, or call
`trial.tools.NAME`. That is one call, not two: code below asks here before it records or applies anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ObservedCall", "observed_call", "observing"]

_NOTHING: Any = object()


@dataclass
class ObservedCall:
    """One call as its adapter sees it."""

    name: str
    number: int | None = None
    """Event number; None when it is no tool call for the trace (a hand-off)."""
    call_id: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Those that were named, as the adapter saw them."""
    entered: bool = False
    """Whether the body began: its arguments were accepted."""
    edited: bool = False
    """Whether its arguments are those of an edited approval that its body asked for."""
    applied: bool = False
    """Whether stand-in and faults have been applied."""
    result: Any = _NOTHING
    """What the body gave, before the framework turned it into a message."""

    def result_or(self, other: Any) -> Any:
        """What the body gave, else `other`."""
        return other if self.result is _NOTHING else self.result


observing: ContextVar[ObservedCall | None] = ContextVar("seatrial_observed_call", default=None)


def observed_call(name: str | None = None) -> ObservedCall | None:
    """The observed call whose body runs here (of this tool, when a name is given); None outside any."""
    call = observing.get()
    return call if call is not None and name in (None, call.name) else None
