from __future__ import annotations

from typing import Any

import pytest

from seatrial.core.grade import Grade, Tally
from seatrial.core.trace import Observable
from seatrial.environment.recorder import Recorder
from traces import finished, grades, the_grade, trace_of, without


def went(*targets: str, reason: str | None = None, context: Any = None, completed: bool = True, **fields: Any) -> Any:
    recorder = Recorder()
    source = "desk"
    for target in targets:
        recorder.handoff(source, target, reason=reason, context=context, completed=completed)
        source = target
    return finished(recorder, **fields)


def graded(expected: dict[str, Any], trace: Any) -> Grade:
    return the_grade({"handoff": expected}, trace)


@pytest.mark.parametrize(
    ("expected", "targets", "verdict", "reason"),
    [
        ({"target": "boss"}, ("boss",), "pass", "handed over: desk -> boss"),
        ({"target": "boss"}, (), "fail", "expected a hand-off to boss, got none"),
        ({"target": "boss"}, ("peer",), "fail", "expected a hand-off to boss, got desk -> peer"),
        ({"target": "boss"}, ("peer", "boss"), "pass", None),
        (
            {"target": "boss", "max_handoffs": 1},
            ("peer", "boss"),
            "fail",
            "2 hand-offs, at most 1: desk -> peer, peer -> boss",
        ),
        ({"target": None}, (), "pass", "no hand-off"),
        ({"target": None}, ("boss",), "fail", "expected no hand-off, got desk -> boss"),
        ({"max_handoffs": 1}, (), "pass", None),
        ({"max_handoffs": 0}, ("boss",), "fail", None),
    ],
)
def test_where_it_went(expected: dict[str, Any], targets: tuple[str, ...], verdict: str, reason: str | None) -> None:
    grade = graded(expected, went(*targets))
    assert (grade.name, grade.verdict) == ("handoff", verdict)
    assert reason is None or grade.reason == reason


def test_a_refused_handoff_did_not_happen() -> None:
    assert graded({"target": None}, went("boss", completed=False)).verdict == "pass"
    assert graded({"target": "boss"}, went("boss", completed=False)).verdict == "fail"


@pytest.mark.parametrize(
    ("expected", "reason", "context", "verdict", "why"),
    [
        ({"reason": {"$contains": "limit"}}, "over the limit", {}, "pass", None),
        (
            {"reason": {"$contains": "limit"}},
            "bored",
            {},
            "fail",
            "reason: expected something containing 'limit', got 'bored'",
        ),
        ({"required_context": ["order.id"]}, None, {"order": {"id": 1}}, "pass", None),
        ({"required_context": ["order_id"]}, None, {}, "fail", "context of desk -> boss lacks order_id"),
        ({"required_context": ["order_id"]}, None, {"order_id": None}, "fail", None),
        ({"required_context": ["order_id"]}, None, None, "abstain", "the hand-off's context was not observed"),
        ({"forbidden_context": ["card"]}, None, {"order_id": 1}, "pass", None),
        ({"forbidden_context": ["card"]}, None, {"a": [{"card": 1}]}, "fail", "context of desk -> boss holds card"),
        ({"forbidden_context": ["card"]}, None, None, "abstain", "the hand-off's context was not observed"),
    ],
)
def test_what_was_handed_over(
    expected: dict[str, Any], reason: str | None, context: Any, verdict: str, why: str | None
) -> None:
    for target in ({"target": "boss"}, {}):
        grade = graded({**expected, **target}, went("boss", reason=reason, context=context))
        assert grade.verdict == verdict
        assert why is None or grade.reason == why


def test_a_wrong_target_fails_even_where_context_was_not_observed() -> None:
    grade = graded({"target": "boss", "required_context": ["x"], "forbidden_context": ["y"]}, went("peer"))
    assert (grade.verdict, grade.reason) == ("fail", "expected a hand-off to boss, got desk -> peer")


def test_a_reason_that_could_not_be_observed_abstains() -> None:
    trace = went("boss", observes=without(Observable.HANDOFF_CONTEXT))
    assert graded({"target": "boss", "reason": "limit"}, trace).reason == "the hand-off's reason was not observed"
    assert graded({"target": "boss", "reason": "limit"}, went("boss")).verdict == "fail"


def test_one_good_handoff_to_the_target_is_enough() -> None:
    recorder = Recorder()
    recorder.handoff("desk", "boss", context={})
    recorder.handoff("boss", "desk", context={})
    recorder.handoff("desk", "boss", context={"order_id": 1})
    grade = graded({"target": "boss", "required_context": ["order_id"]}, finished(recorder))
    assert grade.verdict == "pass"
    assert grade.tallies["context_transfer"] == Tally(hit=1, of=2)


def test_only_a_context_to_look_at_and_no_handoff_is_no_grade() -> None:
    assert grades({"handoff": {"required_context": ["x"]}}, went()) == {}


def test_handoffs_that_were_not_observed_abstain() -> None:
    grade = graded({"target": None}, trace_of(observes=without(Observable.HANDOFFS)))
    assert (grade.verdict, grade.reason) == ("abstain", "handoffs were not observed")


def test_tallies_of_a_decision() -> None:
    assert graded({"target": "boss"}, went("peer")).tallies == {
        "handoff_accuracy": Tally(hit=0, of=1),
        "handoff_recall": Tally(hit=0, of=1),
    }
    assert graded({"target": None}, went()).tallies == {"handoff_accuracy": Tally(hit=1, of=1)}
