from __future__ import annotations

import json
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.stats.estimate import (
    consistency,
    effective_trials,
    mean,
    pass_at_k,
    pass_hat_k,
    quantile,
    wilson,
    z_value,
)

VECTORS = json.loads((Path(__file__).parents[1] / "data/statistics/vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", VECTORS["wilson_95"], ids=str)
def test_wilson_matches_the_reference(row):
    interval = wilson(row["successes"], row["trials"])
    assert interval == pytest.approx((row["low"], row["high"]), abs=1e-12)


@pytest.mark.parametrize("row", VECTORS["pass_at_k"], ids=str)
def test_pass_at_k_matches_the_reference(row):
    assert pass_at_k(row["c"], row["n"], row["k"]) == pytest.approx(row["value"], abs=1e-12)


@pytest.mark.parametrize("row", VECTORS["pass_hat_k"], ids=str)
def test_pass_hat_k_matches_the_reference(row):
    assert pass_hat_k(row["c"], row["n"], row["k"]) == pytest.approx(row["value"], abs=1e-12)


@pytest.mark.parametrize("row", VECTORS["suite_interval"], ids=str)
def test_the_interval_for_these_cases_matches_the_reference(row):
    rate = mean(passes / row["k"] for passes in row["passes"])
    trials = effective_trials([row["k"]] * len(row["passes"]))
    assert wilson(rate * trials, trials) == pytest.approx(row["these_cases"], abs=1e-6)


def test_bl_058_intervals_keep_their_width_at_the_boundary():
    few, many = wilson(25, 25), wilson(5000, 5000)
    assert round(few.low, 4) == 0.8668
    assert round(many.low, 4) == 0.9992
    assert few.high == many.high == 1.0
    assert wilson(0, 25).low == 0.0
    assert wilson(0, 25).high == pytest.approx(1 - few.low)


def test_z_is_at_full_precision():
    assert z_value(0.95) == pytest.approx(1.959963984540054, abs=1e-14)
    assert z_value(0.90) == pytest.approx(1.6448536269514722, abs=1e-14)


@given(st.integers(1, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), st.floats(0.5, 0.999))
def test_wilson_holds_the_rate_and_mirrors(counts, confidence):
    passes, trials = counts
    low, high = wilson(passes, trials, confidence)
    assert 0 <= low <= passes / trials <= high <= 1
    assert low < high
    mirrored = wilson(trials - passes, trials, confidence)
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-9)


@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(1, n))))
def test_pass_at_k_and_pass_hat_k_agree_with_counting(counts):
    passes, trials, k = counts
    assert 0 <= pass_hat_k(passes, trials, k) <= passes / trials + 1e-12
    assert passes / trials - 1e-12 <= pass_at_k(passes, trials, k) <= 1
    # all k fail exactly when none passes
    assert pass_at_k(passes, trials, k) == pytest.approx(1 - pass_hat_k(trials - passes, trials, k))


@given(st.integers(2, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_consistency_is_the_share_of_agreeing_pairs(counts):
    passes, trials = counts
    outcomes = [True] * passes + [False] * (trials - passes)
    pairs = [outcomes[i] == outcomes[j] for i in range(trials) for j in range(trials) if i != j]
    assert consistency(passes, trials) == pytest.approx(sum(pairs) / len(pairs))


def test_a_single_trial_has_no_consistency():
    assert consistency(1, 1) is None


def test_asking_for_more_trials_than_there_are_says_how_many_are_needed():
    with pytest.raises(ValueError, match="at least 5 valid trials"):
        pass_at_k(2, 3, 5)


@pytest.mark.parametrize(
    "ask",
    [
        lambda: mean([]),
        lambda: wilson(0, 0),
        lambda: wilson(4, 3),
        lambda: wilson(nan, 3),
        lambda: wilson(1, nan),
        lambda: effective_trials([]),
        lambda: effective_trials([3, 0]),
        lambda: consistency(0, 0),
        lambda: quantile([], 0.5),
        lambda: pass_at_k(0, 0, 1),
    ],
)
def test_a_rate_of_nothing_is_an_error(ask):
    with pytest.raises(ValueError):  # noqa: PT011  each has its own message
        ask()


@given(st.lists(st.integers(1, 50), min_size=1))
def test_effective_trials_lie_between_the_least_and_the_mean_number(trials):
    behind = effective_trials(trials)
    assert min(trials) * len(trials) - 1e-9 <= behind <= sum(trials) + 1e-9


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50), st.floats(0, 1))
def test_quantile_follows_numpys_linear_rule(values, share):
    numpy = pytest.importorskip("numpy")
    assert quantile(values, share) == pytest.approx(float(numpy.quantile(values, share)), rel=1e-9, abs=1e-6)


def test_infinite_counts_are_refused():
    with pytest.raises(ValueError, match="at least one trial"):
        wilson(inf, 3)
