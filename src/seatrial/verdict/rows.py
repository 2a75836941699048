"""Rows of the summary: suites, graders, tools, hand-offs. Every mean and ratio carries what it was counted over.

Tallies of trials and their grades are summed by name. `metric/TOOL` belongs to one tool, `metric` to the whole run.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat, starmap
from math import fsum

from seatrial.core.case import Case, Expected, Thresholds
from seatrial.core.grade import Grade, GraderFailure, Verdict
from seatrial.core.trace import Observable
from seatrial.core.trial import TrialStatus
from seatrial.stats.estimate import effective_trials, mean, wilson
from seatrial.verdict.metrics import CaseResult, CaseVerdict, kinds_of, statuses_of
from seatrial.verdict.trials import Alike

__all__ = [
    "GraderRow",
    "HandoffRow",
    "PassRate",
    "Ratio",
    "SuiteRow",
    "ToolRow",
    "case_counts",
    "grader_rows",
    "grader_rows_of",
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
    rates = [rate for result in results if (rate := result.rate) is not None]
    if not rates:
        return None
    rate, passes = mean(rates), sum([result.passes for result in results])
    valid = [result.valid for result in results if result.valid]
    trials = effective_trials(valid)
    curtailed = any(result.curtailed for result in results)
    low, high = (None, None) if curtailed else wilson(min(rate, 1.0) * trials, trials)
    return PassRate(rate, low, high, len(rates), len(results), passes, sum(valid))


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
    statuses = statuses_of(kinds_of(results))
    planned, run = sum([result.trials for result in results]), sum(statuses.values())
    return SuiteRow(
        suite=suite,
        gate=any(result.gate for result in results),
        cases=case_counts(results),
        trials={"planned": planned, "run": run, **{str(word): statuses[word] for word in TrialStatus}},
        rate=pass_rate(results),
        saved=sum([result.saved for result in results if result.curtailed]),
    )


def case_counts(results: Collection[CaseResult]) -> dict[str, int]:
    """How many cases there are, and how many with each verdict."""
    verdicts = [result.verdict for result in results]
    return {"total": len(verdicts), **{str(word): verdicts.count(word) for word in CaseVerdict}}


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
    went: dict[int, list[CaseResult]] = defaultdict(list)
    for result in results:
        went[id(result.kinds)].append(result)  # cases that went alike share one counting
    alike = [(_graders_in(members[0].kinds), members) for members in went.values()]
    asking = {case.id: case for case in cases}
    due = {name: _due(name, alike, asking) for name in chain.from_iterable(seen for seen, _ in alike)}
    return _grader_rows(kinds_of(results), due)


def _graders_in(kinds: Iterable[Alike]) -> dict[str, None]:
    """The names of graders that had a say."""
    said = (chain[Grade | GraderFailure](kind.grades, kind.grader_failures) for kind, _ in kinds)
    return dict.fromkeys(each.name for each in chain.from_iterable(said))


def grader_rows_of(result: CaseResult) -> tuple[GraderRow, ...]:
    """The same of one case: whatever grader appears in it was due in all its trials."""
    return _grader_rows(result.kinds, defaultdict(lambda: result.run))


def _due(name: str, alike: Iterable[tuple[Collection[str], Sequence[CaseResult]]], cases: Mapping[str, Case]) -> int:
    """Trials of the cases in which it had a say or should have had one."""
    return sum(
        sum([result.run for result in results if name in seen or _asks_for(cases[result.case_id], name)])
        for seen, results in alike
    )


def _grader_rows(kinds: Iterable[Alike], due: Mapping[str, int]) -> tuple[GraderRow, ...]:
    found: dict[str, tuple[list[tuple[Grade, int]], list[tuple[GraderFailure, int]]]] = {}
    for kind, trials in kinds:
        for grade in kind.grades:
            found.setdefault(grade.name, ([], []))[0].append((grade, trials))
        for failure in kind.grader_failures:
            found.setdefault(failure.name, ([], []))[1].append((failure, trials))
    return tuple(_grader_row(name, *said, due[name]) for name, said in found.items())


def _grader_row(
    name: str, grades: Sequence[tuple[Grade, int]], failures: Sequence[tuple[GraderFailure, int]], due: int
) -> GraderRow:
    scores = [(grade.score, trials) for grade, trials in grades if grade.score is not None]
    scored = sum(trials for _, trials in scores)
    verdicts: dict[Verdict, int] = dict.fromkeys(Verdict, 0)
    for grade, trials in grades:
        verdicts[grade.verdict] += trials
    return GraderRow(
        name=name,
        required=any(grade.required for grade, _ in grades) or any(failure.required for failure, _ in failures),
        mean=fsum(chain.from_iterable(starmap(repeat, scores))) / scored if scored else None,
        minimum=min(scores)[0] if scores else None,
        scored=scored,
        of=due,
        passed=verdicts[Verdict.PASS],
        failed=verdicts[Verdict.FAIL],
        abstained=verdicts[Verdict.ABSTAIN],
        failures=sum(trials for _, trials in failures),
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


def tally_sums(kinds: Iterable[Alike]) -> dict[str, Ratio]:
    """Every tally of every valid trial, summed by name, in alphabetical order."""
    hits: dict[str, list[float]] = defaultdict(list)
    ofs: dict[str, list[float]] = defaultdict(list)
    for kind, trials in kinds:
        sources = (kind.tallies, *(grade.tallies for grade in kind.grades)) if kind.valid else ()
        for name, tally in chain.from_iterable(tallies.items() for tallies in sources):
            hits[name].extend(repeat(tally.hit, trials))
            ofs[name].extend(repeat(tally.of, trials))
    return {name: Ratio(fsum(hits[name]), fsum(ofs[name])) for name in sorted(hits)}


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


def tool_rows(kinds: Sequence[Alike]) -> tuple[ToolRow, ...]:
    """A row a tool that was called or expected, in alphabetical order."""
    calls: Counter[str] = Counter()
    trials: Counter[str] = Counter()
    observed = 0
    for kind, number in kinds:
        observed += number * (str(Observable.TOOL_CALLS) in kind.observes or bool(kind.tools))
        for tool, count in kind.tools.items():
            calls[tool] += count * number
            trials[tool] += number
    ratios = tally_sums(kinds)
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


def handoff_rows(kinds: Iterable[Alike]) -> tuple[HandoffRow, ...]:
    """A row a (source, target), in alphabetical order."""
    count: Counter[tuple[str, str]] = Counter()
    trials: Counter[tuple[str, str]] = Counter()
    observed = 0
    for kind, number in kinds:
        observed += number * (str(Observable.HANDOFFS) in kind.observes or bool(kind.handoffs))
        for way in kind.handoffs:
            count[way] += number
        for way in set(kind.handoffs):
            trials[way] += number
    return tuple(
        HandoffRow(source, target, count[source, target], trials[source, target], observed)
        for source, target in sorted(count)
    )
