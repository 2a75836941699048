"""Figures of a baseline beside those of a candidate, over the cases that can be compared.

Only cases that both sides ran in the same form and with a valid trial count: means over different cases say nothing of
each other. Neither do means of trials that stopped once their case was decided. A mean is taken over cases, each with
the mean of its trials that know the figure, so that neither more trials nor other shares of cases on one side can move
it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from seatrial.stats.estimate import mean, quantile
from seatrial.verdict.comparison import CaseComparison, Comparison
from seatrial.verdict.metrics import CaseVerdict
from seatrial.verdict.sides import SideCase
from seatrial.verdict.totals import MEASURES, Tallied, Totals, together
from seatrial.verdict.trials import Seen

__all__ = ["Figure", "HandoffPair", "Measure", "SideBySide", "SuiteFigure", "SuitePair", "ToolPair", "side_by_side"]

T = TypeVar("T")
Pair = tuple[SideCase, SideCase]


@dataclass(frozen=True)
class Figure:
    """One number of one side, with what it was taken over."""

    value: float | None
    """None when it is unknown."""
    counted: int
    """Valid trials that know it."""
    of: int
    """Valid trials."""


@dataclass(frozen=True)
class Measure:
    """One figure on both sides."""

    name: str
    """Out of `seatrial.verdict.totals.MEASURES`, or `median_latency_ms`."""
    cases: int
    """Cases in which both sides know it: the means are over these."""
    baseline: Figure
    candidate: Figure

    @property
    def delta(self) -> float | None:
        """Candidate minus baseline; None when a side does not know it."""
        return _delta(self.baseline.value, self.candidate.value)


@dataclass(frozen=True)
class SuiteFigure:
    """One suite on one side."""

    passed_cases: int
    passes: int
    valid: int
    rate: float
    """Trial pass rate: the mean of the cases' own rates."""


@dataclass(frozen=True)
class SuitePair:
    """One suite, or all together (`suite` is empty)."""

    suite: str
    gate: bool
    cases: int
    baseline: SuiteFigure
    candidate: SuiteFigure

    @property
    def delta(self) -> float:
        """Candidate's rate minus baseline's; 0.01 is a point."""
        return self.candidate.rate - self.baseline.rate


@dataclass(frozen=True)
class ToolPair:
    """One tool: calls, and the tallies of trials in which it was rightly called."""

    tool: str
    calls: tuple[int, int]
    """Baseline's and candidate's."""
    trials: tuple[int, int]
    """Valid trials that the calls are of."""
    recall: tuple[Tallied | None, Tallied | None]
    """Required and right of required; None: the side knows none."""
    precision: tuple[Tallied | None, Tallied | None]
    """Required and right of called."""


@dataclass(frozen=True)
class HandoffPair:
    """One way from agent to agent."""

    source: str
    target: str
    count: tuple[int, int]
    trials: tuple[int, int]


@dataclass(frozen=True)
class SideBySide:
    """Both sides' figures over the compared cases."""

    suites: tuple[SuitePair, ...]
    """In the order of the baseline; the sum of several as the last, with an empty name."""
    tools: tuple[ToolPair, ...]
    handoffs: tuple[HandoffPair, ...]
    measures: tuple[Measure, ...]


def side_by_side(comparison: Comparison) -> SideBySide:
    """The figures of both sides. Empty when nothing can be compared."""
    pairs = [pair for row in comparison.cases if (pair := _pair(row)) is not None]
    totals, trials = _each(pairs, _totals), _each(pairs, _valid)
    return SideBySide(
        suites=_suites(pairs),
        tools=_tools(*totals, trials),
        handoffs=_handoffs(*totals, trials),
        measures=tuple(_measures(pairs)),
    )


def _pair(row: CaseComparison) -> Pair | None:
    before, after = row.baseline, row.candidate
    if not row.paired or before is None or after is None or not before.valid or not after.valid:
        return None
    return None if before.curtailed or after.curtailed else (before, after)


def _delta(before: float | None, after: float | None) -> float | None:
    return None if before is None or after is None else after - before


def _valid(cases: Iterable[SideCase]) -> int:
    return sum(case.valid for case in cases)


def _each(pairs: Sequence[Pair], take: Callable[[list[SideCase]], T]) -> tuple[T, T]:
    """The same of either side."""
    return take([before for before, _ in pairs]), take([after for _, after in pairs])


# --- suites ----------------------------------------------------------------------------------------------------------


def _suites(pairs: Sequence[Pair]) -> tuple[SuitePair, ...]:
    suites: dict[str, list[Pair]] = {}
    for pair in pairs:
        suites.setdefault(pair[1].suite or pair[0].suite, []).append(pair)
    rows = [_suite(name, suites[name]) for name in sorted(suites)]
    return (*rows, _suite("", pairs)) if len(rows) > 1 else tuple(rows)


def _suite(name: str, pairs: Sequence[Pair]) -> SuitePair:
    return SuitePair(name, all(after.gate for _, after in pairs), len(pairs), *_each(pairs, _suite_figure))


def _suite_figure(cases: list[SideCase]) -> SuiteFigure:
    return SuiteFigure(
        passed_cases=sum(case.verdict is CaseVerdict.PASSED for case in cases),
        passes=sum(case.passes for case in cases),
        valid=sum(case.valid for case in cases),
        rate=mean(case.passes / case.valid for case in cases),
    )


# --- tools and hand-offs ---------------------------------------------------------------------------------------------


def _totals(cases: list[SideCase]) -> Totals:
    return together(case.summed for case in cases)


def _tools(before: Totals, after: Totals, trials: tuple[int, int]) -> tuple[ToolPair, ...]:
    named = {name.partition("/")[2] for side in (before, after) for name in side.tallies if name.startswith(_OF_TOOLS)}
    return tuple(
        ToolPair(
            tool=tool,
            calls=(before.tools.get(tool, 0), after.tools.get(tool, 0)),
            trials=trials,
            recall=(before.tallies.get(f"{_RECALL}/{tool}"), after.tallies.get(f"{_RECALL}/{tool}")),
            precision=(before.tallies.get(f"{_PRECISION}/{tool}"), after.tallies.get(f"{_PRECISION}/{tool}")),
        )
        for tool in sorted({*before.tools, *after.tools, *named})
    )


_RECALL, _PRECISION = "required_tool_recall", "tool_precision"
_OF_TOOLS = (f"{_RECALL}/", f"{_PRECISION}/")


def _handoffs(before: Totals, after: Totals, trials: tuple[int, int]) -> tuple[HandoffPair, ...]:
    counts = [{(way.source, way.target): way.times for way in side.handoffs} for side in (before, after)]
    return tuple(
        HandoffPair(*way, (counts[0].get(way, 0), counts[1].get(way, 0)), trials)
        for way in sorted({*counts[0], *counts[1]})
    )


# --- measures --------------------------------------------------------------------------------------------------------


def _measures(pairs: Sequence[Pair]) -> Iterable[Measure]:
    """What either side knows; the median latency only where both know every trial's."""
    before, after = _each(pairs, _median_latency)
    if before is not None and after is not None:
        yield Measure("median_latency_ms", len(pairs), before, after)
    for name in MEASURES:
        if any(name in side.summed.sums for pair in pairs for side in pair):
            yield _measure(name, pairs)


def _measure(name: str, pairs: Sequence[Pair]) -> Measure:
    known = [pair for pair in pairs if all(name in side.summed.sums for side in pair)]
    values = _each(known, lambda cases: _mean_of(name, cases))
    counts = _each(pairs, lambda cases: sum(c.summed.sums[name].counted for c in cases if name in c.summed.sums))
    valid = _each(pairs, _valid)
    return Measure(
        name,
        len(known),
        Figure(values[0], counts[0], valid[0]),
        Figure(values[1], counts[1], valid[1]),
    )


def _mean_of(name: str, cases: list[SideCase]) -> float | None:
    means = [case.summed.sums[name].mean for case in cases]
    known = [value for value in means if value is not None]
    return mean(known) if known else None


def _median_latency(cases: list[SideCase]) -> Figure | None:
    times = Seen()
    for case in cases:
        for record in case.records:
            if record.valid:
                times.add(record.latency_ms)
    return Figure(quantile(times.known, 0.5), len(times), len(times)) if times.known and not times.unknown else None
