"""Figures of a candidate beside its baseline, over the cases that both sides ran in the same form.

New and edited cases are in none of them: adding a case never counts as a loss. A case without a valid trial on a side
leaves the figure open.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from seatrial.core.grading import count, listed
from seatrial.verdict.comparison import CaseComparison, Change
from seatrial.verdict.evidence import Evidence, Figure
from seatrial.verdict.metric_rates import quality_score
from seatrial.verdict.sides import SideCase
from seatrial.verdict.totals import JUDGE_SCORE

__all__ = ["drop_from_baseline", "new_failures", "quality_score_drop"]

Computed = Callable[[Evidence], Figure]


def _with_baseline(compute: Computed) -> Computed:
    """The same where there are cases to compare, else no figure."""

    def guarded(evidence: Evidence) -> Figure:
        if evidence.no_baseline:
            return Figure.none(evidence.no_baseline)
        if not evidence.pairs:
            return Figure.none("no case is in common with the baseline")
        return compute(evidence)

    return guarded


def _open(evidence: Evidence) -> str:
    ids = [pair.case_id for pair in evidence.pairs if pair.change is Change.INCOMPLETE]
    return f"{listed(ids)}: no valid trial on a side" if ids else ""


@_with_baseline
def drop_from_baseline(evidence: Evidence) -> Figure:
    """Mean of p_i(baseline) - p_i(candidate), in exact fractions."""
    drops = {pair.case_id: drop for pair in evidence.pairs if (drop := _drop(pair)) is not None}
    if not drops:
        return Figure.none(_open(evidence))
    return Figure(
        float(sum(drops.values()) / len(drops)),
        f"{len(drops)} of {count(len(evidence.pairs), 'case')} in common",
        tuple(case_id for case_id, drop in drops.items() if drop > 0),
        missing=_open(evidence),
    )


def _drop(pair: CaseComparison) -> Fraction | None:
    before, after = pair.baseline, pair.candidate
    if before is None or after is None or not (before.valid and after.valid):
        return None
    return Fraction(before.passes, before.valid) - Fraction(after.passes, after.valid)


@_with_baseline
def new_failures(evidence: Evidence) -> Figure:
    """Cases that broke on grounds that chance cannot explain away; the others are named beside the count."""
    broke = [pair for pair in evidence.pairs if pair.change is Change.BROKE]
    counted = tuple(pair.case_id for pair in broke if pair.grounds)
    noise = [pair.case_id for pair in broke if not pair.grounds]
    counts = f"{len(counted)} of {count(len(evidence.pairs), 'case')} in common"
    counts += f"; broke within noise: {listed(noise)}" if noise else ""
    return Figure(float(len(counted)), counts, counted, missing=_open(evidence), floor=True)


def quality_score_drop(evidence: Evidence) -> Figure:
    """Mean over cases judged on both sides of the baseline's judge score minus the candidate's."""
    now = quality_score(evidence)
    return now if now.value is None else _quality_drop(evidence)


@_with_baseline
def _quality_drop(evidence: Evidence) -> Figure:
    drops = {
        pair.case_id: before - after
        for pair in evidence.pairs
        if (before := _score(pair.baseline)) is not None and (after := _score(pair.candidate)) is not None
    }
    if not drops:
        return Figure.none("no case was judged on both sides")
    counts = f"{len(drops)} of {count(len(evidence.pairs), 'case')} in common"
    worse = tuple(case_id for case_id, drop in drops.items() if drop > 0)
    return Figure(sum(drops.values()) / len(drops), counts, worse)


def _score(side: SideCase | None) -> float | None:
    found = None if side is None else side.summed.sums.get(JUDGE_SCORE)
    return None if found is None else found.mean
