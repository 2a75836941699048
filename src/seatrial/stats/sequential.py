"""Estimates from trials that stopped early."""

from __future__ import annotations

__all__ = ["curtailed_rate"]


def curtailed_rate(passes: int, trials: int, required: int, planned: int) -> float:
    """The path-count estimate of a pass rate where trials stopped once `required` of `planned` was decided.

    Of all orders in which the trials could have led to where they stopped, the share that begin with a pass: unbiased,
    since the first trial is (Girshick, Mosteller and Savage 1946). Stopped by the r-th pass at trial t: (r-1)/(t-1); by
    the last possible fail after s passes: s/(t-1); one trial: its outcome. Where the trials ran out before a decision
    (invalid ones left too few), every order was possible and it is the plain rate.

    `passes` of `trials` valid ones, counted up to the stop. Raises ValueError for counts that the stopping rule cannot
    lead to.
    """
    fails, fails_to_lose = trials - passes, planned - required + 1
    possible = 1 <= required <= planned and 0 < trials <= planned and passes >= 0 and fails >= 0
    won, lost = passes == required, fails == fails_to_lose
    if not possible or passes > required or fails > fails_to_lose or (won and lost):
        raise ValueError(f"{passes} of {trials} trials is nowhere that {required} of {planned} could have stopped")
    if not (won or lost):
        return passes / trials
    if trials == 1:
        return float(passes)
    return (passes - won) / (trials - 1)
