"""The approved baseline on the terminal: who approved what, when and why, and its cases."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from seatrial.report.screen import Cell, Screen, left, percent, right, times
from seatrial.verdict.baseline import Baseline, BaselineCase

__all__ = ["print_baseline"]


def print_baseline(console: Console, baseline: Baseline) -> None:
    """Show a baseline; all its text is literal."""
    screen = Screen(console)
    measured = "fresh trials, run for the approval" if baseline.fresh else "the trials that it was chosen by"
    facts: list[tuple[str, str]] = [
        ("build", baseline.build_id),
        ("approved", f"{baseline.approved} by {baseline.approver}"),
        ("reason", baseline.reason),
        ("expires", "never" if baseline.expires is None else baseline.expires.isoformat()),
        ("measured on", f"{measured}: {', '.join(baseline.run_ids)}"),
    ]
    screen.rows(left("", ""), [[Text(name, "dim"), value] for name, value in facts], indent=0, header=False)
    screen.title("Cases")
    columns = [*left("case", "suite", "risk"), *right("passed", "pass rate"), *left("trajectory")]
    screen.rows(columns, [_case(screen, case) for case in baseline.cases])
    screen.unbroken(Text(times(len(baseline.cases), "case"), style="dim"))


def _case(screen: Screen, case: BaselineCase) -> list[Cell]:
    rate = percent(case.passes / case.valid) if case.valid else "none"
    steps = () if case.trajectory is None else tuple(step.name for step in case.trajectory.steps)
    return [case.id, case.suite, case.risk, f"{case.passes}/{case.valid}", rate, screen.text(", ".join(steps), "dim")]
