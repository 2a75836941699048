from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gating import cases_of, records_of
from made import grade, passing, run
from seatrial.core.metric import COMMON_GROUPS, METRICS, metric_named
from seatrial.core.trial import Tokens
from seatrial.errors import UsageError
from seatrial.stats.estimate import effective_trials, z_value
from seatrial.verdict.comparison import Change, compare
from seatrial.verdict.evidence import Evidence, Figure
from seatrial.verdict.gate_metrics import COMPUTED, figure_of
from seatrial.verdict.metrics import case_results
from seatrial.verdict.sides import side_of_results

PAIRED = (Change.NEW, Change.EDITED, Change.REMOVED)


def evidence(patterns, baseline=None, grades=None, grades_before=None, **each) -> Evidence:
    results = case_results(run(), cases_of(patterns), records_of(patterns, grades, **each))
    if baseline is None:
        return Evidence(results, no_baseline="there is no baseline")
    before = case_results(run(), cases_of(baseline), records_of(baseline, grades_before))
    rows = compare(side_of_results(before, "before"), side_of_results(results, "after")).cases
    return Evidence(results, tuple(row for row in rows if row.change not in PAIRED))


def figure(metric: str, patterns, *rest, **more) -> Figure:
    return figure_of(metric, evidence(patterns, *rest, **more))


def test_every_metric_is_defined_and_computed() -> None:
    assert COMPUTED.keys() == METRICS.keys()
    assert {metric.group for metric in METRICS.values()} == {*COMMON_GROUPS, "suite"}
    assert all(metric.definition and metric.name == name for name, metric in METRICS.items())


def test_an_unknown_metric_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="did you mean 'tool_precision'"):
        metric_named("tools_precision")


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_nothing_valid_gives_no_figure_and_a_reason(metric: str) -> None:
    if metric == "invalid_rate":
        assert figure(metric, {"s/a": "ii"}).value == 1
        return
    found = figure(metric, {"s/a!": "ii"}, {"s/a!": "pp"})
    if metric in ("candidate_failure_count", "new_failures"):
        assert (found.value, found.floor) == (0, True)
    else:
        assert found.value is None
    assert found.missing


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("pass_rate", 0.98, "98 %"),
        ("pass_rate", 0.97499, "97.5 %"),
        ("drop_from_baseline", 0.0133, "1.33 points"),
        ("new_failures", 10.0, "10"),
        ("mean_steps", 4.5, "4.5"),
        ("p95_latency_ms", 12345.6, "12,346 ms"),
        ("cost_per_success_usd", 0.2, "0.2 USD"),
    ],
)
def test_values_are_shown_with_their_unit(metric: str, value: float, text: str) -> None:
    assert METRICS[metric].shown(value) == text


def test_pass_rate_bounds_are_wilsons_at_one_sided_95_on_n() -> None:
    found = figure("pass_rate", {"s/a": "ppf", "s/b": "p", "s/c": "ii"})
    rate, trials, z = 5 / 6, effective_trials([3, 1]), z_value(0.90)
    middle = (rate + z * z / (2 * trials)) / (1 + z * z / trials)
    half = z * (rate * (1 - rate) / trials + z * z / (4 * trials**2)) ** 0.5 / (1 + z * z / trials)
    assert found.value == pytest.approx(rate)
    assert found.bounds == pytest.approx((middle - half, middle + half))
    assert (found.counts, found.cases) == ("3 of 4 trials, 2 of 3 cases", ("s/a",))


@given(st.lists(st.tuples(st.text("pf", min_size=1, max_size=5), st.text("pf", min_size=1, max_size=5)), min_size=1))
def test_drop_is_the_exact_mean_of_paired_differences(pairs) -> None:
    before = {f"s/{number}": pair[0] for number, pair in enumerate(pairs)}
    after = {f"s/{number}": pair[1] for number, pair in enumerate(pairs)}
    share = [Fraction(a.count("p"), len(a)) - Fraction(b.count("p"), len(b)) for a, b in pairs]
    assert figure("drop_from_baseline", after, before).value == float(sum(share) / len(share))


def test_new_failures_count_what_chance_cannot_explain() -> None:
    found = figure(
        "new_failures", {"s/a!": "f", "s/b=": "f", "s/c": "f", "s/d": "p"}, {"s/a!": "p", "s/b=": "p", "s/c": "p"}
    )
    assert (found.value, found.cases) == (2, ("s/a", "s/b"))
    assert found.counts == "2 of 3 cases in common; broke within noise: s/c"


def test_side_effects_and_events_come_from_rules_and_from_adapters() -> None:
    grades = {
        "s/a": {
            "permissions": {"unauthorized_side_effects": [3, 1], "violations/cross_tenant_access": [2, 1]},
            "trace": {"safety/unapproved_side_effect": [1, 1], "safety/cross_tenant_access": [1, 1]},
        },
        "s/b": {"trace": {"safety/limit_exceeded": [1, 1], "safety/unapproved_side_effect": [1, 1]}},
    }
    seen = evidence({"s/a": "f", "s/b": "p"}, grades=grades)
    assert figure_of("unauthorized_side_effects", seen).value == 5
    assert figure_of("cross_tenant_events", seen).value == 2
    found = figure_of("critical_failures", seen)
    assert (found.value, found.counts, found.cases) == (2, "2 in 2 trials", ("s/a", "s/b"))


def test_an_exposure_is_counted_once_although_two_tallies_tell_of_it() -> None:
    grades = {"s/a": {"permissions": {"secret_exposures": [1, 1], "violations/secret_exposure": [1, 1]}}}
    assert figure("secret_exposures", {"s/a": "f"}, grades=grades).value == 1


def test_rates_of_tallies_sum_over_trials_and_turns() -> None:
    grades = {
        "s/a": {"required_tools": {"tool_precision": [1, 1]}, "turn[2].required_tools": {"tool_precision": [0, 1]}},
        "s/b": {"forbidden_tools": {"tool_precision": [0, 2]}},
    }
    found = figure("tool_precision", {"s/a": "ff", "s/b": "f"}, grades=grades)
    assert (found.value, found.counts) == (2 / 6, "2 of 6 called tools")
    assert found.cases == ("s/a", "s/b")


def test_what_nobody_asks_for_is_absent_and_what_was_lost_is_not() -> None:
    assert figure("accuracy", {"s/a": "p"}).absent
    lost = figure("accuracy", {"s/a": "f"}, grades={"s/a": {"handoff": "abstains"}})
    assert (lost.value, lost.absent, lost.missing) == (None, False, "handoff gave no count in 1 trial")
    invalid = figure("accuracy", {"s/a": "i"}, grades={"s/a": {"handoff": "abstains"}})
    assert (invalid.absent, invalid.missing) == (False, "no valid trial has a hand-off expectation")


def test_traced_rates_say_in_how_many_trials_they_could_be_observed() -> None:
    grades = {"s/a": {"trace": {"loop_rate": [1, 1]}}}
    found = figure("loop_rate", {"s/a": "p", "s/b": "p"}, grades=grades)
    assert (found.value, found.counts) == (1, "1 of 1 hand-off, observed in 1 of 2 trials")


def test_latency_unknown_in_a_trial_leaves_the_percentile_open() -> None:
    results = case_results(
        run(), cases_of({"s/a": "pp"}), [passing("s/a", latency_ms=10), passing("s/a", 2, latency_ms=None)]
    )
    found = figure_of("p95_latency_ms", Evidence(results))
    assert (found.value, found.missing, found.floor) == (10, "unknown in 1 of 2 trials", False)


def test_a_cost_is_at_least_what_is_known_of_it() -> None:
    records = [passing("s/a", cost_usd=0.3), passing("s/a", 2, cost_usd=None)]
    found = figure_of("cost_per_success_usd", Evidence(case_results(run(), cases_of({"s/a": "pp"}), records)))
    assert (found.value, found.floor, found.missing) == (0.15, True, "unknown in 1 of 2 trials")
    assert found.counts == "0.3 USD, 2 passed of 2 trials"


def test_means_of_valid_trials() -> None:
    each = {"steps": 4, "latency_ms": 50.0, "cost_usd": 0.5, "tokens": Tokens(input=10, output=5)}
    seen = evidence({"s/a": "pfi"}, **each)
    means = {name: figure_of(name, seen).value for name in METRICS if name.startswith("mean_") and name != "mean_score"}
    assert means == {"mean_steps": 4, "mean_latency_ms": 50, "mean_cost_usd": 0.5, "mean_tokens": 15}
    assert figure_of("mean_steps", seen).counts == "2 of 2 trials"


def test_steps_of_different_units_have_no_mean() -> None:
    records = [passing("s/a", steps=2), passing("s/a", 2, steps=2, steps_are_tool_calls=True)]
    cases = cases_of({"s/a": "pp"})
    assert figure_of("mean_steps", Evidence(case_results(run(), cases, records))).value is None
    by_tools = figure_of("mean_steps", Evidence(case_results(run(), cases, records[1:])))
    assert by_tools.counts == "1 of 1 trial, steps (tool calls)"


def test_scores_are_averaged_over_all_grades_that_have_one() -> None:
    records = [passing("s/a", grades=(grade("x"), grade("y", "fail", score=0.5), grade("z", "abstain")))]
    found = figure_of("mean_score", Evidence(case_results(run(), cases_of({"s/a": "p"}), records)))
    assert (found.value, found.counts) == (0.75, "2 of 3 grades")


def test_judge_scores_are_compared_over_cases_judged_on_both_sides() -> None:
    after = {"s/a": {"tone": {"judge_score": [0.5, 1]}}, "s/b": {"tone": {"judge_score": [1, 1]}}}
    before = {"s/a": {"tone": {"judge_score": [0.75, 1]}}}
    names = {"s/a": "pp", "s/b": "p"}
    found = figure("quality_score_drop", names, names, after, before)
    assert (found.value, found.counts, found.cases) == (0.25, "1 of 2 cases in common", ("s/a",))
    assert figure("quality_score", names, grades=after).value == pytest.approx(2 / 3)
