"""Figures of a whole run: rates, means, money, and the list of what stands between them and the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from math import fsum

from seatrial.core.costs import Spent
from seatrial.core.grade import Verdict
from seatrial.core.ledger import Entry, Likeness
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trial import InvalidReason, TrialStatus
from seatrial.stats.estimate import consistency, mean, quantile
from seatrial.verdict.metrics import CaseResult, CaseVerdict, kinds_of
from seatrial.verdict.trials import Alike, Cost, Seen, failure_text, reason_of, stable

__all__ = [
    "CostFigure",
    "Latency",
    "Mean",
    "Measured",
    "Problem",
    "Saved",
    "agreement",
    "cost_figure",
    "first_attempt",
    "latency",
    "mean_of",
    "mean_steps",
    "mean_tokens",
    "measured",
    "problems",
    "saved",
    "stops",
]


@dataclass(frozen=True)
class Mean:
    """A mean with the number it was taken over."""

    mean: float | None
    """None when nothing was counted."""
    counted: int
    of: int


def mean_of(values: Sequence[float | None]) -> Mean:
    """The mean of the known values; what is None is counted beside it."""
    known = [value for value in values if value is not None]
    return Mean(mean(known) if known else None, len(known), len(values))


@dataclass(frozen=True)
class Measured:
    """What trials took, as it was measured in each."""

    latency_ms: Seen = field(default_factory=Seen)
    """Of valid trials; so are tokens and `valid`."""
    input_tokens: Seen = field(default_factory=Seen)
    output_tokens: Seen = field(default_factory=Seen)
    valid: Seen = field(default_factory=Seen)
    """USD; so are the others."""
    invalid: Seen = field(default_factory=Seen)
    """Of the deciding attempts of invalid and ungraded trials."""
    replaced: Seen = field(default_factory=Seen)
    """Of attempts that a later one replaced."""
    judges: Seen = field(default_factory=Seen)
    """Of the models behind judges, over every attempt that asked one."""

    def take(self, last: Entry) -> None:
        """Note the deciding attempt of one more trial."""
        spent = last.spent
        if last.alike.valid:
            tokens = last.tokens if spent.tokens is None else spent.tokens
            self.latency_ms.add(last.latency_ms)
            self.input_tokens.add(tokens.input)
            self.output_tokens.add(tokens.output)
            self.valid.add(spent.cost_usd)
        else:
            self.invalid.add(spent.cost_usd)
        self._take_judges(spent)

    def take_replaced(self, entry: Entry) -> None:
        """Note an attempt that a later one replaced."""
        self.replaced.add(entry.cost_usd)
        self._take_judges(entry.spent)

    def _take_judges(self, spent: Spent) -> None:
        if spent.judge_cost_usd != 0:
            self.judges.add(spent.judge_cost_usd)


def measured(results: Iterable[CaseResult]) -> Measured:
    """What the trials of these cases took, read in one pass."""
    found = Measured()
    for result in results:
        for entry in result.recorded.deciding:
            found.take(entry)
        for entry in result.recorded.replaced:
            found.take_replaced(entry)
    return found


def mean_steps(kinds: Iterable[Alike]) -> dict[str, Mean]:
    """Mean steps of valid trials, by what a step was: `model calls` and `tool calls` are never mixed."""
    units: dict[str, list[float | None]] = {}
    for kind, trials in kinds:
        if kind.valid:
            unit = "tool calls" if kind.steps_are_tool_calls else "model calls"
            units.setdefault(unit, []).extend(repeat(kind.steps, trials))
    return {unit: mean_of(units[unit]) for unit in sorted(units)}


def mean_tokens(taken: Measured) -> dict[str, Mean]:
    """Mean input and output tokens of valid trials."""
    return {"input": _mean(taken.input_tokens), "output": _mean(taken.output_tokens)}


def _mean(seen: Seen) -> Mean:
    return Mean(mean(seen.known) if seen.known else None, len(seen.known), len(seen))


def first_attempt(results: Sequence[CaseResult]) -> Mean:
    """Mean over cases of whether the first valid trial passed."""
    return mean_of([_first(result) for result in results])


def _first(result: CaseResult) -> float | None:
    if result.passes in (0, result.valid):
        return float(result.passes > 0) if result.valid else None
    return next(float(trial.passed) for trial in result.recorded if trial.valid)


def agreement(results: Sequence[CaseResult]) -> Mean:
    """Mean over cases of the chance that two of its trials agree; cases with a single valid trial have none, nor have
    those whose trials stopped at the one that decided."""
    counts = [(0, 0) if result.curtailed else (result.passes, result.valid) for result in results]
    chances = {pair: consistency(*pair) if pair[1] else None for pair in set(counts)}
    return mean_of([chances[pair] for pair in counts])


@dataclass(frozen=True)
class CostFigure:
    """Money, in USD."""

    total: Cost
    """Of every attempt on record."""
    valid: Cost
    """Of the deciding attempts of valid trials."""
    retried: Cost
    """Of attempts that a later one replaced."""
    invalid: Cost
    """Of the deciding attempts of invalid and ungraded trials."""
    judges: Cost
    """Of the models behind judges, over every attempt; beside the others, not in them."""
    passes: int

    @property
    def per_success_usd(self) -> float | None:
        """Cost of valid trials a passed one; None when nothing passed or a cost is unknown."""
        return None if self.valid.usd is None or not self.passes else self.valid.usd / self.passes


def cost_figure(taken: Measured, passes: int) -> CostFigure:
    """What the run cost, apart by what it bought."""
    return CostFigure(
        total=Cost.together(taken.valid, taken.replaced, taken.invalid),
        valid=Cost.together(taken.valid),
        retried=Cost.together(taken.replaced),
        invalid=Cost.together(taken.invalid),
        judges=Cost.together(taken.judges),
        passes=passes,
    )


@dataclass(frozen=True)
class Saved:
    """What curtailment saved."""

    trials: int
    """Trials that no verdict needed."""
    usd: float | None
    """About what they would have cost: each what a trial of its case cost on average. None: known of no such case."""
    priced: int
    """Trials of them whose cost can be told so."""


def saved(info: RunInfo, results: Sequence[CaseResult]) -> Saved | None:
    """The trials that were not needed, as money too; None for a run that was not curtailed."""
    if not info.curtailed:
        return None
    shares = [(result.saved, _mean_cost(result)) for result in results if result.saved]
    known = [(trials, cost) for trials, cost in shares if cost is not None]
    money = fsum(trials * cost for trials, cost in known) if known or not shares else None
    return Saved(sum(trials for trials, _ in shares), money, sum(trials for trials, _ in known))


def _mean_cost(result: CaseResult) -> float | None:
    costs = [usd for trial in result.recorded if (usd := trial.cost.usd) is not None]
    return fsum(costs) / len(costs) if costs else None


@dataclass(frozen=True)
class Latency:
    """The agent's own time in valid trials, in milliseconds."""

    median_ms: float | None
    p95_ms: float | None
    slowest_ms: float | None
    counted: int
    of: int


def latency(taken: Measured) -> Latency:
    """Median, 95th percentile (linear rule) and largest latency of valid trials; None when none was measured."""
    known, of = taken.latency_ms.known, len(taken.latency_ms)
    if not known:
        return Latency(None, None, None, 0, of)
    return Latency(quantile(known, 0.5), quantile(known, 0.95), max(known), len(known), of)


def stops(kinds: Iterable[Alike]) -> dict[str, int]:
    """Trials by what ended them, in alphabetical order."""
    counts: Counter[str] = Counter()
    for kind, trials in kinds:
        counts[str(kind.stop_reason)] += trials
    return dict(sorted(counts.items()))


@dataclass(frozen=True)
class Problem:
    """Something that leaves the evidence thinner than it looks."""

    kind: str
    """grader_failure, abstained, fixture, harness, judge, leftovers, ungraded, not_run or run."""
    message: str
    case: str = ""
    trial: int | None = None
    """None when it is not about one trial."""
    grader: str = ""
    required: bool = True
    """Whether it touched the verdict: advisory graders do not."""


def problems(info: RunInfo, results: Sequence[CaseResult]) -> tuple[Problem, ...]:
    """Everything that is no verdict on a case, case by case; what ended the whole run first."""
    found: list[Problem] = []
    if info.status in (RunStatus.INTERRUPTED, RunStatus.OUT_OF_BUDGET):
        word = str(info.status).replace("_", " ")
        run, planned = sum(result.run for result in results), sum(result.trials for result in results)
        found.append(Problem("run", f"the run ended {word}: {run} of {planned} trials are on record"))
    telling = {id(kind) for kind, _ in kinds_of(results) if _is_telling(kind)}
    for result in results:
        if telling and not telling.isdisjoint([id(kind) for kind, _ in result.kinds]):
            for entry in result.recorded.deciding:
                found.extend(_trial_problems(entry))
        if result.run < result.trials and (missing := result.trials - result.run - result.saved):
            found.append(Problem("not_run", f"{missing} of {result.trials} trials did not run", result.case_id))
        if result.verdict is CaseVerdict.UNGRADED:
            found.append(Problem("ungraded", result.reason, result.case_id))
    return tuple(found)


def _is_telling(kind: Likeness) -> bool:
    """Whether such a trial has something to say here."""
    silent = Verdict.ABSTAIN in [grade.verdict for grade in kind.grades]
    return bool(kind.grader_failures) or silent or kind.status is TrialStatus.INVALID or kind.has_leftovers


def _trial_problems(entry: Entry) -> Iterable[Problem]:
    if not _is_telling(entry.alike):
        return
    record = entry.whole
    case, trial = record.case_id, record.trial_index
    for failure in record.grader_failures:
        yield Problem("grader_failure", failure_text(failure), case, trial, failure.name, failure.required)
    for grade in record.grades:
        if grade.verdict is Verdict.ABSTAIN:
            yield Problem("abstained", stable(grade.reason), case, trial, grade.name, grade.required)
    by_others = record.invalid_reason in (InvalidReason.GRADER, InvalidReason.UNOBSERVED)
    if record.status is TrialStatus.INVALID and not (by_others and (record.grader_failures or record.grades)):
        yield Problem(str(record.invalid_reason or "harness"), reason_of(record), case, trial)
    for leftover in record.leftovers:
        yield Problem("leftovers", leftover.what + _company(leftover.during), case, trial, required=False)


_COMPANY_TOLD = 4


def _company(during: Sequence[str]) -> str:
    """`, during a#1, b#1`: several trials ran, and one of them did it."""
    if not during:
        return ""
    rest = len(during) - _COMPANY_TOLD
    return f", during {', '.join(during[:_COMPANY_TOLD])}" + (f" or {rest} more" if rest > 0 else "")
