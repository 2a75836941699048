"""What is told of a trial once its agent has ended: its trace, what graders see of it, its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache
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


def trace_of(environment: TrialEnvironment, agent: Agent[TrialEnvironment], course: Course) -> Trace:
    """What happened, as far as it was observed."""
    recorder = environment.recorder
    events = recorder.freeze()
    if recorder.problems and course.broken is None:
        course.broken, course.detail = InvalidReason.HARNESS, f"trace: {recorder.problems[0]}"
    observes = agent.observes | recorder.observes
    unobserved = recorder.unobserved
    kinds = [type(event) for event in events]
    model_calls, tool_calls = kinds.count(ModelCallEvent), kinds.count(ToolCallEvent)
    by_tools = not model_calls and Observable.MODEL_CALLS not in observes
    seen = Observable.TOOL_CALLS in observes if by_tools else True
    outputs = tuple([output for output, _ in course.outputs])
    return Trace.trusted(
        {
            "events": events,
            "observes": observes,
            "unobserved": {what: why for what, why in unobserved.items() if what not in observes} if unobserved else {},
            "output": outputs[-1] if outputs and course.stop_reason is StopReason.ANSWERED else None,
            "outputs": outputs,
            "stop_reason": course.stop_reason,
            "error": course.error,
            "ordered": recorder.ordered,
            "log": (course.log or environment.log).text,
            "steps": (tool_calls if by_tools else model_calls) if seen else None,
            "steps_are_tool_calls": by_tools and seen,
            "replayed": course.calls.replayed,
            "estimates": dict(recorder.spending.estimates),
        }
    )


def grading_context(
    planned: PlannedCase, environment: TrialEnvironment, trace: Trace, course: Course, prices: Mapping[str, Price]
) -> GradingContext:
    """What the graders get to see."""
    case = planned.case
    return GradingContext(
        case,
        trace,
        course.outcome if course.observed else None,
        output=course.outputs[-1][1] if course.outputs else None,
        expected=case.expected,
        rules=planned.rules,
        secrets=environment.planted,
        latency_ms=course.latency_ms,
        cost_usd=cost_of_trace(trace, prices),
    )


def record_of(
    planned: PlannedCase, trace: Trace, context: GradingContext, grading: Grading, course: Course, **more: Any
) -> TrialRecord:
    """The record; `more` are fields of it that are known elsewhere."""
    case = planned.case
    return TrialRecord.trusted(
        {
            **more,
            "case_id": case.id,
            "suite": case.suite,
            **grading.verdict(course.stop_reason, course.broken, foreseen=course.waits_as_scripted),
            "detail": course.detail or _detail(course, planned),
            "stop_reason": course.stop_reason,
            "error": course.error,
            "output": trace.output,
            "outcome": None if context.outcome is None else dict(context.outcome),
            "steps": trace.steps,
            "steps_are_tool_calls": trace.steps_are_tool_calls,
            **_happened(trace),
            "cost_usd": context.cost_usd,
            "judge_cost_usd": grading.judge_cost_usd,
            "latency_ms": figure_of(course.latency_ms),
            "seed": course.seed,
            "started": course.started,
            "case_digest": planned.digest,
            "fixture_digest": planned.fixture_digest,
            "canaries_planted": context.secrets != planned.secrets,
            "observes": _names_of(trace.observes),
            "recorded": course.calls.recorded,
            "replayed": course.calls.replayed,
        }
    )


_SPOKEN = frozenset((Message,))


def _happened(trace: Trace) -> dict[str, Any]:
    """The fields of a record that sum up the events. Where people only spoke they are as by default."""
    if _SPOKEN.issuperset(map(type, trace.events)):
        return {}
    calls = tuple(trace.of(ModelCallEvent))
    names = [call.name for call in trace.of(ToolCallEvent)]
    return {
        "tools": dict(sorted(Counter(names).items())),
        "handoffs": tuple([(handoff.source, handoff.target) for handoff in trace.of(Handoff)]),
        "tallies": trace_tallies(trace),
        "models": tuple(sorted({call.model for call in calls if call.model})),
        "tokens": sum_tokens(calls),
    }


@lru_cache(maxsize=64)
def _names_of(observes: frozenset[Observable]) -> tuple[str, ...]:
    return tuple(sorted(each.value for each in observes))


def _detail(course: Course, planned: PlannedCase) -> str:
    limits = planned.case.limits
    if course.stop_reason is StopReason.ANSWERED:
        return ""
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
