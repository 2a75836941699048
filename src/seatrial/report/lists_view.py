"""Plain lists on the terminal: cases, runs, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.core.case import Case
from seatrial.core.metric import Metric
from seatrial.report.literal import inline
from seatrial.report.screen import Cell, Screen, left, right, times

__all__ = ["print_cases", "print_metrics", "print_runs", "print_settings"]


def print_cases(console: Console, cases: Sequence[Case]) -> None:
    """A table of cases: id, suite, risk, trials, what they are about, tags."""
    screen = Screen(console)
    rows: list[list[Cell]] = []
    for case in cases:
        tags = screen.text(" ".join(f"#{tag}" for tag in case.tags), "dim")
        about = screen.join([" ".join(case.description.split()), tags], "  ")
        rows.append([case.id, case.suite, case.risk, str(case.thresholds.trials), about])
    screen.rows([*left("case", "suite", "risk"), *right("trials"), *left("about")], rows, indent=0)
    screen.unbroken(Text(times(len(cases), "case"), style="dim"))


def print_runs(console: Console, runs: Sequence[tuple[str, str, str, int, str]]) -> None:
    """A table of runs: id, build, status, planned trials, start."""
    screen = Screen(console)
    if not runs:
        screen.unbroken(Text("no runs yet"))
        return
    rows = [
        [name, build, status.replace("_", " "), f"{trials:,}", start] for name, build, status, trials, start in runs
    ]
    screen.rows([*left("run", "build", "status"), *right("trials"), *left("started")], rows, indent=0)


def print_settings(console: Console, settings: Sequence[tuple[str, Any, str]]) -> None:
    """A table of settings: key, value as JSON, where it came from."""
    screen = Screen(console)
    rows: list[list[Cell]] = [[key, inline(value), screen.text(origin, "dim")] for key, value, origin in settings]
    screen.rows(left("setting", "value", "from"), rows, indent=0)


def print_metrics(console: Console, metrics: Sequence[Metric]) -> None:
    """A table of metrics: name, the group that usually states it, definition."""
    screen = Screen(console)
    rows: list[list[Cell]] = [[metric.name, metric.group, metric.definition] for metric in metrics]
    screen.rows(left("metric", "group", "definition"), rows, indent=0)
