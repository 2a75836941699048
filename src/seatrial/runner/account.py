"""What is told of a trial once its agent has ended: its trace, what graders see of it, its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
from operator import itemgetter
from typing import Any

from seatrial.core.figures import figure_of
from seatrial.core.ports import Agent, GradingContext, PlannedCase
from seatrial.core.trace import Handoff, Message, ModelCallEvent, Observable, StopReason, ToolCallEvent, Trace
from seatrial.core.trajectory import trace_tallies
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.core.usage import Price, cost_of_trace, sum_tokens
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.course import Course
from seatrial.runner.grading import Grading

__all__ = ["grading_context", "record_of", "trace_of"]

_ANSWERED, _MODEL_CALLS, _TOOL_CALLS = StopReason.ANSWERED, Observable.MODEL_CALLS, Observable.TOOL_CALLS
_SPOKEN = {Message}
"""Kinds of events where people only spoke."""
_as_json = itemgetter(0)
"""Of what a turn answered (`Course.outputs`)."""


def trace_of(environment: TrialEnvironment, agent: Agent[TrialEnvironment], course: Course) -> Trace:
    """What happened, as far as it was observed."""
    recorder = environment.recorder
    events = recorder.freeze()
    if recorder.problems and course.broken is None:
        course.broken, course.detail = InvalidReason.HARNESS, f"trace: {recorder.problems[0]}"
    observes = agent.observes | recorder.observes
    unobserved = recorder.unobserved
    kinds = list(map(type, events))
    steps, by_tools = _steps(kinds, observes)
    outputs, stop_reason = tuple(map(_as_json, course.outputs)), course.stop_reason
    return Trace.trusted(
        {
            "events": events,
            "observes": observes,
            "unobserved": {what: why for what, why in unobserved.items() if what not in observes} if unobserved else {},
            "output": outputs[-1] if outputs and stop_reason is _ANSWERED else None,
            "outputs": outputs,
            "stop_reason": stop_reason,
            "error": course.error,
            "ordered": recorder.ordered,
            "log": (course.log or environment.log).text,
            "steps": steps,
            "steps_are_tool_calls": by_tools,
            "replayed": course.calls.replayed,
            "estimates": dict(recorder.spending.estimates),
        }
    )


def _steps(kinds: list[type], observes: frozenset[Observable]) -> tuple[int | None, bool]:
    """Steps among events of these kinds, and whether they are tool calls."""
    model_calls = kinds.count(ModelCallEvent)
    if model_calls or _MODEL_CALLS in observes:
        return model_calls, False
    return (kinds.count(ToolCallEvent), True) if _TOOL_CALLS in observes else (None, False)


def grading_context(
    planned: PlannedCase, environment: TrialEnvironment, trace: Trace, course: Course, prices: Mapping[str, Price]
) -> GradingContext:
    """What the graders get to see."""
    case = planned.case
    return GradingContext(
        case,
        trace,
        course.outcome if course.observed else None,
        course.outputs[-1][1] if course.outputs else None,
        case.expected,
        environment.planted,
        planned.rules,
        course.latency_ms,
        cost_of_trace(trace, prices),
    )


def record_of(
    planned: PlannedCase, trace: Trace, context: GradingContext, grading: Grading, course: Course, **more: Any
) -> TrialRecord:
    """The record; `more` are fields of it that are known elsewhere."""
    case, outcome, calls, stop_reason = planned.case, context.outcome, course.calls, course.stop_reason
    values: dict[str, Any] = {
        "case_id": case.id,
        "suite": case.suite,
        "detail": course.detail or ("" if stop_reason is _ANSWERED else _detail(course, planned)),
        "stop_reason": stop_reason,
        "error": course.error,
        "output": trace.output,
        "outcome": None if outcome is None else dict(outcome),
        "steps": trace.steps,
        "steps_are_tool_calls": trace.steps_are_tool_calls,
        "cost_usd": context.cost_usd,
        "judge_cost_usd": grading.judge_cost_usd,
        "latency_ms": figure_of(course.latency_ms),
        "seed": course.seed,
        "started": course.started,
        "case_digest": planned.digest,
        "fixture_digest": planned.fixture_digest,
        "canaries_planted": context.secrets != planned.secrets,
        "observes": _names_of(trace.observes),
        "recorded": calls.recorded,
        "replayed": calls.replayed,
    }
    values |= grading.verdict(stop_reason, course.broken, foreseen=course.waits_as_scripted)
    values |= _happened(trace)
    values |= more
    return TrialRecord.trusted(values)


def _happened(trace: Trace) -> dict[str, Any]:
    """The fields of a record that sum up the events, without those that are as by default."""
    kinds = set(map(type, trace.events))
    if kinds <= _SPOKEN:
        return {}
    happened: dict[str, Any] = {"tallies": trace_tallies(trace)}
    if ToolCallEvent in kinds:
        happened["tools"] = dict(sorted(Counter([call.name for call in trace.of(ToolCallEvent)]).items()))
    if Handoff in kinds:
        happened["handoffs"] = tuple([(handoff.source, handoff.target) for handoff in trace.of(Handoff)])
    if ModelCallEvent in kinds:
        calls = tuple(trace.of(ModelCallEvent))
        happened["models"] = tuple(sorted({call.model for call in calls if call.model}))
        happened["tokens"] = sum_tokens(calls)
    return happened


@lru_cache(maxsize=64)
def _names_of(observes: frozenset[Observable]) -> tuple[str, ...]:
    return tuple(sorted(each.value for each in observes))


def _detail(course: Course, planned: PlannedCase) -> str:
    limits = planned.case.limits
    match course.stop_reason:
        case StopReason.AGENT_ERROR:
            return course.error.summary if course.error else "the agent raised"
        case StopReason.TIMEOUT:
            return f"timeout: the limit of {limits.timeout_s:g} s was reached"
        case StopReason.MAX_STEPS if course.own_limit:
            return f"max_steps: {course.own_limit}"
        case StopReason.MAX_STEPS:
            return f"max_steps: the limit of {limits.steps} steps was reached"
        case StopReason.BUDGET:
            return f"budget: the trial went above its limit of {limits.cost_usd:.12g} USD"
        case StopReason.WAITING_APPROVAL if not course.waits_as_scripted:
            return "waiting_approval: an approval stayed unanswered"
        case _:
            return ""
