"""A trace as JSON data for its line of `traces.jsonl.zst`: without what is as by default."""

from __future__ import annotations

from functools import cache
from typing import Any

from seatrial.core.frozen import Frozen, defaults_of
from seatrial.core.trace import ModelCallEvent, Trace

__all__ = ["trace_json"]


def trace_json(trace: Trace) -> dict[str, Any]:
    """The trace, as data that `line_of` takes. `kind` is a default, and yet says which event it is."""
    data = _told(trace)
    if trace.events:
        data["events"] = [_told(event) for event in trace.events]
    if trace.observes:
        data["observes"] = sorted(trace.observes)
    if trace.unobserved:
        data["unobserved"] = {str(what): why for what, why in trace.unobserved.items()}
    if trace.estimates:
        data["estimates"] = {str(turn): cost for turn, cost in trace.estimates.items()}
    return data


def _told(model: Frozen) -> dict[str, Any]:
    kind = type(model)
    left_out = _left_out(kind)
    told = {name: value for name, value in vars(model).items() if value != left_out[name]}
    nested = _NESTED.get(kind)
    if nested in told:
        told[nested] = _told(told[nested])
    return told


_NESTED = {Trace: "error", ModelCallEvent: "usage"}
"""The one field of each that holds a model itself."""


@cache
def _left_out(kind: type[Frozen]) -> dict[str, Any]:
    """The value with which each field is left out. Not to be changed."""
    left_out = defaults_of(kind) | {"kind": None}
    return left_out | {"unobserved": {}, "estimates": {}} if kind is Trace else left_out
