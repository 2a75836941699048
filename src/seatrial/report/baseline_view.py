"""An approved baseline on the terminal, and how it differs from another one or from a run."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.report.comparison_view import comparison_rows
from seatrial.report.literal import inline
from seatrial.report.screen import Cell, Screen, left, percent, right, times
from seatrial.report.trace_diff import trace_diff
from seatrial.report.trace_diff_view import divergence_text, step_text
from seatrial.verdict.baseline import Baseline, BaselineCase
from seatrial.verdict.baseline_diff import BaselineDiff
from seatrial.verdict.comparison import CaseComparison, Change, Comparison

__all__ = ["baseline_diff_data", "print_baseline", "print_baseline_diff"]

CASES_SHOWN = 40
"""Cases shown without `-v`."""


def print_baseline(console: Console, baseline: Baseline, *, today: date | None = None, verbosity: int = 0) -> None:
    """Show who approved what, and every case; `verbosity` above 0: with its usual trajectory.

    `today` None: whether it has expired is not said.
    """
    screen = Screen(console)
    screen.rows(left("", ""), _head(screen, baseline, today), indent=0, header=False)
    screen.title("Cases", "passes of valid trials")
    everything = verbosity > 0
    shown = baseline.cases if everything else baseline.cases[:CASES_SHOWN]
    columns = [*left("case", "suite", "risk"), *right("passes", "rate"), *left("usual steps" if everything else "")]
    screen.rows(columns, [_case(screen, case, everything) for case in shown])
    if len(shown) < len(baseline.cases):
        rest = len(baseline.cases) - len(shown)
        screen.line(Text(f"{screen.marks.more} and {rest} more; -v shows all", style="dim"), indent=2)


def _head(screen: Screen, baseline: Baseline, today: date | None) -> list[list[Cell]]:
    until = "no end" if baseline.expires is None else f"until {baseline.expires}"
    expired = Text("EXPIRED", style="bold red") if today is not None and baseline.expired(today) else ""
    passed = sum(case.verdict == "passed" for case in baseline.cases)
    parts: dict[str, Cell] = {
        "build": baseline.build_id,
        "agent": inline(baseline.agent),
        "approved": screen.join([f"by {baseline.approver}", baseline.approved, until, expired]),
        "reason": baseline.reason,
        "trials": "run for the approval" if baseline.fresh else Text("those it was chosen by (not fresh)", "yellow"),
        "runs": ", ".join(baseline.run_ids),
        "cases": f"{passed:,} of {times(len(baseline.cases), 'case')} passed",
    }
    return [[Text(name, style="dim"), text] for name, text in parts.items()]


def _case(screen: Screen, case: BaselineCase, everything: bool) -> list[Cell]:
    style = "" if case.verdict == "passed" else "yellow"
    rate = percent(case.passes / case.valid) if case.valid else "none"
    suite = case.suite if case.gate else f"{case.suite} (reported only)"
    steps: Cell = ""
    if everything:
        found = () if case.trajectory is None else case.trajectory.steps
        steps = Text("\n").join(screen.text(step_text(step)) for step in found)
    return [case.id, suite, case.risk, Text(f"{case.passes}/{case.valid}", style=style), rate, steps]


# --- differences -----------------------------------------------------------------------------------------------------


def print_baseline_diff(console: Console, diff: BaselineDiff, *, verbosity: int = 0) -> None:
    """Show changed settings, then every case that was added, removed or edited, passed otherwise or acted otherwise."""
    screen = Screen(console)
    if diff.settings:
        rows: list[list[Cell]] = [
            [Text(changed.name, style="dim"), _or_none(screen, changed.before), _or_none(screen, changed.after)]
            for changed in diff.settings
        ]
        screen.rows(left("", "before", "after"), rows, indent=0)
        screen.console.print()
    changed_cases = [row for row in diff.comparison.cases if row.change is not Change.SAME]
    comparison_rows(screen, changed_cases)
    acting = _acting_otherwise(screen, diff.comparison)
    if acting:
        screen.title("Passed as before, by other steps")
        shown = acting if verbosity > 0 else acting[:CASES_SHOWN]
        screen.rows(left("", ""), shown, header=False)
        if len(shown) < len(acting):
            screen.line(Text(f"{screen.marks.more} and {len(acting) - len(shown)} more; -v shows all", style="dim"))
    if changed_cases or acting:
        screen.console.print()
    screen.unbroken(_counted(screen, diff, len(acting)))


def _or_none(screen: Screen, text: str) -> Text:
    return screen.text(text) if text else Text(screen.marks.dash, style="dim")


def _acting_otherwise(screen: Screen, comparison: Comparison) -> list[Sequence[Cell]]:
    same = (row for row in comparison.cases if row.change is Change.SAME)
    diffs = ((row, trace_diff(row)) for row in same)
    return [
        [row.case_id, divergence_text(screen, diff)]
        for row, diff in diffs
        if diff is not None and diff.first is not None
    ]


def _counted(screen: Screen, diff: BaselineDiff, acting: int) -> Text:
    said = [f"{count} {change}" for change, count in diff.comparison.counts.items()]
    if acting:
        said.append(f"{acting} by other steps")
    if diff.settings:
        said.append(times(len(diff.settings), "other setting"))
    return screen.join(said or ["no case"])


def baseline_diff_data(diff: BaselineDiff) -> dict[str, Any]:
    """The same as JSON data: `{settings, counts, cases}`; cases that are the same are only counted."""
    return {
        "settings": [dict(vars(changed)) for changed in diff.settings],
        "counts": {str(change): count for change, count in diff.comparison.counts.items()},
        "cases": [_case_data(row) for row in diff.comparison.cases if row.change is not Change.SAME],
    }


def _case_data(row: CaseComparison) -> dict[str, Any]:
    sides = {"before": row.baseline, "after": row.candidate}
    passes = {
        name: None if side is None else {"passes": side.passes, "valid": side.valid} for name, side in sides.items()
    }
    return {"id": row.case_id, "change": str(row.change), **passes}
