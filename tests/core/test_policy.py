from __future__ import annotations

import pytest
from pydantic import ValidationError

from seatrial.core.case import Case, Thresholds
from seatrial.core.policy import GateSpec, Policy, bound_and_metric, gates_of, is_known_gate
from seatrial.errors import UsageError


def gates(data):
    return list(gates_of(Policy.model_validate(data)))


def test_a_plain_number_is_a_whole_gate() -> None:
    assert GateSpec.model_validate(0.5) == GateSpec(value=0.5)
    for wrong in (True, "0.5", float("nan"), float("inf"), None):
        with pytest.raises(ValidationError):
            GateSpec.model_validate(wrong)


@pytest.mark.parametrize(
    ("group", "spec", "suite"),
    [
        ("regression", 1, "regression"),
        ("tools", 1, None),
        ("tools", {"value": 1, "suite": "smoke"}, "smoke"),
    ],
)
def test_the_suite_that_a_gate_judges(group, spec, suite) -> None:
    (gate,) = gates({"gates": {group: {"minimum_pass_rate": spec}}})
    assert gate.suite == suite


def test_a_review_condition_asks_for_review_and_judges_all_suites() -> None:
    (gate,) = gates({"review": {"require_human_review_when": {"new_failures_exceeds": 3}}})
    assert (gate.name, gate.bound, gate.spec.level, gate.suite) == (
        "review.new_failures_exceeds",
        "maximum",
        "review",
        None,
    )
    assert gate.aliases == {"review.new_failures_exceeds", "review.new_failures"}


def test_names_of_gates() -> None:
    assert bound_and_metric("minimum_pass_rate") == ("minimum", "pass_rate")
    assert bound_and_metric("pass_rate") is None
    known = ("regression.pass_rate", "regression.minimum_pass_rate", "review.new_failures_exceeds")
    assert all(map(is_known_gate, known))
    assert not any(map(is_known_gate, ("pass_rate", ".pass_rate", "regression.", "regression.minimum_x", "")))
    with pytest.raises(UsageError, match="minimum_METRIC"):
        gates({"gates": {"regression": {"pass_rate": 1}}})


@pytest.mark.parametrize(
    ("wanted", "own", "run", "needed"),
    [
        (2, 3, 3, 2),
        (2, 3, 2, 2),
        (2, 3, 4, 3),
        (2, 3, 6, 4),
        (2, 3, 10, 7),
        (1, 3, 10, 4),
        (3, 3, 10, 10),
        (3, 3, 1, 1),
        ("all", 3, 10, 10),
        ("80%", 3, 10, 8),
    ],
)
def test_further_trials_make_required_successes_no_easier(wanted, own, run, needed) -> None:
    assert Thresholds(trials=own, required_successes=wanted).successes_needed(run) == needed


def test_fewer_trials_than_successes_are_an_error() -> None:
    with pytest.raises(ValueError, match="is 2, but only 1"):
        Thresholds(trials=3, required_successes=2).successes_needed(1)


def test_the_number_of_trials_is_no_part_of_a_cases_digest() -> None:
    plain = Case(id="a")
    assert plain.digest == Case(id="a", thresholds=Thresholds(trials=3)).digest
    assert plain.digest != Case(id="a", thresholds=Thresholds(trials=3, required_successes=2)).digest
    assert plain.digest != Case(id="a", thresholds=Thresholds(max_latency_ms=5)).digest
