"""Traces and contexts in a few words, for tests of what looks at them."""

from __future__ import annotations

from typing import Any

from seatrial.core.case import Case
from seatrial.core.grade import Grade
from seatrial.core.ports import GradingContext
from seatrial.core.trace import CallState, Observable, ToolCallEvent, Trace
from seatrial.environment.recorder import Recorder
from seatrial.graders import graders_for

EVERYTHING = frozenset(Observable)


def tool_call(
    name: str, arguments: Any = None, *, state: str = "executed", step: int | None = None, **more: Any
) -> dict[str, Any]:
    """A call for `trace_of`; calls follow one another unless they share a `step`."""
    return {"name": name, "arguments": arguments, "state": state, "step": step, **more}


def trace_of(*calls: dict[str, Any], output: Any = "done", **fields: Any) -> Trace:
    """A trace of these tool calls, observed in full and answered, unless `fields` say otherwise."""
    recorder = Recorder()
    for call in calls:
        record(recorder, call)
    return finished(recorder, output=output, **fields)


def record(recorder: Recorder, call: dict[str, Any]) -> int:
    """One call, begun and ended."""
    state, result, error = CallState(call["state"]), call.get("result"), call.get("error")
    number = recorder.begin_tool_call(
        call["name"], call["arguments"], asked=call.get("asked"), step=call["step"], call_id=call.get("call_id")
    )
    recorder.end_tool_call(number, result=result, error=error, state=state, duration_ms=1.0)
    return number


def parallel(*names: str, step: int) -> list[ToolCallEvent]:
    """Calls of one model turn that all began before one ended, numbered from `step` + 1."""
    last = step + len(names) + 1
    return [ToolCallEvent(number=step + n, name=name, step=step, ended=last) for n, name in enumerate(names, start=1)]


def finished(recorder: Recorder, *, output: Any = "done", **fields: Any) -> Trace:
    """What a recorder saw, as a trace."""
    fields = {"observes": EVERYTHING, "outputs": (output,), "steps": 1, **fields}
    return Trace(events=recorder.freeze(), output=output, **fields)


def context_of(expected: dict[str, Any] | None, trace: Trace, **fields: Any) -> GradingContext:
    """A context for a case with these expectations; `input` and the case's other keys may be given as `case`."""
    case = Case.model_validate({"id": "case", "expected": expected or {}, **fields.pop("case", {})})
    return GradingContext(case=case, trace=trace, outcome=fields.pop("outcome", None), expected=case.expected, **fields)


def grades(expected: dict[str, Any] | None, trace: Trace, **fields: Any) -> dict[str, Grade]:
    """Every grade that the case's own graders give, by name."""
    canaries, rules = bool(fields.get("secrets")), fields.get("rules")
    context = context_of(expected, trace, **fields)
    found = (grader.grade(context) for grader in graders_for(context.case, canaries=canaries, rules=rules))
    return {grade.name: grade for grade in found if isinstance(grade, Grade)}


def the_grade(expected: dict[str, Any], trace: Trace, **fields: Any) -> Grade:
    """The only grade."""
    (grade,) = grades(expected, trace, **fields).values()
    return grade


def said(expected: dict[str, Any], output: Any) -> Grade:
    """The only grade of an agent that did nothing but answer."""
    return the_grade(expected, trace_of(output=output))


def without(*unseen: Observable) -> frozenset[Observable]:
    """What is observed when these are not."""
    return EVERYTHING - set(unseen)
