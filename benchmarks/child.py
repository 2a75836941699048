"""One measurement, in the process it is measured in: `python -m benchmarks.child ORDER` prints a result as JSON.

The clock starts when all is imported and prepared, so that no process start and no import counts.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.profiles import Hot, hot_files, hot_functions, hot_lines, peak_mb
from benchmarks.task import Ready, Task, make_text

__all__ = ["measured"]


def measured(order: dict[str, Any]) -> dict[str, Any]:
    """Do what is ordered: `{system: module, task, folder, explain: "" | time | memory | disk}`."""
    task, folder = Task(**order["task"]), Path(order["folder"])
    prepare: Callable[[Task, Path], Ready] = getattr(import_module(order["system"]), task.scenario)
    ready = prepare(task, folder)
    if task.agent in ("calls", "tools"):
        make_text()
    gc.collect()
    if order["explain"]:
        return {"hot": [vars(hot) for hot in _explained(order["explain"], ready, folder / "kept")]}
    began = time.perf_counter()
    done = ready.run()
    seconds = time.perf_counter() - began
    memory = peak_mb()
    return {"seconds": seconds, "peak_mb": memory, "disk_mb": _size_mb(folder / "kept"), "count": ready.count(done)}


def _explained(kind: str, ready: Ready, kept: Path) -> list[Hot]:
    if kind == "disk":
        ready.run()
        return hot_files(kept)
    return {"time": hot_functions, "memory": hot_lines}[kind](ready.run)


def _size_mb(path: Path) -> float:
    return sum(file.stat().st_size for file in path.rglob("*") if file.is_file()) / 1e6


if __name__ == "__main__":
    print(json.dumps(measured(json.loads(sys.argv[1]))))
