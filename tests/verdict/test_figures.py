from __future__ import annotations

from made import broken, case, failing, grade, invalid, passing, record, run, ungradable
from seatrial.core.trial import Tokens
from seatrial.verdict.figures import (
    agreement,
    cost_figure,
    first_attempt,
    latency,
    mean_steps,
    mean_tokens,
    measured,
    problems,
    stops,
)
from seatrial.verdict.metrics import case_results, kinds_of


def results_of(cases, trials, **info):
    return case_results(run(**info), cases, trials)


def cost_of(results):
    return cost_figure(measured(results), sum(result.passes for result in results))


def test_first_attempt_and_consistency_are_means_over_cases():
    cases = [case("a", 2), case("b", 2), case("c")]
    results = results_of(cases, [passing("a"), failing("a", 2), passing("b"), passing("b", 2), invalid("c")])
    first, agree = first_attempt(results), agreement(results)
    assert (first.mean, first.counted, first.of) == (1.0, 2, 3)
    assert (agree.mean, agree.counted, agree.of) == (0.5, 2, 3)


def test_the_first_valid_trial_is_the_first_attempt():
    results = results_of([case("a", 2)], [invalid("a"), failing("a", 2)])
    assert first_attempt(results).mean == 0.0


def test_steps_of_different_kinds_are_never_mixed():
    trials = [passing("a", steps=4), passing("b", steps=2, steps_are_tool_calls=True), passing("c")]
    steps = mean_steps(kinds_of(results_of([case("a"), case("b"), case("c")], trials)))
    assert (steps["model calls"].mean, steps["model calls"].counted, steps["model calls"].of) == (4, 1, 2)
    assert steps["tool calls"].mean == 2


def test_tokens_that_are_unknown_are_counted_beside():
    trials = [passing("a", tokens=Tokens(input=100, output=10)), passing("b")]
    tokens = mean_tokens(measured(results_of([case("a"), case("b")], trials)))
    assert (tokens["input"].mean, tokens["input"].counted, tokens["input"].of) == (100, 1, 2)


def test_cost_tells_retried_and_invalid_trials_apart():
    retried = failing("a").model_copy(update={"cost_usd": 0.5})
    trials = [retried, passing("a", attempt=2, cost_usd=1.0), passing("b", cost_usd=3.0)]
    trials.append(invalid("c").model_copy(update={"cost_usd": 0.25}))
    cost = cost_of(results_of([case("a"), case("b"), case("c")], trials))
    assert (cost.total.usd, cost.valid.usd, cost.retried.usd, cost.invalid.usd) == (4.75, 4.0, 0.5, 0.25)
    assert cost.per_success_usd == 2.0


def test_an_unknown_cost_leaves_only_a_lower_bound():
    cost = cost_of(results_of([case("a"), case("b")], [passing("a", cost_usd=1.0), passing("b")]))
    assert cost.per_success_usd is None
    assert (cost.total.known_usd, cost.total.counted, cost.total.unknown) == (1.0, 1, 1)


def test_a_cost_per_success_without_success_does_not_exist():
    assert cost_of(results_of([case("a")], [failing("a", cost_usd=1.0)])).per_success_usd is None


def test_latency_is_that_of_valid_trials():
    trials = [passing(str(n), latency_ms=float(n)) for n in range(1, 12)]
    trials.append(invalid("x").model_copy(update={"latency_ms": 9000.0}))
    found = latency(measured(results_of([case(str(n)) for n in range(1, 12)] + [case("x")], trials)))
    assert (found.median_ms, found.p95_ms, found.slowest_ms, found.counted, found.of) == (6, 10.5, 11, 11, 11)
    assert latency(measured([])).median_ms is None


def test_problems_name_every_grader_that_broke():
    cases = [case(name) for name in "abcd"]
    trials = [passing("a"), *(ungradable(name, 1, "g") for name in "bcd")]
    found = problems(run(), results_of(cases, trials))
    assert [(p.kind, p.case, p.trial, p.grader) for p in found] == [("grader_failure", name, 1, "g") for name in "bcd"]


def test_problems_hold_abstentions_fixtures_and_what_did_not_run():
    cases = [case("a"), case("b"), case("c", 2), case("d")]
    unseen = record("a", 1, "invalid", invalid_reason="unobserved", grades=(grade("handoff", "abstain", "unseen"),))
    trials = [unseen, invalid("b"), passing("c"), record("d", 1, "ungraded")]
    found = problems(run(status="interrupted"), results_of(cases, trials))
    assert [(p.kind, p.case) for p in found] == [
        ("run", ""),
        ("abstained", "a"),
        ("fixture", "b"),
        ("not_run", "c"),
        ("ungraded", "d"),
    ]
    assert found[0].message == "the run ended interrupted: 4 of 5 trials are on record"


def test_advisory_graders_that_broke_are_told_and_change_nothing():
    told = passing("a", grader_failures=(broken("tone", required=False),))
    (problem,) = problems(run(), results_of([case("a")], [told]))
    assert (problem.kind, problem.required) == ("grader_failure", False)


def test_stops_are_counted():
    trials = [passing("a"), record("b", 1, "failed", stop_reason="timeout")]
    assert stops(kinds_of(results_of([case("a"), case("b")], trials))) == {"answered": 1, "timeout": 1}
