"""Rows about running trials: time beside the agent's own, waiting, traces, memory."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.measuring import Bench, Result
from benchmarks.table import NAMES, OURS, Cell, Goal, Row
from benchmarks.task import Task

__all__ = ["concurrency", "growth", "memory", "overhead", "traces"]

SLOW = {"inspect-ai": 1}
"""Systems that are measured once only, where once takes long."""


def _rounds(bench: Bench) -> dict[str, int]:
    return {name: SLOW.get(name, bench.sizes.rounds) for name in NAMES}


def overhead(bench: Bench) -> list[Row]:
    """Wall time of trials whose agent takes none: all of it is the harness's."""
    return [_overhead(bench, size) for size in bench.sizes.overhead]


def _overhead(bench: Bench, size: int) -> Row:
    task = Task("trials", cases=size)
    cells = bench.cells(dict.fromkeys(NAMES, task), lambda result: result.seconds, _rounds(bench))
    goal = Goal.of_share(0.15, size / 1_000) if size < 10_000 else Goal.of_share(1.5, size / 10_000)
    return Row(f"overhead of {size:,} instant trials", "s", cells, goal, bench.explain(task))


def concurrency(bench: Bench) -> list[Row]:
    """Wall time over the least that is possible, for agents that wait and agents that block."""
    waiting = Task("trials", bench.sizes.waiting, concurrency=100, agent="async", wait_s=0.05)
    blocking = Task("trials", bench.sizes.blocking, concurrency=20, agent="blocking", wait_s=0.05)
    return [
        _beside_ideal(bench, waiting, "async", Goal(1.05)),
        _beside_ideal(bench, blocking, "blocking", Goal(1.07)),
    ]


def _beside_ideal(bench: Bench, task: Task, kind: str, goal: Goal) -> Row:
    ideal = -(-task.trials // task.concurrency) * task.wait_s
    cells = bench.cells(dict.fromkeys(NAMES, task), lambda result: result.seconds / ideal, _rounds(bench))
    name = f"{task.trials:,} {kind} trials of 50 ms at {task.concurrency}"
    return Row(name, "x ideal", cells, goal, bench.explain(task))


def traces(bench: Bench) -> list[Row]:
    """Trials that make 20 calls with 2 KB each: as agents report them, and as the harness's own tools record them."""
    size = bench.sizes.traces
    task, name = Task("trials", size, agent="calls"), f"{size:,} trials x 20 calls x 2 KB"
    everybody = dict.fromkeys(NAMES, task)

    def row(what: str, unit: str, goal: Goal, figure: str) -> Row:
        cells = bench.cells(everybody, lambda result: float(getattr(result, figure)), _rounds(bench))
        kind = {"seconds": "time", "peak_mb": "memory", "disk_mb": "disk"}[figure]
        return Row(f"{name}{what}", unit, cells, goal, bench.explain(task, kind))

    share = size / 1_000
    return [
        row("", "s", Goal.of_share(0.3, share), "seconds"),
        row(", peak", "MB", Goal(100), "peak_mb"),
        row(", on disk", "MB", Goal(42 * share), "disk_mb"),
        _through_tools(bench, replace(task, agent="tools"), name, Goal.of_share(0.3, share, own=True)),
    ]


def _through_tools(bench: Bench, task: Task, name: str, goal: Goal) -> Row:
    cells = bench.cells({OURS: task}, lambda result: result.seconds)
    return Row(f"{name}, through environment.tool", "s", cells, goal, bench.explain(task))


def memory(bench: Bench) -> list[Row]:
    """Peak memory of many trials over that of few, of the same cases."""
    few, many = bench.sizes.memory
    slow = bench.sizes.memory_slow
    tasks = {name: Task("trials", cases=few, trials_each=many // few) for name in NAMES}
    tasks |= {name: Task("trials", cases=slow) for name in SLOW}  # as for overhead, so that it need not run again
    small = bench.results(dict.fromkeys(NAMES, Task("trials", cases=few)), _thrice(bench))
    large = bench.results(tasks, _thrice(bench))
    cells = {name: growth(small[name], large[name], slow if name in SLOW else 0) for name in NAMES}
    name = f"peak memory, {many:,} trials over {few:,}"
    held = replace(tasks[OURS], trials_each=min(10, many // few))  # shows the same lines, without tracing for minutes
    return [Row(name, "x", cells, Goal(1.3), bench.explain(held, "memory"), ratios=False)]


def _thrice(bench: Bench) -> dict[str, int]:
    return {name: 1 if name != OURS else min(3, bench.sizes.rounds) for name in NAMES}


def growth(small: list[Result] | str, large: list[Result] | str, other_size: int = 0) -> Cell:
    """Median peak memory of the large over that of the small; `other_size` tells of a large one unlike the others'."""
    if isinstance(small, str) or isinstance(large, str):
        return Cell(reason=small if isinstance(small, str) else str(large))
    few, many = (Cell(tuple(result.peak_mb for result in found)).value or 0.0 for found in (small, large))
    at = f" at {other_size:,}" if other_size else ""
    return Cell((many / few,), shown=f"{many / few:.2f} ({few:.0f} to {many:.0f} MB{at})")
