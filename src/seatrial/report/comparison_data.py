"""The document of `seatrial compare --json`."""

from __future__ import annotations

from typing import Any

from seatrial.core.model_json import json_of
from seatrial.report.summary import VERDICTS
from seatrial.report.trace_diff import TraceDiff, trace_diff
from seatrial.verdict.comparison import CaseComparison, Change, Comparison
from seatrial.verdict.side_by_side import HandoffPair, Measure, SideBySide, SuitePair, ToolPair, side_by_side
from seatrial.verdict.sides import SideCase
from seatrial.verdict.totals import Tallied
from seatrial.verdict.trajectories import Step

__all__ = ["comparison_data", "divergence_data", "figures_data"]


def comparison_data(comparison: Comparison, *, strict: bool = False) -> dict[str, Any]:
    """`{verdict, baseline, candidate, curtailed, replayed, problems, counts, cases, figures}` as JSON data.

    Urgent cases come first. A case whose trials changed has under `divergence` where both trajectories first part;
    null when they do not, or when a side has no trace. `curtailed` names the sides of which only verdicts compare,
    `replayed` those with trials that were replayed from cassettes. `figures` are over the cases that both sides ran in
    the same form.
    """
    return {
        "verdict": VERDICTS[comparison.exit_code(strict=strict)],
        "baseline": comparison.baseline,
        "candidate": comparison.candidate,
        "curtailed": list(comparison.curtailed),
        "replayed": list(comparison.replayed),
        "problems": list(comparison.problems),
        "counts": {str(change): count for change, count in comparison.counts.items()},
        "cases": [_case(row) for row in comparison.cases],
        "figures": figures_data(side_by_side(comparison)),
    }


def _case(row: CaseComparison) -> dict[str, Any]:
    told = row.change in (Change.BROKE, Change.WORSE, Change.FIXED, Change.BETTER)
    return {
        "id": row.case_id,
        "change": str(row.change),
        "grounds": row.grounds,
        "gate": row.gates,
        "baseline": _side(row.baseline),
        "candidate": _side(row.candidate),
        "divergence": divergence_data(trace_diff(row)) if told else None,
    }


_SHOWN = ("passes", "valid", "trials", "required", "rate", "reason", "suite", "risk", "digest")


def _side(case: SideCase | None) -> dict[str, Any] | None:
    if case is None:
        return None
    return {"verdict": str(case.verdict), **{name: getattr(case, name) for name in _SHOWN}}


def divergence_data(diff: TraceDiff | None) -> dict[str, Any] | None:
    """Where two trajectories first part: `{step, difference, baseline, candidate, trial}`; None when they do not."""
    if diff is None or diff.first is None:
        return None
    pair = diff.pairs[diff.first]
    return {
        "step": diff.first + 1,
        "difference": str(pair.difference),
        "baseline": _step(pair.baseline),
        "candidate": _step(pair.candidate),
        "trial": diff.candidate_trial,
    }


def _step(step: Step | None) -> dict[str, Any] | None:
    return None if step is None else json_of(step)


# --- figures ---------------------------------------------------------------------------------------------------------


def figures_data(figures: SideBySide) -> dict[str, Any]:
    """Both sides' figures as JSON data; pairs are `[baseline, candidate]`."""
    return {
        "suites": [_suite(row) for row in figures.suites],
        "tools": [_tool(row) for row in figures.tools],
        "handoffs": [_handoff(row) for row in figures.handoffs],
        "measures": [_measure(row) for row in figures.measures],
    }


def _suite(row: SuitePair) -> dict[str, Any]:
    sides = {"baseline": dict(vars(row.baseline)), "candidate": dict(vars(row.candidate))}
    return {"suite": row.suite, "gate": row.gate, "cases": row.cases, **sides, "delta": row.delta}


def _tool(row: ToolPair) -> dict[str, Any]:
    ratios = {name: [_ratio(tally) for tally in getattr(row, name)] for name in ("recall", "precision")}
    return {"tool": row.tool, "calls": list(row.calls), "trials": list(row.trials), **ratios}


def _ratio(tally: Tallied | None) -> dict[str, Any] | None:
    return None if tally is None else {"rate": tally.rate, "hit": tally.hit, "of": tally.of}


def _handoff(row: HandoffPair) -> dict[str, Any]:
    return {"source": row.source, "target": row.target, "count": list(row.count), "trials": list(row.trials)}


def _measure(row: Measure) -> dict[str, Any]:
    sides = {"baseline": dict(vars(row.baseline)), "candidate": dict(vars(row.candidate))}
    return {"name": row.name, "cases": row.cases, **sides, "delta": row.delta}
