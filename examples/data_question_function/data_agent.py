"""Answers questions about a small table. A plain function is an agent: input in, answer out.

The input is a mapping: `message` is the question, `rows` the table as CSV text. There are two versions. Both answer
three of the four cases, and not the same three, which a mean of scores would never show.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["version_1", "version_2"]

Rows = Sequence[Mapping[str, str]]


def version_1(task: Mapping[str, Any]) -> str:
    """Takes the mean for the median."""
    rows = _rows(task)
    if not rows:
        return "There is no data."
    return _answer(task["message"], rows, middle=statistics.fmean)


def version_2(task: Mapping[str, Any]) -> str:
    """Knows what a median is, and falls over a table without rows."""
    return _answer(task["message"], _rows(task), middle=statistics.median)


def _rows(task: Mapping[str, Any]) -> Rows:
    return list(csv.DictReader(io.StringIO(task["rows"])))


def _answer(question: str, rows: Rows, middle: Callable[[list[float]], float]) -> str:
    words = question.lower()
    if "median" in words:
        return f"The median amount is {middle([float(row['amount']) for row in rows]):g}."
    if "category" in words:
        return f"Most is spent on {_top_category(rows)}."
    if "due" in words:
        return f"The next deadline is {min(row['due'] for row in rows)}."
    return "I do not understand the question."


def _top_category(rows: Rows) -> str:
    totals: dict[str, float] = {}
    for row in rows:
        totals[row["category"]] = totals.get(row["category"], 0.0) + float(row["amount"])
    return max(totals, key=lambda category: totals[category])
