"""Rows about starting up, each a process as a whole."""

from __future__ import annotations

import pstats
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measuring import Bench, Command, MeasuringError, turns
from benchmarks.profiles import Hot, hottest
from benchmarks.table import NAMES, OURS, Cell, Goal, Row
from benchmarks.task import Task

__all__ = ["startup"]

_IMPORTS = {
    OURS: "import seatrial",
    "floor": "import asyncio, orjson",
    "pydantic-evals": "from pydantic_evals import Case, Dataset",
    "inspect-ai": "from inspect_ai import Task, eval",
}
_INSPECT = "from inspect_ai._cli.main import main; main()"


def startup(bench: Bench) -> list[Row]:
    """Import, `--help`, `check`, and the time to the first trial."""
    with bench.folder() as folder:
        _project(folder)
        return [_import(bench), _help(bench), _check(bench, folder), _first(bench, folder)]


def _import(bench: Bench) -> Row:
    commands = {name: Command(("-c", code), ("-c", "")) for name, code in _IMPORTS.items()}
    cells = bench.commands(commands, lambda ours, bare: ours - bare)
    why = _explained(bench, ("-c", _IMPORTS[OURS]))
    return Row("import over bare Python", "s", cells, Goal(0.04), why, ratios=False)


def _help(bench: Bench) -> Row:
    click = ("-c", "import click")
    ours = ("-m", "seatrial", "--help")
    commands = {OURS: Command(ours, click), "inspect-ai": Command(("-c", _INSPECT, "--help"), click)}
    cells = bench.commands(commands, lambda command, bare: command / bare)
    return Row("--help over `import click`", "x", cells, Goal(2.5), _explained(bench, ours), ratios=False)


def _check(bench: Bench, folder: Path) -> Row:
    arguments = ("-m", "seatrial", "check", "--project", str(folder))
    cells = bench.commands({OURS: Command(arguments)}, lambda seconds, _: seconds)
    return Row("check of one case, whole process", "s", cells, Goal(0.5, own=True), _explained(bench, arguments))


def _first(bench: Bench, folder: Path) -> Row:
    """From the start of the process to the agent's first call."""
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    failed: dict[str, str] = {}
    for name in turns(dict.fromkeys(NAMES, min(bench.sizes.pairs, 5))):
        try:
            found[name].append(_seconds_to_first(bench, name, folder))
        except MeasuringError as error:
            failed[name] = str(error)
    cells = {name: Cell(reason=failed[name]) if name in failed else Cell(tuple(found[name])) for name in NAMES}
    why = _explained(bench, _run(folder, folder / "explained"))
    return Row("time to the first trial, whole process", "s", cells, Goal(0.6, own=True), why)


def _run(project: Path, output: Path) -> tuple[str, ...]:
    return ("-m", "seatrial", "run", "-q", "--project", str(project), "--output", str(output))


def _seconds_to_first(bench: Bench, name: str, project: Path) -> float:
    with bench.folder() as folder:
        mark = project / "mark" if name == OURS else folder / "mark"
        mark.unlink(missing_ok=True)
        command = bench.command(name, Task("trials", cases=1, agent="marked", mark=str(mark)), folder)
        if name == OURS:
            command = [bench.python(name), *_run(project, folder / "out")]
        began = time.time_ns()
        done = subprocess.run(command, **bench.surroundings(), capture_output=True, text=True, check=False)
        if not mark.exists():
            raise MeasuringError((done.stderr.strip().splitlines() or ["no trial began"])[-1])
        return (mark.stat().st_mtime_ns - began) / 1e9


_AGENT = """
from pathlib import Path


def answer(message):
    Path(__file__).with_name("mark").touch()
    return message
"""


def _project(folder: Path) -> None:
    (folder / "cases").mkdir()
    (folder / "cases" / "one.yaml").write_text("{id: one, input: hello, expected: {answer: hello}}\n")
    (folder / "first_agent.py").write_text(_AGENT)
    (folder / "seatrial.yaml").write_text("version: 1\nagent: first_agent:answer\n")


def _explained(bench: Bench, arguments: tuple[str, ...]) -> Callable[[], list[Hot]]:
    """The profile of one more such process."""

    def explained() -> list[Hot]:
        with bench.folder() as folder:
            file = folder / "profile"
            program, rest = _as_program(arguments, folder)
            bench.process_seconds(OURS, ("-m", "cProfile", "-o", str(file), *program, *rest))
            return hottest(pstats.Stats(str(file)))

    return explained


def _as_program(arguments: tuple[str, ...], folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Arguments for cProfile, which takes a module or a file, but no `-c`."""
    if arguments[0] == "-m":
        return arguments[:2], arguments[2:]
    (folder / "program.py").write_text(arguments[1])
    return (str(folder / "program.py"),), arguments[2:]
