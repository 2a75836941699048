"""Estimates of one build's pass rates.

Every function takes counts and raises ValueError for an empty selection: a rate of nothing is an error, never 0 or
NaN. Nothing here needs NumPy or SciPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import comb, floor, fsum, sqrt
from statistics import NormalDist
from typing import NamedTuple

__all__ = [
    "Interval",
    "consistency",
    "effective_trials",
    "mean",
    "pass_at_k",
    "pass_hat_k",
    "quantile",
    "wilson",
    "z_value",
]


class Interval(NamedTuple):
    """Both ends of an interval for a rate, in [0, 1]."""

    low: float
    high: float


def z_value(confidence: float) -> float:
    """The two-sided standard normal quantile: 1.96 for 0.95. `confidence` lies strictly between 0 and 1."""
    return NormalDist().inv_cdf((1 + confidence) / 2)


def wilson(passes: float, trials: float, confidence: float = 0.95) -> Interval:
    """Wilson's score interval (Wilson 1927) of a rate of `passes` in `trials`.

    Both may be fractional (an equal-weight mean times its effective trials). At no pass the low end is exactly 0, at
    nothing but passes the high end is exactly 1; the other end keeps its width. Raises ValueError unless
    0 <= passes <= trials and trials > 0.
    """
    if not (trials > 0 and 0 <= passes <= trials):
        raise ValueError(f"an interval needs 0 <= passes <= trials and at least one trial, not {passes} of {trials}")
    z = z_value(confidence)
    rate, spread = passes / trials, z * z / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = sqrt(rate * (1 - rate) * spread + spread * spread / 4) / (1 + spread)
    low = 0.0 if passes == 0 else max(0.0, middle - half)
    high = 1.0 if passes == trials else min(1.0, middle + half)
    return Interval(low, high)


def mean(values: Iterable[float]) -> float:
    """The arithmetic mean, summed exactly; ValueError of nothing."""
    known = list(values)
    if not known:
        raise ValueError("a mean of nothing does not exist")
    return fsum(known) / len(known)


def effective_trials(trials: Sequence[int]) -> float:
    """N = n^2 / sum(1/k_i): the trials behind a mean over n cases of equal weight, case i having k_i valid trials."""
    if not trials or min(trials) < 1:
        raise ValueError("every case needs at least one valid trial")
    return len(trials) ** 2 / fsum(1 / count for count in trials)


def pass_at_k(passes: int, trials: int, k: int) -> float:
    """Chance that at least one of k trials passes: 1 - C(n-c, k)/C(n, k) (Chen et al. 2021)."""
    _check_draw(passes, trials, k)
    return 1 - comb(trials - passes, k) / comb(trials, k)


def pass_hat_k(passes: int, trials: int, k: int) -> float:
    """Chance that all of k trials pass: C(c, k)/C(n, k) (pass^k, Yao et al. 2024)."""
    _check_draw(passes, trials, k)
    return comb(passes, k) / comb(trials, k)


def _check_draw(passes: int, trials: int, k: int) -> None:
    if k < 1 or not 0 <= passes <= trials:
        raise ValueError(f"needs k >= 1 and 0 <= passes <= trials, not k={k} with {passes} of {trials}")
    if k > trials:
        raise ValueError(f"k={k} needs at least {k} valid trials of the case; there are {trials}")


def consistency(passes: int, trials: int) -> float | None:
    """Chance that two different trials of the case agree; None for a single trial, which has no other to agree with."""
    if not 0 <= passes <= trials or trials < 1:
        raise ValueError(f"needs 0 <= passes <= trials and at least one trial, not {passes} of {trials}")
    if trials == 1:
        return None
    fails = trials - passes
    return (passes * (passes - 1) + fails * (fails - 1)) / (trials * (trials - 1))


def quantile(values: Iterable[float], share: float) -> float:
    """The value below which `share` of the values lie, by NumPy's linear rule; ValueError of nothing."""
    ordered = sorted(values)
    if not ordered or not 0 <= share <= 1:
        raise ValueError("a quantile needs at least one value and a share in [0, 1]")
    position = share * (len(ordered) - 1)
    below = floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)
