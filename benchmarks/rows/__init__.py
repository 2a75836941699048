"""The rows of the table by name: each measures, and gives its lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.measuring import Bench
from benchmarks.rows.keeping import journal, killed, resume
from benchmarks.rows.running import concurrency, memory, overhead, traces
from benchmarks.rows.starting import startup
from benchmarks.rows.stored import compare, load, regrade
from benchmarks.table import Row

__all__ = ["ROWS"]

ROWS: Mapping[str, Callable[[Bench], list[Row]]] = {
    "overhead": overhead,
    "concurrency": concurrency,
    "traces": traces,
    "memory": memory,
    "regrade": regrade,
    "compare": compare,
    "load": load,
    "startup": startup,
    "journal": journal,
    "resume": resume,
    "killed": killed,
}
