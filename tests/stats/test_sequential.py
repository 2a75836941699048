"""The estimate of curtailed cases against every order in which trials could have come."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from seatrial.stats.sequential import curtailed_rate

PLANS = [(required, planned) for planned in range(1, 8) for required in range(1, planned + 1)]


def stopped(outcomes: tuple[int, ...], required: int, planned: int) -> tuple[int, ...]:
    """The outcomes up to the trial that decided, one by one, as the rule is told."""
    for length in range(1, len(outcomes) + 1):
        passes = sum(outcomes[:length])
        if passes >= required or planned - (length - passes) < required:
            return outcomes[:length]
    return outcomes


def expected_value(required: int, planned: int, valid: int, rate: Fraction) -> Fraction:
    """Over all orders of `valid` valid trials, by brute force."""
    total = Fraction(0)
    for outcomes in product((0, 1), repeat=valid):
        chance = Fraction(1)
        for passed in outcomes:
            chance *= rate if passed else 1 - rate
        seen = stopped(outcomes, required, planned)
        estimate = curtailed_rate(sum(seen), len(seen), required, planned)
        total += chance * Fraction(estimate).limit_denominator(1000)
    return total


@pytest.mark.parametrize(("required", "planned"), PLANS)
@pytest.mark.parametrize("rate", [Fraction(0), Fraction(1, 3), Fraction(9, 10), Fraction(1)])
def test_the_estimate_is_unbiased_whatever_the_rate(required: int, planned: int, rate: Fraction) -> None:
    assert expected_value(required, planned, planned, rate) == rate


@pytest.mark.parametrize(("required", "planned"), [(2, 3), (3, 5), (5, 5), (1, 4)])
@pytest.mark.parametrize("invalid", [1, 2])
def test_the_estimate_stays_unbiased_when_invalid_trials_use_up_the_plan(
    required: int, planned: int, invalid: int
) -> None:
    assert expected_value(required, planned, planned - invalid, Fraction(2, 5)) == Fraction(2, 5)


@pytest.mark.parametrize(("required", "planned"), PLANS)
def test_the_estimate_is_the_share_of_paths_that_begin_with_a_pass(required: int, planned: int) -> None:
    paths = {stopped(outcomes, required, planned) for outcomes in product((0, 1), repeat=planned)}
    for path in paths:
        alike = [other for other in paths if (sum(other), len(other)) == (sum(path), len(path))]
        share = sum(other[0] for other in alike) / len(alike)
        assert curtailed_rate(sum(path), len(path), required, planned) == pytest.approx(share, abs=1e-15)


@pytest.mark.parametrize(
    ("passes", "trials", "required", "planned", "estimate"),
    [
        (1, 1, 1, 3, 1.0),  # r = 1: the first trial's outcome
        (1, 3, 1, 3, 0.0),
        (2, 3, 3, 3, 1.0),  # r = k
        (0, 1, 3, 3, 0.0),
        (2, 3, 2, 3, 0.5),  # the r-th pass at trial t: (r-1)/(t-1)
        (1, 3, 2, 3, 0.5),  # the last possible fail after s passes: s/(t-1)
        (1, 2, 2, 3, 0.5),  # undecided: the plain rate
    ],
)
def test_the_estimate_by_hand(passes: int, trials: int, required: int, planned: int, estimate: float) -> None:
    assert curtailed_rate(passes, trials, required, planned) == estimate


@pytest.mark.parametrize(
    ("passes", "trials", "required", "planned"), [(3, 3, 2, 3), (0, 3, 2, 3), (0, 0, 1, 1), (1, 1, 4, 3), (-1, 2, 2, 3)]
)
def test_counts_that_the_rule_cannot_lead_to_are_an_error(
    passes: int, trials: int, required: int, planned: int
) -> None:
    with pytest.raises(ValueError, match="nowhere"):
        curtailed_rate(passes, trials, required, planned)
