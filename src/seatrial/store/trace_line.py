"""A trace as its line of `traces.jsonl.zst`: without what is as by default."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from seatrial.core.encoding import MODELS, line_of, parts_of
from seatrial.core.frozen import Frozen, defaults_of
from seatrial.core.trace import Observable, Trace
from seatrial.core.trial import TrialRecord

__all__ = ["trace_line"]


def trace_line(record: TrialRecord, trace: Trace) -> bytes:
    """The line, which says first whose trace it is. `kind` is a default, and yet says which event it is."""
    data = {"case_id": record.case_id, "trial_index": record.trial_index, "attempt": record.attempt}
    data |= _told(trace)
    if trace.observes:
        data["observes"] = _sorted(trace.observes)
    if trace.unobserved:
        data["unobserved"] = {str(what): why for what, why in trace.unobserved.items()}
    if trace.estimates:
        data["estimates"] = {str(turn): cost for turn, cost in trace.estimates.items()}
    return line_of(data, _parts)


@lru_cache(maxsize=64)
def _sorted(observes: frozenset[Observable]) -> list[Observable]:
    return sorted(observes)


def _parts(value: Any) -> Any:
    return _told(value) if isinstance(type(value), MODELS) else parts_of(value)


def _told(model: Frozen) -> dict[str, Any]:
    left_out = _left_out(type(model))
    return {  # most of what is left out is the default itself, which is seen sooner than that two things are equal
        name: value for name, value in vars(model).items() if value is not left_out[name] and value != left_out[name]
    }


@cache
def _left_out(kind: type[Frozen]) -> dict[str, Any]:
    """The value with which each field is left out. Not to be changed."""
    left_out = defaults_of(kind) | {"kind": None}
    return left_out | {"unobserved": {}, "estimates": {}} if kind is Trace else left_out
