"""An AgentRun, as an agent's author returns it, read into the trial's record.

What the trial has already recorded in this turn (through `trial.tool`, `trial.tools` or `trial.record`) and the
author reports once more is one event, not two: a reported call, hand-off or model call takes the place of an equal one
on record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from seatrial.core.agent_run import AgentRun, HandoffEvent, ModelCall, ToolCall
from seatrial.core.ports import Answer
from seatrial.core.trace import Observable
from seatrial.environment.recorder import Recorder
from seatrial.environment.reports import figure
from seatrial.errors import did_you_mean

__all__ = ["answer_of"]

_USAGE_KEYS = [field.name for field in fields(ModelCall)]


_OBSERVES = (Observable.TOOL_CALLS, Observable.HANDOFFS, Observable.SAFETY)
"""What whoever returns an AgentRun could have reported."""


def answer_of(run: AgentRun, recorder: Recorder, observes: Iterable[Observable] = _OBSERVES) -> Answer:
    """Record what the author reports of this turn, and give its answer. `observes`: what it could have reported.

    Raises TypeError or ValueError naming the field that holds something else than it should.
    """
    calls = _all_of(run.tool_calls, "tool_calls", ToolCall)
    handoffs = _all_of(run.handoffs, "handoffs", HandoffEvent)
    model_calls = [_model_call(item, f"usage[{place}]") for place, item in enumerate(_items(run.usage, "usage"))]
    events = [] if run.events is None else _all_of(run.events, "events", ToolCall, HandoffEvent, ModelCall)
    safety = [_safety(item, place) for place, item in enumerate(_items(run.safety_events, "safety_events"))]
    if not isinstance(run.outcome, Mapping):
        raise TypeError(f"AgentRun.outcome must be a mapping, not {type(run.outcome).__name__}")
    answer = Answer(
        run.final_output,
        outcome=run.outcome,
        latency_ms=figure(run.latency_ms, "AgentRun.latency_ms"),
        cost_usd=figure(run.estimated_cost_usd, "AgentRun.estimated_cost_usd"),
    )
    recorder.observe(*observes)
    if run.outcome:
        recorder.observe(Observable.OUTCOME)
    recorder.report_turn(events, [*model_calls, *calls, *handoffs])
    for event, evidence in safety:
        recorder.safety(event, evidence, source="agent")
    return answer


def _items(value: Any, name: str) -> Sequence[Any]:
    if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
        raise TypeError(f"AgentRun.{name} must be a list, not {type(value).__name__}")
    return list(value)


def _all_of(value: Any, name: str, *kinds: type) -> list[Any]:
    items = _items(value, name)
    for place, item in enumerate(items):
        if not isinstance(item, kinds):
            wanted = " or ".join(kind.__name__ for kind in kinds)
            raise TypeError(f"AgentRun.{name}[{place}] must be a {wanted}, not {type(item).__name__}")
    return list(items)


def _model_call(item: Any, name: str) -> ModelCall:
    if isinstance(item, ModelCall):
        return item
    if not isinstance(item, Mapping):
        raise TypeError(f"AgentRun.{name} must be a mapping or a ModelCall, not {type(item).__name__}")
    for key in item:
        if key not in _USAGE_KEYS:
            raise TypeError(f"AgentRun.{name} has the unknown key {key!r}; {did_you_mean(str(key), _USAGE_KEYS)}")
    return ModelCall(**item)


def _safety(item: Any, place: int) -> tuple[str, Any]:
    if isinstance(item, str):
        return item, None
    if isinstance(item, Mapping) and isinstance(item.get("event"), str) and set(item) <= {"event", "evidence"}:
        return item["event"], item.get("evidence")
    raise TypeError(f"AgentRun.safety_events[{place}] must be a name or a mapping {{event, evidence}}, not {item!r}")
