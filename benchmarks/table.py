"""Figures, verdicts, and the table they stand in. Pure: numbers in, text or JSON data out."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.profiles import Hot

__all__ = [
    "NAMES",
    "OURS",
    "Cell",
    "Goal",
    "Row",
    "machine",
    "paired_ratio",
    "row_data",
    "row_problem",
    "table",
    "tally",
]

OURS = "Seatrial"
NAMES = (OURS, "floor", "pydantic-evals", "inspect-ai")
"""The systems, in the order of the table's columns."""
PRICE_S = 0.03
"""What a run may take however small it is: folders, locks, a summary."""


@dataclass(frozen=True)
class Cell:
    """One system's figure, or why there is none."""

    values: tuple[float, ...] = ()
    """One a round, in the order in which they were measured."""
    reason: str = ""
    """Why there is no value: a system without such a feature has `-`."""
    shown: str = ""
    """What is printed in place of the number."""

    @property
    def value(self) -> float | None:
        """The median; None when nothing was measured."""
        return statistics.median(self.values) if self.values else None

    def text(self) -> str:
        """As it stands in the table."""
        return self.shown or (_number(self.value) if self.value is not None else self.reason or "-")


@dataclass(frozen=True)
class Goal:
    """The most that Seatrial's figure may be."""

    at_most: float
    own: bool = False
    """Set here, where the issue names no figure."""

    @classmethod
    def of_share(cls, seconds: float, share: float, *, own: bool = False) -> Goal:
        """The share of a promised time that so much of the work may take; less than all of it has its price, too."""
        return cls(seconds * share + (PRICE_S if share < 1 else 0.0), own=own or share != 1)

    def text(self) -> str:
        """As it stands in the table."""
        return f"<= {_number(self.at_most)}" + ("*" if self.own else "")


def _nothing() -> list[Hot]:
    return []


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    name: str
    unit: str
    cells: Mapping[str, Cell]
    goal: Goal
    explain: Callable[[], list[Hot]] = field(default=_nothing, compare=False)
    """Measures the same scenario again, to say what a missed figure is made of."""
    ratios: bool = True
    """Whether Seatrial's figure over each of the others' means anything."""

    @property
    def verdict(self) -> str:
        """met, MISSED, or FAILED when Seatrial has no figure."""
        ours = self.cells[OURS].value
        if ours is None:
            return "FAILED"
        return "met" if ours <= self.goal.at_most else "MISSED"

    def column(self, name: str) -> str:
        """A system's cell: the figure, and in brackets Seatrial's figure over it."""
        cell = self.cells.get(name, Cell())
        ratio = paired_ratio(self.cells[OURS].values, cell.values) if self.ratios and name != OURS else None
        return cell.text() + (f" ({_number(ratio)}x)" if ratio is not None else "")


def paired_ratio(ours: Sequence[float], other: Sequence[float]) -> float | None:
    """The median of the ratios of figures measured in the same round; None without a pair, or by nothing."""
    ratios = [a / b for a, b in zip(ours, other, strict=False) if b > 0]
    return statistics.median(ratios) if ratios else None


def _number(value: float | None) -> str:
    """Three figures that matter, no exponent."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    places = 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3 if abs(value) >= 0.01 else 5
    return f"{value:.{places}f}".rstrip("0").rstrip(".")


def table(rows: Sequence[Row]) -> str:
    """Every row with its target and verdict, columns aligned."""
    head = ("what", OURS, "target", "", *NAMES[1:])
    lines = [head, *(_line(row) for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(head))]
    ruled = [lines[0], tuple("-" * width for width in widths), *lines[1:]]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in ruled)


def _line(row: Row) -> tuple[str, ...]:
    what = f"{row.name}, {row.unit}"
    return (what, row.column(OURS), row.goal.text(), row.verdict, *(row.column(name) for name in NAMES[1:]))


def tally(verdicts: Sequence[tuple[str, bool]]) -> str:
    """How many targets are met, by verdicts and whether the target was set here; these are counted apart."""
    given = [verdict == "met" for verdict, own in verdicts if not own]
    own = [verdict == "met" for verdict, own in verdicts if own]
    apart = f", and {sum(own)} of {len(own)} of those marked *" if own else ""
    return f"{sum(given)} of {len(given)} targets met{apart}."


def row_problem(row: Row, hot: Sequence[Hot]) -> str:
    """What a missed row is made of."""
    ours = row.cells[OURS]
    if ours.value is None:
        return f"FAILED {row.name}: {ours.reason}"
    lines = [f"MISSED {row.name}: {_number(ours.value)} {row.unit}, target {row.goal.text()}"]
    return "\n".join([*lines, *(f"  {item.line()}" for item in hot)])


def row_data(row: Row, hot: Sequence[Hot] = ()) -> dict[str, Any]:
    """A row as JSON data, every measured value in it."""
    return {
        "name": row.name,
        "unit": row.unit,
        "target": row.goal.at_most,
        "own_target": row.goal.own,
        "goal": row.goal.text(),
        "verdict": row.verdict,
        "columns": {name: row.column(name) for name in NAMES},
        "cells": {name: {"value": cell.value, **vars(cell)} for name, cell in row.cells.items()},
        "ratios": {
            name: paired_ratio(row.cells[OURS].values, cell.values)
            for name, cell in row.cells.items()
            if name != OURS and row.ratios
        },
        "profile": [vars(item) for item in hot],
    }


def machine(facts: Mapping[str, Any]) -> str:
    """When and where it was measured, and whether others were using the machine."""
    load = " ".join(map(str, facts["load"])) or "unknown"
    busy = any(value > facts["cores"] + 1 for value in facts["load"])
    return (
        f"{facts['when']}, {facts['cores']} cores, Python {facts['python']}, {facts['system']}, load average {load}, "
        f"{facts['seconds']} s in all." + (" The machine was busy with other things: read the ratios." if busy else "")
    )
