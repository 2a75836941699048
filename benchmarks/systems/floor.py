"""The floor: what a plain program costs. asyncio gather, a semaphore and JSON lines, written as trials finish."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson

from benchmarks.task import Ready, Task, act, act_blocking, calls, lines_in, question

__all__ = ["compare", "journal", "kept", "load", "regrade", "trials"]

Answer = Callable[[str], Awaitable[Any]]


def trials(task: Task, folder: Path) -> Ready:
    """Every trial once, graded, a line a trial in an unbuffered file."""
    path = _kept(folder)
    return Ready(lambda: asyncio.run(_run(task, path)), lambda passed: min(passed, lines_in(path)))


async def _run(task: Task, path: Path) -> int:
    gate = asyncio.Semaphore(task.concurrency)
    with ThreadPoolExecutor(task.concurrency) as threads, path.open("ab", buffering=0) as file:
        answer = _answer(task, threads)

        async def trial(number: int, index: int) -> bool:
            async with gate:
                output = await answer(question(number))
            answered = output["answer"] if isinstance(output, dict) else output
            passed = bool(answered == question(number))
            file.write(_line(number, index, output, passed))
            return passed

        numbers = ((number, index) for index in range(task.trials_each) for number in range(task.cases))
        return sum(await asyncio.gather(*(trial(number, index) for number, index in numbers)))


def _answer(task: Task, threads: ThreadPoolExecutor) -> Answer:
    async def plain(asked: str) -> str:
        await act(task)
        return asked

    async def calling(asked: str) -> dict[str, Any]:
        made = [{"name": "look", "arguments": {"n": number}, "result": text} for number, text in calls(asked)]
        return {"answer": asked, "calls": made}

    async def blocking(asked: str) -> str:
        await asyncio.get_running_loop().run_in_executor(threads, act_blocking, task)
        return asked

    return {"calls": calling, "tools": calling, "blocking": blocking}.get(task.agent, plain)


def _line(number: int, index: int, output: Any, passed: bool) -> bytes:
    return orjson.dumps({"case": number, "trial": index, "output": output, "passed": passed}) + b"\n"


def kept(task: Task, folder: Path) -> Ready:
    """How many trials a run that was killed left on disk."""
    path = _kept(folder)
    return Ready(lambda: lines_in(path), int)


def journal(task: Task, folder: Path) -> Ready:
    """Trials written, a line each."""
    path = _kept(folder)

    def run() -> None:
        with path.open("ab", buffering=0) as file:
            for number in range(task.trials):
                file.write(_line(number, 0, question(number), passed=True))

    return Ready(run, lambda _: lines_in(path))


def regrade(task: Task, folder: Path) -> Ready:
    """Trials read, graded, written again, a line each."""
    before, after = _kept(folder), folder / "kept" / "again.jsonl"
    before.write_bytes(b"".join(_line(number, 0, question(number), passed=True) for number in range(task.trials)))

    def run() -> int:
        right = 0
        with before.open("rb") as stored, after.open("wb") as file:
            for text in stored:
                data = orjson.loads(text)
                passed = data["output"] == question(data["case"])
                file.write(_line(data["case"], data["trial"], data["output"], passed))
                right += passed
        return right

    return Ready(run, int)


def compare(task: Task, folder: Path) -> Ready:
    """Cases of two runs paired by id, changes counted."""
    before = [orjson.loads(_line(number, 0, question(number), passed=True)) for number in range(task.cases)]
    after = [orjson.loads(_line(number, 0, question(number), number % 10 > 0)) for number in range(task.cases)]

    def run() -> list[tuple[int, str]]:
        then = {row["case"]: row["passed"] for row in before}
        return [(row["case"], _change(then[row["case"]], row["passed"])) for row in after]

    return Ready(run, len)


def _change(before: bool, after: bool) -> str:
    return "same" if before == after else "broke" if before else "fixed"


def load(task: Task, folder: Path) -> Ready:
    """Cases read from one file of JSON lines."""
    path = folder / "cases.jsonl"
    path.write_bytes(b"".join(_line(number, 0, question(number), passed=True) for number in range(task.cases)))
    return Ready(lambda: [orjson.loads(line) for line in path.read_bytes().splitlines()], len)


def _kept(folder: Path) -> Path:
    (folder / "kept").mkdir(exist_ok=True)
    return folder / "kept" / "trials.jsonl"
