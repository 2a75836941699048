"""Rows about losing nothing: what keeping a trial costs, going on with a run, and a run that is killed."""

from __future__ import annotations

import subprocess
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.measuring import LONGEST_S, Bench, MeasuringError, Result
from benchmarks.table import NAMES, OURS, Cell, Goal, Row
from benchmarks.task import Task

__all__ = ["journal", "killed", "resume"]


def journal(bench: Bench) -> list[Row]:
    """Milliseconds to keep a trial: masked, linked, on the disk in the end."""
    task = Task("journal", cases=bench.sizes.journal)
    cells = bench.cells({OURS: task, "floor": task}, lambda result: _per_trial_ms(result, task))
    return [Row("journal, a trial", "ms", cells, Goal(0.05, own=True), bench.explain(task))]


def resume(bench: Bench) -> list[Row]:
    """Milliseconds a kept trial for going on with a run that lacks one."""
    cases = max(1, bench.sizes.resume // 50)
    task = Task("resume", cases=cases, trials_each=bench.sizes.resume // cases)
    cells = bench.cells({OURS: task}, lambda result: _per_trial_ms(result, task))
    return [Row("resume, a kept trial", "ms", cells, Goal(1.0), bench.explain(task))]


def _per_trial_ms(result: Result, task: Task) -> float:
    return result.seconds * 1_000 / task.trials


def killed(bench: Bench) -> list[Row]:
    """SIGKILL when half of the agents have finished: how many of these are lost, those still in flight apart."""
    task = Task("trials", bench.sizes.killed, concurrency=20, agent="marked", wait_s=0.01)
    cells = {name: _killed(bench, name, task) for name in NAMES}
    return [Row("SIGKILL half way, finished trials lost", "trials", cells, Goal(0), ratios=False)]


def _killed(bench: Bench, name: str, task: Task) -> Cell:
    try:
        with bench.folder() as folder:
            task = replace(task, mark=str(folder / "marks"))
            finished = _kill(bench, name, task, folder)
            kept = Result(**bench.ordered(name, replace(task, scenario="kept"), folder)).count
    except MeasuringError as error:
        return Cell(reason=str(error))
    lost = max(0, finished - kept - task.concurrency)
    return Cell((float(lost),), shown=f"{lost:,} ({kept:,} of {finished:,} kept)")


def _kill(bench: Bench, name: str, task: Task, folder: Path) -> int:
    """Start it, kill it half way, and count the agents that had finished."""
    marks, latest = Path(task.mark), time.monotonic() + LONGEST_S
    process = subprocess.Popen(
        bench.command(name, task, folder),
        **bench.surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    while not marks.exists() or marks.stat().st_size < task.trials // 2:
        if process.poll() is not None:
            raise MeasuringError(f"it ended before it could be killed (exit code {process.returncode})")
        if time.monotonic() > latest:
            break
        time.sleep(0.001)
    process.kill()
    process.wait()
    return marks.stat().st_size
