"""Rates of the gate: of trials, and of the tallies that graders and traces leave in trial records.

A rate is of valid trials. Where the grader behind it broke or abstained in one of them, its evidence is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain

from seatrial.core.grade import Tally, Verdict
from seatrial.core.grading import count
from seatrial.core.ledger import Counted
from seatrial.core.trial import TrialStatus
from seatrial.stats.estimate import effective_trials, wilson
from seatrial.verdict.evidence import Evidence, Figure
from seatrial.verdict.metrics import kinds_of
from seatrial.verdict.rows import pass_rate as mean_pass_rate
from seatrial.verdict.rows import tally_sums
from seatrial.verdict.totals import JUDGE_SCORE

__all__ = [
    "critical",
    "graded_by",
    "graded_rate",
    "invalid_rate",
    "lost",
    "mean_score",
    "pass_rate",
    "quality_score",
    "tallies_of",
    "traced_rate",
]

ONE_SIDED_95 = 0.90
"""A two-sided interval of 90 % has one-sided bounds of 95 %."""


def pass_rate(evidence: Evidence) -> Figure:
    """Trial pass rate with Wilson's interval and one-sided bounds on N = n^2 / sum(1/k_i)."""
    found = mean_pass_rate(evidence.results)
    if found is None:
        return Figure.none("no case has a valid trial")
    trials = effective_trials([result.valid for result in evidence.results if result.valid])
    bounds = wilson(min(found.rate, 1.0) * trials, trials, ONE_SIDED_95)
    interval = None if found.low is None or found.high is None else (found.low, found.high)
    return Figure(
        found.rate,
        f"{found.passes} of {count(found.valid, 'trial')}, {found.cases} of {count(found.of_cases, 'case')}",
        tuple(result.case_id for result in evidence.results if result.passes < result.valid),
        interval,
        None if interval is None else (bounds.low, bounds.high),
    )


def invalid_rate(evidence: Evidence) -> Figure:
    """Invalid trials of all trials on record."""
    records = sum(result.run for result in evidence.results)
    if not records:
        return Figure.none("no trial was run")
    bad = [record.case_id for record in evidence.records if record.status is TrialStatus.INVALID]
    counts = f"{len(bad)} of {count(records, 'trial')}"
    return Figure(len(bad) / records, counts, tuple(dict.fromkeys(bad)))


def tallies_of(record: Counted) -> Iterator[tuple[str, Tally]]:
    """Every (name, tally) of a trial: of its trace and of its grades."""
    return chain(record.tallies.items(), *(grade.tallies.items() for grade in record.grades))


def graded_by(record: Counted, *graders: str) -> bool:
    """Whether one of these graders was asked in this trial, in any turn, whatever came of it."""
    names = chain((grade.name for grade in record.grades), (failure.name for failure in record.grader_failures))
    return any(_key(name) in graders for name in names)


def lost(record: Counted, *graders: str) -> bool:
    """Whether one of these graders was asked and left no count: it broke, or what it needs was not observed."""
    broke = any(_key(failure.name) in graders for failure in record.grader_failures)
    return broke or any(
        _key(grade.name) in graders and grade.verdict is Verdict.ABSTAIN and not grade.tallies
        for grade in record.grades
    )


def _key(name: str) -> str:
    """A grade's name without its turn: `turn[2].handoff` is a `handoff`."""
    return name.rpartition("].")[2] if name.startswith("turn[") else name


def graded_rate(tally: str, graders: tuple[str, ...], noun: str, *, good: bool = True) -> Callable[[Evidence], Figure]:
    """The rate of a tally that these graders give. `good`: a higher one is better."""

    def compute(evidence: Evidence) -> Figure:
        gaps = [trial.last.case_id for trial in evidence.valid if lost(trial.last, *graders)]
        missing = f"{' and '.join(graders)} gave no count in {count(len(gaps), 'trial')}" if gaps else ""
        found = _rate(tally, evidence, noun, missing, good=good)
        if found is not None:
            return found
        asked = any(graded_by(record, *graders) for record in evidence.records)
        nothing = f"no valid trial has {_a(noun)}" if asked else f"no case has {_a(noun)}"
        return Figure.none(missing or nothing, absent=not asked)

    return compute


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def traced_rate(tally: str, needs: str, noun: str) -> Callable[[Evidence], Figure]:
    """The rate of a tally of the trace itself, the lower the better; `needs` is what an adapter must observe.

    Where agents report through the harness, a trial in which nothing happened may not say that it could be observed:
    such trials are counted beside the rate and do not leave it open.
    """

    def compute(evidence: Evidence) -> Figure:
        seen = sum(_observed(trial.last, needs, tally) for trial in evidence.valid)
        found = _rate(tally, evidence, noun, "", good=False)
        if found is None:
            words = needs.replace("_", " ")
            return Figure.none(f"no valid trial has {_a(noun)}" if seen else f"{words} were not observed in any trial")
        trials = count(evidence.valid_count, "trial")
        return replace(found, counts=f"{found.counts}, observed in {seen} of {trials}")

    return compute


def _observed(record: Counted, needs: str, tally: str) -> bool:
    return needs in record.observes or tally in record.tallies


def _rate(tally: str, evidence: Evidence, noun: str, missing: str, *, good: bool) -> Figure | None:
    sums = tally_sums(kinds_of(evidence.results)).get(tally)
    if sums is None or sums.rate is None:
        return None
    counts = f"{sums.hit:g} of {count(sums.of, noun)}"
    return Figure(sums.rate, counts, tuple(_against(tally, evidence, good=good)), missing=missing)


def _against(tally: str, evidence: Evidence, *, good: bool) -> Iterable[str]:
    for result in evidence.results:
        sums = tally_sums(result.kinds).get(tally)
        if sums is not None and (sums.hit < sums.of if good else sums.hit > 0):
            yield result.case_id


def critical(compute: Callable[[Evidence], Figure]) -> Callable[[Evidence], Figure]:
    """The same over cases of risk critical."""

    def narrowed(evidence: Evidence) -> Figure:
        narrow = evidence.of_risk("critical")
        return compute(narrow) if narrow.results else Figure.none("no case is of risk critical", absent=True)

    return narrowed


def mean_score(evidence: Evidence) -> Figure:
    """Mean of all scores; abstentions and broken graders are counted beside it."""
    grades = [grade for trial in evidence.valid for grade in trial.last.grades]
    scores = [grade.score for grade in grades if grade.score is not None]
    failures = sum(len(trial.last.grader_failures) for trial in evidence.valid)
    if not scores:
        return Figure.none("no valid trial has a score")
    unscored = len(grades) - len(scores) + failures
    return Figure(sum(scores) / len(scores), f"{len(scores)} of {count(len(scores) + unscored, 'grade')}")


def quality_score(evidence: Evidence) -> Figure:
    """Mean judge score."""
    found = _rate(JUDGE_SCORE, evidence, "judge score", "", good=True)
    if found is not None:
        return found
    broke = any(record.invalid_reason == "judge" for record in evidence.records)
    return Figure.none("every judge broke" if broke else "no case has a judge", absent=not broke)
