"""Rows about what lies on disk: grading again, comparing, loading."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.measuring import Bench
from benchmarks.rows.running import growth
from benchmarks.table import OURS, Goal, Row
from benchmarks.task import Task

__all__ = ["compare", "load", "regrade"]


def regrade(bench: Bench) -> list[Row]:
    """Stored trials graded again: time, and peak memory over that of a hundredth."""
    size = bench.sizes.regrade
    cases = min(1_000, max(1, size // 100))
    many, few = Task("regrade", cases=cases, trials_each=size // cases), Task("regrade", cases=cases)
    ten = replace(few, trials_each=min(10, many.trials_each))  # shows the same places, without minutes of tracing
    large = bench.results(dict.fromkeys((OURS, "floor"), many), 1)
    small = bench.results(dict.fromkeys(large, few), 1)
    seconds = bench.cells(dict.fromkeys(large, many), lambda result: result.seconds, 1)
    goal = Goal.of_share(15.0, size / 100_000, own=True)
    peaks = {name: growth(small[name], large[name]) for name in large}
    name = f"regrade, peak memory, {size:,} trials over {few.trials:,}"
    return [
        Row(f"regrade of {size:,} stored trials", "s", seconds, goal, bench.explain(ten)),
        Row(name, "x", peaks, Goal(1.3), bench.explain(ten, "memory"), ratios=False),
    ]


def compare(bench: Bench) -> list[Row]:
    """Two runs compared, once they are loaded."""
    task = Task("compare", cases=bench.sizes.compare)
    systems = dict.fromkeys((OURS, "floor", "pydantic-evals"), task)
    cells = bench.cells(systems, lambda result: result.seconds, {"pydantic-evals": 1})
    return [Row(f"compare of two runs of {task.cases:,} cases", "s", cells, Goal(1.0), bench.explain(task))]


def load(bench: Bench) -> list[Row]:
    """Cases read and checked, from one file and from a file each."""
    size, goal = bench.sizes.load, Goal.of_share(3.0, bench.sizes.load / 10_000, own=True)
    one, many = Task("load", cases=size), Task("load_many", cases=size)
    from_one = bench.cells({OURS: one, "floor": one}, lambda result: result.seconds, 3)
    from_many = bench.cells({OURS: many}, lambda result: result.seconds, 3)
    return [
        Row(f"load {size:,} cases, one file", "s", from_one, goal, bench.explain(one)),
        Row(f"load {size:,} cases, a file each", "s", from_many, goal, bench.explain(many)),
    ]
