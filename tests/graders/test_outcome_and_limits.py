from __future__ import annotations

from typing import Any

import pytest

from seatrial.core.grade import Tally
from seatrial.core.trace import StopReason
from traces import grades, the_grade, tool_call, trace_of

WANTED = {"outcome": {"refund_status": "pending", "order": {"id": "$input.order"}}}
CASE = {"input": {"order": "O-100"}}


@pytest.mark.parametrize(
    ("outcome", "verdict", "reason"),
    [
        ({"refund_status": "pending", "order": {"id": "O-100", "x": 1}, "y": 2}, "pass", "the outcome is as expected"),
        (
            {"refund_status": "issued", "order": {"id": "O-1"}},
            "fail",
            "outcome.refund_status: expected 'pending', got 'issued'; outcome.order.id: expected 'O-100', got 'O-1'",
        ),
        ({"refund_status": "pending", "order": None}, "fail", None),
        (None, "abstain", "the outcome was not observed"),
        ({"refund_status": "pending"}, "abstain", "order of the outcome was not observed"),
        ({"refund_status": "issued"}, "fail", None),
        ({}, "abstain", "refund_status, order of the outcome were not observed"),
    ],
)
def test_outcome(outcome: Any, verdict: str, reason: str | None) -> None:
    grade = the_grade(WANTED, trace_of(), outcome=outcome, case=CASE)
    assert (grade.name, grade.verdict) == ("outcome", verdict)
    assert reason is None or grade.reason == reason


def test_a_key_that_must_be_absent_may_be_absent() -> None:
    assert the_grade({"outcome": {"refund": {"$absent": True}}}, trace_of(), outcome={}).verdict == "pass"


def test_the_outcome_is_graded_when_the_agent_gave_no_answer() -> None:
    trace = trace_of(output=None, stop_reason=StopReason.AGENT_ERROR)
    assert the_grade({"outcome": {"a": 1}}, trace, outcome={"a": 1}).verdict == "pass"


@pytest.mark.parametrize(
    ("steps", "by_tools", "verdict", "score", "reason"),
    [
        (4, False, "pass", 1.0, "4 steps, at most 4"),
        (5, False, "fail", 0.75, "5 steps, more than 4"),
        (6, True, "fail", 0.5, "6 steps (tool calls), more than 4"),
        (99, False, "fail", 0.0, "99 steps, more than 4"),
        (None, False, "abstain", None, "neither model calls nor tool calls were observed"),
    ],
)
def test_step_efficiency(steps: Any, by_tools: bool, verdict: str, score: float | None, reason: str) -> None:
    grade = the_grade({"max_steps": 4}, trace_of(steps=steps, steps_are_tool_calls=by_tools))
    assert (grade.name, grade.verdict, grade.score, grade.reason) == ("step_efficiency", verdict, score, reason)
    assert grade.tallies == ({} if steps is None else {"steps": Tally(hit=steps, of=1)})


@pytest.mark.parametrize(
    ("name", "limit", "measured", "verdict", "reason"),
    [
        ("max_latency_ms", 12000.0, {"latency_ms": 12000.0}, "pass", "within the limit of 12000 ms"),
        ("max_latency_ms", 12000.0, {"latency_ms": 12000.1}, "fail", "above the limit of 12000 ms"),
        ("max_latency_ms", 12000.0, {}, "abstain", "the latency is unknown"),
        ("max_estimated_cost_usd", 0.2, {"cost_usd": 0.1}, "pass", "within the limit of 0.2 USD"),
        ("max_estimated_cost_usd", 0.2, {"cost_usd": 0.3}, "fail", "above the limit of 0.2 USD"),
        ("max_estimated_cost_usd", 0.0, {}, "abstain", "the cost is unknown"),
        ("max_latency_ms", 2500000.0, {"latency_ms": 1.0}, "pass", "within the limit of 2500000 ms"),
    ],
)
def test_measured_limits(name: str, limit: float, measured: dict[str, float], verdict: str, reason: str) -> None:
    grade = the_grade({}, trace_of(tool_call("a")), case={"thresholds": {name: limit}}, **measured)
    assert (grade.name, grade.verdict, grade.reason) == (name, verdict, reason)


def test_a_case_that_expects_nothing_gets_no_grade() -> None:
    assert grades({}, trace_of()) == {}
