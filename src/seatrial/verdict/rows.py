"""Rows of the summary: suites, graders, tools, hand-offs. Every mean and ratio carries what it was counted over.

Tallies of trials and their grades are summed by name. `metric/TOOL` belongs to one tool, `metric` to the whole run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import fsum

from seatrial.core.case import Case, Expected, Thresholds
from seatrial.core.grade import Grade, GraderFailure, Verdict
from seatrial.core.trace import Observable
from seatrial.core.trial import TrialStatus
from seatrial.stats.estimate import effective_trials, mean, wilson
from seatrial.verdict.metrics import CaseResult, CaseVerdict
from seatrial.verdict.trials import Trial

__all__ = [
    "GraderRow",
    "HandoffRow",
    "PassRate",
    "Ratio",
    "SuiteRow",
    "ToolRow",
    "grader_rows",
    "handoff_rows",
    "pass_rate",
    "suite_rows",
    "tally_sums",
    "tool_rows",
]

RECALL = "required_tool_recall"
PRECISION = "tool_precision"


@dataclass(frozen=True)
class Ratio:
    """A ratio as its counts."""

    hit: float
    of: float

    @property
    def rate(self) -> float | None:
        """None when nothing was counted."""
        return self.hit / self.of if self.of else None


@dataclass(frozen=True)
class PassRate:
    """Trial pass rate: the mean of the cases' own rates, every case weighing the same."""

    rate: float
    low: float | None
    """Ends of Wilson's 95 % interval on the mean over these cases, with N = n^2 / sum(1/k_i); None: trials stopped once
    cases were decided, and no interval is known for the estimate."""
    high: float | None
    cases: int
    """Cases with a valid trial, which the mean is over."""
    of_cases: int
    """Cases selected."""
    passes: int
    valid: int
    """Trials that passed or failed."""

    @property
    def pooled(self) -> float:
        """All passes among all valid trials; differs from `rate` when cases have unequal numbers of trials."""
        return self.passes / self.valid


def pass_rate(results: Sequence[CaseResult]) -> PassRate | None:
    """The trial pass rate over these cases; None when no case has a valid trial."""
    counted = [result for result in results if result.valid]
    rates = [result.rate for result in counted if result.rate is not None]
    if not rates:
        return None
    rate = mean(rates)
    trials = effective_trials([result.valid for result in counted])
    curtailed = any(result.curtailed for result in counted)
    low, high = (None, None) if curtailed else wilson(min(rate, 1.0) * trials, trials)
    passes, valid = sum(result.passes for result in counted), sum(result.valid for result in counted)
    return PassRate(rate, low, high, len(counted), len(results), passes, valid)


@dataclass(frozen=True)
class SuiteRow:
    """One suite, or all of them together."""

    suite: str
    gate: bool
    cases: dict[str, int]
    """Cases by verdict word, every word present."""
    trials: dict[str, int]
    """Trials by status, with `planned` and `run`, every word present."""
    rate: PassRate | None
    saved: int = 0
    """Trials that were not run because their case was decided."""


def suite_row(suite: str, results: Sequence[CaseResult]) -> SuiteRow:
    """The counts of these cases."""
    verdicts = Counter(result.verdict for result in results)
    statuses: Counter[TrialStatus] = Counter()
    for result in results:
        statuses.update(result.statuses)
    planned, run = sum(result.trials for result in results), sum(result.run for result in results)
    return SuiteRow(
        suite=suite,
        gate=any(result.gate for result in results),
        cases={"total": len(results), **{str(word): verdicts[word] for word in CaseVerdict}},
        trials={"planned": planned, "run": run, **{str(word): statuses[word] for word in TrialStatus}},
        rate=pass_rate(results),
        saved=sum(result.saved for result in results),
    )


def suite_rows(results: Sequence[CaseResult]) -> tuple[SuiteRow, ...]:
    """A row a suite, in the order in which the suites first appear."""
    suites: dict[str, list[CaseResult]] = {}
    for result in results:
        suites.setdefault(result.suite, []).append(result)
    return tuple(suite_row(suite, members) for suite, members in suites.items())


@dataclass(frozen=True)
class GraderRow:
    """One grader over the trials that it was due in."""

    name: str
    required: bool
    mean: float | None
    """Of its scores; None when it gave none."""
    minimum: float | None
    """Lowest score; None when it gave none."""
    scored: int
    """Trials in which it gave a score."""
    of: int
    """Trials on record of the cases that ask for it, those that ended before it could look included."""
    passed: int
    failed: int
    abstained: int
    """What it needs was not observed."""
    failures: int
    """The grader itself broke."""


def grader_rows(results: Sequence[CaseResult], cases: Sequence[Case]) -> tuple[GraderRow, ...]:
    """A row a grader, in the order in which they first appear."""
    grades: dict[str, list[Grade]] = defaultdict(list)
    failures: dict[str, list[GraderFailure]] = defaultdict(list)
    seen: dict[str, set[str]] = {}
    for result in results:
        for trial in result.recorded:
            for grade in trial.last.grades:
                grades[grade.name].append(grade)
                seen.setdefault(grade.name, set()).add(result.case_id)
            for failure in trial.last.grader_failures:
                failures[failure.name].append(failure)
                seen.setdefault(failure.name, set()).add(result.case_id)
    asking = {case.id: case for case in cases}
    return tuple(
        _grader_row(name, grades[name], failures[name], _due(name, ids, results, asking)) for name, ids in seen.items()
    )


def _due(name: str, seen: set[str], results: Sequence[CaseResult], cases: dict[str, Case]) -> int:
    return sum(result.run for result in results if result.case_id in seen or _asks_for(cases[result.case_id], name))


def _grader_row(name: str, grades: Sequence[Grade], failures: Sequence[GraderFailure], due: int) -> GraderRow:
    scores = [grade.score for grade in grades if grade.score is not None]
    verdicts = [grade.verdict for grade in grades]
    return GraderRow(
        name=name,
        required=any(grade.required for grade in grades) or any(failure.required for failure in failures),
        mean=mean(scores) if scores else None,
        minimum=min(scores) if scores else None,
        scored=len(scores),
        of=due,
        passed=verdicts.count(Verdict.PASS),
        failed=verdicts.count(Verdict.FAIL),
        abstained=verdicts.count(Verdict.ABSTAIN),
        failures=len(failures),
    )


_TURN = re.compile(r"turn\[(\d+)\]\.(.+)")
_REPEAT = re.compile(r"#\d+$")


def _asks_for(case: Case, name: str) -> bool:
    """Whether the case asks for the grade called `name`: a crashed trial has no grade to show it."""
    turn = _TURN.fullmatch(name)
    if turn is not None:
        position = int(turn[1]) - 2  # turn 1 is the case's own input
        return 0 <= position < len(case.turns) and _expects(case.turns[position].expected, turn[2])
    own = {use.name or use.use for use in case.graders} | {use.rubric for use in case.judges}
    threshold = getattr(case.thresholds, name, None) if name in Thresholds.model_fields else None
    return _expects(case.expected, name) or _REPEAT.sub("", name) in own or threshold is not None


def _expects(expected: Expected, name: str) -> bool:
    key, _, part = name.partition(".")
    key = "max_steps" if key == "step_efficiency" else key
    if not expected.states(key):
        return False
    value = getattr(expected, key)
    return getattr(value, part, None) is not None if part else value is not False


def tally_sums(results: Iterable[CaseResult]) -> dict[str, Ratio]:
    """Every tally of every valid trial, summed by name, in alphabetical order."""
    hits: dict[str, list[float]] = defaultdict(list)
    ofs: dict[str, list[float]] = defaultdict(list)
    for trial in _trials(results):
        sources = (trial.last.tallies, *(grade.tallies for grade in trial.last.grades)) if trial.valid else ()
        for name, tally in chain.from_iterable(tallies.items() for tallies in sources):
            hits[name].append(tally.hit)
            ofs[name].append(tally.of)
    return {name: Ratio(fsum(hits[name]), fsum(ofs[name])) for name in sorted(hits)}


def _trials(results: Iterable[CaseResult]) -> Iterable[Trial]:
    return (trial for result in results for trial in result.recorded)


@dataclass(frozen=True)
class ToolRow:
    """One tool."""

    tool: str
    calls: int
    trials: int
    """Trials in which it was called."""
    of: int
    """Trials in which tool calls could be observed."""
    recall: Ratio | None
    """Trials in which its required call was made rightly, of those that required it; None: never required."""
    precision: Ratio | None
    """Trials in which it was called, required and right, of those in which it was called; None: no expectation."""


def tool_rows(results: Sequence[CaseResult]) -> tuple[ToolRow, ...]:
    """A row a tool that was called or expected, in alphabetical order."""
    calls: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    observed = 0
    for trial in _trials(results):
        observed += str(Observable.TOOL_CALLS) in trial.last.observes or bool(trial.last.tools)
        for tool, count in trial.last.tools.items():
            calls[tool] += count
            trials[tool] += 1
    ratios = tally_sums(results)
    expected = {name.partition("/")[2] for name in ratios if name.startswith((f"{RECALL}/", f"{PRECISION}/"))}
    return tuple(
        ToolRow(
            tool=tool,
            calls=calls[tool],
            trials=trials[tool],
            of=observed,
            recall=ratios.get(f"{RECALL}/{tool}"),
            precision=ratios.get(f"{PRECISION}/{tool}"),
        )
        for tool in sorted(calls.keys() | expected)
    )


@dataclass(frozen=True)
class HandoffRow:
    """One way that a conversation went from agent to agent."""

    source: str
    target: str
    count: int
    trials: int
    """Trials in which it happened."""
    of: int
    """Trials in which hand-offs could be observed."""


def handoff_rows(results: Sequence[CaseResult]) -> tuple[HandoffRow, ...]:
    """A row a (source, target), in alphabetical order."""
    count: Counter[tuple[str, str]] = Counter()
    trials: Counter[tuple[str, str]] = Counter()
    observed = 0
    for trial in _trials(results):
        observed += str(Observable.HANDOFFS) in trial.last.observes or bool(trial.last.handoffs)
        for way in trial.last.handoffs:
            count[way] += 1
        for way in set(trial.last.handoffs):
            trials[way] += 1
    return tuple(
        HandoffRow(source, target, count[source, target], trials[source, target], observed)
        for source, target in sorted(count)
    )
