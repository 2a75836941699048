"""What stands beside what when a release is decided: the run's suites and figures, and the baseline's.

The candidate's column is the whole run. The baseline's and the difference are over the cases in common - those that
both ran in the same form, with a valid trial on each side - so that a new case changes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from math import fsum
from typing import Any

from seatrial.core.metric import Unit
from seatrial.report.metric_text import difference_text, figure_text
from seatrial.report.screen import times
from seatrial.verdict.comparison import Comparison
from seatrial.verdict.side_by_side import Measure, SuitePair, side_by_side
from seatrial.verdict.sides import SideCase

__all__ = ["FigureLine", "SuiteLine", "build_parts", "figure_lines", "suite_lines"]

Row = Mapping[str, Any]


# --- suites ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SuiteLine:
    """One suite of the candidate beside the baseline's."""

    suite: str
    gate: bool
    passed: int
    """Cases."""
    total: int
    rate: float | None
    """Trial pass rate of the whole suite; None: no valid trial."""
    baseline: float | None = None
    """Over the cases in common."""
    difference: float | None = None
    """Candidate minus baseline over the cases in common."""
    common: int = 0

    @property
    def note(self) -> str:
        """Which cases baseline and difference are over, where it is not all of them."""
        return f"over {self.common} of {times(self.total, 'case')}" if 0 < self.common < self.total else ""


def suite_lines(summary: Row, comparison: Comparison | None = None) -> list[SuiteLine]:
    """A line a suite of the run, in its order."""
    pairs = {} if comparison is None else {pair.suite: pair for pair in side_by_side(comparison).suites}
    return [_suite_line(suite, pairs.get(suite["suite"])) for suite in summary["suites"]]


def _suite_line(suite: Row, pair: SuitePair | None) -> SuiteLine:
    return SuiteLine(
        suite=suite["suite"],
        gate=suite["gate"],
        passed=suite["cases"]["passed"],
        total=suite["cases"]["total"],
        rate=None if suite["rate"] is None else suite["rate"]["rate"],
        baseline=None if pair is None else pair.baseline.rate,
        difference=None if pair is None else pair.delta,
        common=0 if pair is None else pair.cases,
    )


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FigureLine:
    """One figure of the run beside the baseline's."""

    group: str
    name: str
    unit: Unit
    value: float | None
    """None: unknown."""
    counts: str = ""
    """What it was counted over."""
    baseline: float | None = None
    difference: float | None = None
    kind: str = ""
    """Of the violations or events that it counts: data, while `name` is not."""

    @property
    def text(self) -> str:
        """The candidate's."""
        return "unknown" if self.value is None else figure_text(self.unit, self.value)

    @property
    def baseline_text(self) -> str:
        """Empty where the baseline has none."""
        return "" if self.baseline is None else figure_text(self.unit, self.baseline)

    @property
    def difference_text(self) -> str:
        """Empty where a side has none."""
        return "" if self.difference is None else difference_text(self.unit, self.difference)


_RATIOS = (
    ("tools", "required and called rightly", "required_tool_recall"),
    ("tools", "called and right", "tool_precision"),
    ("tools", "rejected arguments", "invalid_argument_rate"),
    ("tools", "set F1", "tool_f1"),
    ("hand-offs", "right decisions", "handoff_accuracy"),
    ("hand-offs", "required and made", "handoff_recall"),
    ("hand-offs", "with all context", "context_transfer"),
    ("hand-offs", "trials with a loop", "loop_rate"),
    ("faults", "recovered", "recovery_rate"),
)
"""Group, name, and the tally that is also the metric."""
_COUNTED = (
    ("critical violations", "critical_violations"),
    ("blocked events", "blocked_events"),
    ("secrets exposed", "secret_exposures"),
)
_KINDS = {"violations/": "violations", "safety/": "events"}
"""Tallies of one kind of violation or event each; shown where there is one."""


def figure_lines(summary: Row, comparison: Comparison | None = None) -> list[FigureLine]:
    """Tool, hand-off, safety and performance figures, as far as the run has them, in groups."""
    beside = _Beside.of(comparison)
    tallies = summary["figures"]["tallies"]
    return [*_ratios(tallies, beside), *_safety(tallies, beside), *_performance(summary, beside)]


def _ratios(tallies: Row, beside: _Beside) -> Iterator[FigureLine]:
    for group, name, key in _RATIOS:
        tally = tallies.get(key)
        if tally is None or not tally["of"]:
            continue
        whole = float(tally["hit"]).is_integer()
        counts = f"{tally['hit']:g} of {tally['of']:g}" if whole else f"over {tally['of']:g}"
        yield FigureLine(group, name, "share", tally["rate"], counts, *beside.rate(key))


def _safety(tallies: Row, beside: _Beside) -> Iterator[FigureLine]:
    known = [(name, "", key) for name, key in _COUNTED if key in tallies]
    for prefix, name in _KINDS.items():
        known += [(name, key.removeprefix(prefix), key) for key in tallies if key.startswith(prefix)]
    for name, kind, key in known:
        counts = f"in {times(round(tallies[key]['of']), 'trial')}"
        yield FigureLine("safety", name, "count", tallies[key]["hit"], counts, *beside.count(key), kind=kind)


def _performance(summary: Row, beside: _Beside) -> Iterator[FigureLine]:
    figures, latency, group = summary["figures"], summary["times"]["latency"], "performance"
    of = _of(latency, "trial")
    yield FigureLine(group, "median latency", "ms", latency["median_ms"], of, *beside.mean("median_latency_ms"))
    yield FigureLine(group, "p95 latency", "ms", latency["p95_ms"], of)
    for kind in ("input", "output"):
        mean = figures["tokens"][kind]
        beside_it = beside.mean(f"{kind}_tokens")
        yield FigureLine(group, f"{kind} tokens a trial", "number", mean["mean"], _of(mean, "trial"), *beside_it)
    for unit, mean in figures["steps"].items():
        name, key = ("steps", "steps") if unit == "model calls" else ("steps (tool calls)", "tool_call_steps")
        yield FigureLine(group, f"{name} a trial", "number", mean["mean"], _of(mean, "trial"), *beside.mean(key))
    yield from _cost(figures["cost"], beside)


def _of(mean: Row, noun: str) -> str:
    return f"{mean['counted']:,} of {times(mean['of'], noun)}"


def _cost(cost: Row, beside: _Beside) -> Iterator[FigureLine]:
    valid = cost["valid"]
    mean = valid["known_usd"] / valid["counted"] if valid["counted"] else None
    counts = f"{valid['counted']:,} of {times(valid['counted'] + valid['unknown'], 'trial')}"
    yield FigureLine("performance", "cost a trial", "usd", mean, counts, *beside.mean("cost_usd"))
    over = f"over {times(cost['passes'], 'passed trial')}"
    yield FigureLine("performance", "cost a success", "usd", cost["per_success_usd"], over)


@dataclass(frozen=True)
class _Beside:
    """Figures of both sides over the cases in common, each as (baseline, difference)."""

    before: tuple[SideCase, ...]
    after: tuple[SideCase, ...]
    measures: Mapping[str, Measure]

    @classmethod
    def of(cls, comparison: Comparison | None) -> _Beside:
        if comparison is None:
            return cls((), (), {})
        pairs = [(row.baseline, row.candidate) for row in comparison.cases if row.paired]
        both = [(before, after) for before, after in pairs if before and after and before.valid and after.valid]
        measures = {measure.name: measure for measure in side_by_side(comparison).measures}
        return cls(tuple(before for before, _ in both), tuple(after for _, after in both), measures)

    def rate(self, tally: str) -> _Against:
        """Of a tally: hits among those counted."""
        found = [_tallied(side, tally) for side in (self.before, self.after)]
        return _against(*(hit / of if of else None for hit, of in found))

    def count(self, tally: str) -> _Against:
        """Of a tally: its hits alone. Violations of a kind that never occurred have no tally."""
        found = [_tallied(side, tally) for side in (self.before, self.after)]
        known = [bool(of) or (bool(self.before) and tally.startswith(tuple(_KINDS))) for _, of in found]
        return _against(*(hit if there else None for (hit, _), there in zip(found, known, strict=True)))

    def mean(self, measure: str) -> _Against:
        """Of a measure: a trial's share."""
        found = self.measures.get(measure)
        return (None, None) if found is None else (found.baseline.value, found.delta)


_Against = tuple[float | None, float | None]


def _against(before: float | None, after: float | None) -> _Against:
    return before, None if before is None or after is None else after - before


def _tallied(cases: Iterable[SideCase], name: str) -> tuple[float, float]:
    found = [case.summed.tallies[name] for case in cases if name in case.summed.tallies]
    return fsum(tally.hit for tally in found), fsum(tally.of for tally in found)


# --- builds ----------------------------------------------------------------------------------------------------------


def build_parts(build: Row | None) -> list[str]:
    """What is known of a decision's candidate or baseline, the build's id first; `["none"]` without one."""
    if build is None:
        return ["none"]
    named = str(build.get("build_id") or "unnamed")
    return [named, *(f"{key.replace('_', ' ')} {_plain(value)}" for key, value in build.items() if _told(key, value))]


def _told(key: str, value: Any) -> bool:
    return key != "build_id" and value not in (None, "") and not isinstance(value, Mapping)


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
