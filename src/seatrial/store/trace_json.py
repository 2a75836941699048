"""A trace as JSON data for its line of `traces.jsonl`: without what is as by default."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import compress
from operator import ne
from typing import Any

from pydantic import BaseModel

from seatrial.core.frozen import defaults_of
from seatrial.core.trace import Event, ModelCallEvent, Trace

__all__ = ["trace_json"]


def trace_json(trace: Trace) -> dict[str, Any]:
    """The trace. `kind` is a default, and yet says which event it is."""
    rest = trace.model_dump(mode="json", exclude_defaults=True, exclude=_APART)
    return {"events": [_event_json(event) for event in trace.events], **rest} if trace.events else rest


_APART = {"events"}


def _event_json(event: Event) -> dict[str, Any]:
    if type(event) is ModelCallEvent:  # the one kind with a model in it
        return event.model_dump(mode="json", exclude_defaults=True) | {"kind": event.kind}
    fields = vars(event)  # in the order of their definition, as the defaults are
    return dict(compress(fields.items(), map(ne, fields.values(), _left_out(type(event)))))


@cache
def _left_out(kind: type[BaseModel]) -> Iterable[Any]:
    """What each field of an event is left out for."""
    return tuple((defaults_of(kind) | {"kind": None}).values())
