"""Where time and memory go: the functions with the most time of their own, the lines that hold the most memory."""

from __future__ import annotations

import cProfile
import pstats
import resource
import sys
import threading
import tracemalloc
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["TOP", "Hot", "held", "hot_files", "hot_functions", "hot_lines", "hottest", "peak_mb"]

TOP = 5
"""How many are named."""


@dataclass(frozen=True)
class Hot:
    """One place that costs."""

    place: str
    """`package/module.py:line function`, without what lies above the package."""
    share: float
    """Of the whole, in [0, 1]."""
    amount: float
    unit: str
    """s (time of its own) or MB (held, or on disk)."""
    count: int
    """Calls, objects, or lines of a file."""

    def line(self) -> str:
        """As it is printed."""
        return f"{self.share:>5.0%} {self.amount:>8.3f} {self.unit:<2} {self.count:>9,} x  {self.place}"


def hot_functions(run: Callable[[], Any]) -> list[Hot]:
    """Profile `run`, with every thread it starts, waiting apart."""
    profiles = [cProfile.Profile()]

    def in_a_new_thread(*_: object) -> None:
        profiles.append(cProfile.Profile())
        _enable(profiles[-1])

    threading.setprofile(in_a_new_thread)
    _enable(profiles[0])
    try:
        run()
    finally:
        profiles[0].disable()
        threading.setprofile(None)
    seen = [profile for profile in profiles if profile.getstats()]
    return hottest(pstats.Stats(*seen)) if seen else []


def _enable(profile: cProfile.Profile) -> None:
    try:
        profile.enable()
    except ValueError:  # newer Pythons have one profiler for all threads, which is on already
        sys.setprofile(None)


_WAITING = ("select.epoll", "select.poll", "_thread.lock", "time.sleep", "posix.waitpid", "_queue.")


def hottest(stats: pstats.Stats, top: int = TOP) -> list[Hot]:
    """The functions with the most time of their own, then the modules with the most in theirs and the built-in ones
    they call. Functions that only wait are left out.
    """
    rows = [
        (where, calls, own, callers)
        for where, (_, calls, own, _, callers) in stats.stats.items()  # type: ignore[attr-defined]
        if not any(word in where[2] for word in _WAITING)
    ]
    whole = sum(own for _, _, own, _ in rows) or 1.0
    functions: dict[str, list[float]] = {_place(*where): [own, calls] for where, calls, own, _ in rows}
    modules: dict[str, list[float]] = defaultdict(lambda: [0.0, 0])
    for where, calls, own, callers in rows:
        for file, share, times in _by_file(where, calls, own, callers):
            modules["all of " + _place(file, 0).partition(":")[0]][0] += share
            modules["all of " + _place(file, 0).partition(":")[0]][1] += times
    most = [sorted(sums.items(), key=lambda item: -item[1][0])[:top] for sums in (functions, modules)]
    return [Hot(name, own / whole, own, "s", int(calls)) for part in most for name, (own, calls) in part]


def _by_file(
    where: tuple[str, int, str], calls: int, own: float, callers: Mapping[Any, tuple[int, int, float, float]]
) -> Iterator[tuple[str, float, int]]:
    """A function's own time by file: its own, or for a built-in one those it is called from."""
    if where[0] != "~" or not callers:
        yield where[0], own, calls
        return
    for (file, _, _), (_, times, share, _) in callers.items():
        yield file, share, times


def hot_lines(run: Callable[[], Any], top: int = TOP) -> list[Hot]:
    """What is still held when `run` is over and its result not yet let go, by the line of Seatrial that made it."""
    tracemalloc.start(12)
    result = run()
    snapshot = tracemalloc.take_snapshot()
    tracemalloc.stop()
    del result
    return held(((item.traceback, item.size, item.count) for item in snapshot.statistics("traceback")), top)


def held(found: Iterable[tuple[Sequence[tracemalloc.Frame], int, int]], top: int = TOP) -> list[Hot]:
    """Bytes and objects by traceback (oldest frame first), summed by the innermost frame of Seatrial in each."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for frames, size, count in found:
        ours = [frame for frame in frames if "seatrial" in Path(frame.filename).parts]
        frame = (ours or list(frames))[-1]
        place = sums[_place(frame.filename, frame.lineno)]
        place[0] += size
        place[1] += count
    whole = sum(size for size, _ in sums.values()) or 1
    rows = sorted(sums.items(), key=lambda item: -item[1][0])[:top]
    return [Hot(place, size / whole, size / 1e6, "MB", count) for place, (size, count) in rows]


def hot_files(folder: Path, top: int = TOP) -> list[Hot]:
    """The largest files below a folder, with their lines."""
    sizes = sorted(((path.stat().st_size, path) for path in folder.rglob("*") if path.is_file()), reverse=True)
    whole = sum(size for size, _ in sizes) or 1
    return [Hot(path.name, size / whole, size / 1e6, "MB", _lines_of(path)) for size, path in sizes[:top]]


def _lines_of(path: Path) -> int:
    """Lines of a file; of what it holds when it is compressed."""
    if path.suffix != ".zst":
        return path.read_bytes().count(b"\n")
    import zstandard

    with zstandard.open(path, "rb") as file:
        return int(file.read().count(b"\n"))


def _place(file: str, line: int, function: str = "") -> str:
    if file == "~":
        return function or "built-in"
    parts = Path(file).parts
    for above in ("src", "site-packages", f"python{sys.version_info[0]}.{sys.version_info[1]}"):
        if above in parts:
            last = len(parts) - parts[::-1].index(above)
            parts = parts[last:]
            break
    else:
        parts = parts[-2:]
    return f"{'/'.join(parts)}:{line} {function}".rstrip()


def peak_mb() -> float:
    """The most memory this process has held at once since its program began, in MB.

    On Linux the kernel's count for the program itself: `ru_maxrss` begins with what the parent held when it forked.
    """
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024
    except (OSError, StopIteration):
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / (1024**2 if sys.platform == "darwin" else 1024)
