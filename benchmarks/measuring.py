"""Measuring in processes of their own, turn by turn, so that what else the machine does meets all systems alike."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.profiles import Hot
from benchmarks.sizes import Sizes
from benchmarks.table import NAMES, OURS, Cell
from benchmarks.task import Task

__all__ = ["LONGEST_S", "ROOT", "Bench", "Command", "MeasuringError", "Result", "System", "cell", "turns"]

ROOT = Path(__file__).resolve().parent.parent
LONGEST_S = 900
"""A measurement that takes longer is given up."""


@dataclass(frozen=True)
class System:
    """One of the systems side by side."""

    name: str
    module: str
    """Where its scenarios are."""
    python: Path | None
    """The interpreter that has it; None: it is not installed."""
    reason: str = ""
    """Why it is not."""


@dataclass(frozen=True)
class Result:
    """One measurement in one process."""

    seconds: float
    peak_mb: float
    disk_mb: float
    count: int


class MeasuringError(RuntimeError):
    """A process did not bring its figure."""


@dataclass(frozen=True)
class Command:
    """A process as a whole: arguments for a system's interpreter, and what its figure is compared with."""

    arguments: tuple[str, ...]
    beside: tuple[str, ...] = ()


@dataclass
class Bench:
    """The systems, the sizes, and everything measured so far: what two rows need is measured once."""

    systems: Mapping[str, System]
    sizes: Sizes
    place: Path
    """A folder for all that is written, removed at the end."""
    done: dict[tuple[str, Task], list[Result]] = field(default_factory=lambda: defaultdict(list))

    def results(self, tasks: Mapping[str, Task], rounds: Mapping[str, int] | int = 0) -> dict[str, list[Result] | str]:
        """What each system's task gives, `rounds` times (0: as the sizes say), in turn; or why there is nothing."""
        wanted = {name: self._rounds(rounds, name) - len(self.done[name, task]) for name, task in tasks.items()}
        failed: dict[str, str] = {}
        for name in turns(wanted):
            if name in failed:
                continue
            try:
                self.done[name, tasks[name]].append(self.once(name, tasks[name]))
            except MeasuringError as error:
                failed[name] = str(error)
        return {name: failed.get(name) or self.done[name, task] for name, task in tasks.items()}

    def cells(
        self, tasks: Mapping[str, Task], figure: Callable[[Result], float], rounds: Mapping[str, int] | int = 0
    ) -> dict[str, Cell]:
        """`results` as cells of one figure."""
        return {name: cell(found, figure) for name, found in self.results(tasks, rounds).items()}

    def _rounds(self, rounds: Mapping[str, int] | int, name: str) -> int:
        most = self.sizes.rounds
        asked = rounds if isinstance(rounds, int) else rounds.get(name, 0)
        return min(asked, most) if asked else most

    def once(self, name: str, task: Task) -> Result:
        """One measurement in a folder of its own. MeasuringError when it fails, or does not do all of the task."""
        with self.folder() as folder:
            result = Result(**self.ordered(name, task, folder))
        if result.count != task.trials:
            raise MeasuringError(f"{result.count:,} of {task.trials:,} came out right")
        return result

    def ordered(self, name: str, task: Task, folder: Path, explain: str = "") -> dict[str, Any]:
        """What a child prints. MeasuringError with its last words when it fails."""
        done = self._finished(self.command(name, task, folder, explain))
        data: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return data

    def command(self, name: str, task: Task, folder: Path, explain: str = "") -> list[str]:
        """The command line of a measuring process. MeasuringError when the system is not installed."""
        order = {"system": self.systems[name].module, "task": asdict(task), "folder": str(folder), "explain": explain}
        return [self.python(name), "-m", "benchmarks.child", json.dumps(order)]

    def python(self, name: str) -> str:
        """A system's interpreter. MeasuringError when it is not installed."""
        system = self.systems[name]
        if system.python is None:
            raise MeasuringError(system.reason)
        return str(system.python)

    def surroundings(self) -> dict[str, Any]:
        """Working folder and environment of every process: nothing is sent, nothing written into a home."""
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH", ""))))
        off = {"DO_NOT_TRACK": "1", "OTEL_SDK_DISABLED": "true", "LOGFIRE_SEND_TO_LOGFIRE": "false", "NO_COLOR": "1"}
        nowhere = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), "http://127.0.0.1:9")
        home = dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(self.place))
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("INSPECT_", "SEATRIAL_", "PYTHON"))
        }
        return {"cwd": ROOT, "env": {**kept, **off, **nowhere, **home, "PYTHONPATH": path}}

    def explain(self, task: Task, kind: str = "time") -> Callable[[], list[Hot]]:
        """Says what Seatrial's figure for this task is made of: `time` or `memory`."""

        def explained() -> list[Hot]:
            with self.folder() as folder:
                return [Hot(**item) for item in self.ordered(OURS, task, folder, kind)["hot"]]

        return explained

    @contextmanager
    def folder(self) -> Iterator[Path]:
        """A folder for one measurement."""
        with TemporaryDirectory(dir=self.place, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def warm_up(self) -> None:
        """Have every system run once, so that nobody's figure holds the compiling of modules."""
        for name in NAMES:
            with suppress(MeasuringError):  # what is wrong stands in the cells, later
                self.once(name, Task("trials", cases=3))

    def process_seconds(self, name: str, arguments: Sequence[str]) -> float:
        """Wall time of one process of a system's interpreter. MeasuringError when it fails."""
        began = time.perf_counter()
        self._finished([self.python(name), *arguments])
        return time.perf_counter() - began

    def _finished(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        try:
            done = subprocess.run(
                command,
                **self.surroundings(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=LONGEST_S,
            )
        except subprocess.TimeoutExpired as error:
            raise MeasuringError(f"given up after {LONGEST_S} s") from error
        if done.returncode:
            raise MeasuringError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
        return done

    def commands(self, commands: Mapping[str, Command], figure: Callable[[float, float], float]) -> dict[str, Cell]:
        """One figure a pair of processes, in turn; the first pair of each only warms up."""
        found: dict[str, list[float]] = {name: [] for name in commands}
        failed: dict[str, str] = {}
        for name in turns(dict.fromkeys(commands, self.sizes.pairs + 1)):
            command = commands[name]
            try:
                ours = self.process_seconds(name, command.arguments)
                beside = self.process_seconds(name, command.beside) if command.beside else 0.0
                found[name].append(figure(ours, beside))
            except MeasuringError as error:
                failed[name] = str(error)
        return {
            name: Cell(reason=failed[name]) if name in failed else Cell(tuple(values[1:]))
            for name, values in found.items()
        }


def turns(wanted: Mapping[str, int]) -> Iterator[str]:
    """Names in turn, each as often as wanted: a b c a b a."""
    for number in range(max(wanted.values(), default=0)):
        yield from (name for name, times in wanted.items() if times > number)


def cell(found: list[Result] | str, figure: Callable[[Result], float]) -> Cell:
    """Results, or the reason why there are none, as a cell."""
    return Cell(reason=found) if isinstance(found, str) else Cell(tuple(figure(result) for result in found))
