from __future__ import annotations

from made import broken, failing, grade, invalid, passing, raising, record
from seatrial.verdict.trials import Cost, Seen, alike, attempts_folded, reason_of, together


def test_the_last_attempt_counts_and_every_attempt_costs():
    first = raising("a").model_copy(update={"cost_usd": 0.5})
    second = passing("a", attempt=2, cost_usd=0.25)
    (trial,) = attempts_folded([second, first])["a"]
    assert trial.passed
    assert trial.cost == Cost(0.75, 2, 0)
    assert trial.cost.usd == 0.75


def test_trials_stand_in_order_whatever_the_order_of_their_ends():
    trials = attempts_folded([passing("a", 3), failing("a", 1), passing("b"), passing("a", 2)])
    assert [trial.index for trial in trials["a"]] == [1, 2, 3]
    assert not trials["a"][0].passed


def test_an_attempt_on_record_twice_counts_once_as_first_recorded():
    (trial,) = attempts_folded([passing("a"), failing("a")])["a"]
    assert trial.passed
    assert len(trial.attempts) == 1


def test_an_unknown_cost_is_never_free():
    cost = Cost.of([passing("a", cost_usd=0.5), passing("a", 2)])
    assert cost == Cost(0.5, 1, 1)
    assert cost.usd is None
    assert Cost.of([]).usd is None


def test_bl_062_the_first_error_is_the_reason():
    crashed = raising("a", error="RuntimeError", message="token expired")
    crashed = crashed.model_copy(update={"grades": (grade("outcome", "fail", "state: expected 'done', got None"),)})
    assert reason_of(crashed) == "raised RuntimeError: token expired"


def test_the_reason_names_the_first_failing_required_grade():
    grades = (grade("tone", "fail", "rude", required=False), grade("answer", "fail", "expected 4"))
    assert reason_of(record("a", 1, "failed", grades=grades)) == "answer: expected 4"


def test_a_hard_stop_is_the_reason_with_or_without_detail():
    assert reason_of(record("a", 1, "failed", stop_reason="timeout")).startswith("timeout")
    said = record("a", 1, "failed", stop_reason="max_steps", detail="max_steps: the limit of 5 steps was reached")
    assert reason_of(said) == "max_steps: the limit of 5 steps was reached"


def test_reasons_of_invalid_trials_say_whose_fault_it_was():
    failed_grader = record("a", 1, "invalid", invalid_reason="grader", grader_failures=(broken("g"),))
    unseen = record(
        "a", 1, "invalid", invalid_reason="unobserved", grades=(grade("handoff", "abstain", "context not observed"),)
    )
    assert reason_of(failed_grader) == "g: raised ValueError: it broke"
    assert reason_of(unseen) == "handoff: context not observed"
    assert reason_of(invalid("a")) == "fixture: disk full"


def test_reasons_hold_no_memory_address():
    crash = raising("a", message="no attribute of <module.Thing object at 0x7f3a1c2d9e80>")
    assert reason_of(crash) == "raised ValueError: no attribute of <module.Thing object>"


def test_very_long_reasons_are_cut():
    assert reason_of(raising("a", message="x" * 3_000_000)).endswith("truncated, 3.0 MB")


def test_trials_are_counted_by_what_they_have_in_common_in_order_of_appearance():
    folded = attempts_folded([failing("a"), passing("a", 2), passing("a", 3), failing("a", 4), failing("b")])
    kinds = alike(folded["a"])
    assert [(kind.status, trials) for kind, trials in kinds] == [("failed", 2), ("passed", 2)]
    assert [(kind.status, trials) for kind, trials in together([*kinds, *alike(folded["b"])])] == [
        ("failed", 3),
        ("passed", 2),
    ]


def test_only_the_deciding_attempt_of_a_retried_trial_is_counted():
    trials = attempts_folded([raising("a"), passing("a", attempt=2), passing("a", 2)])["a"]
    assert [(kind.status, number) for kind, number in alike(trials)] == [("passed", 2)]
    assert (trials.retried, attempts_folded([passing("a")])["a"].retried) == (1, 0)


def test_unknown_numbers_are_counted_beside_the_known_ones():
    seen = Seen()
    for value in (1.5, None, 2):
        seen.add(value)
    assert (list(seen.known), seen.unknown, len(seen)) == ([1.5, 2.0], 1, 3)
