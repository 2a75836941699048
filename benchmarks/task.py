"""What one process is to measure, and what the agent in it does: the same for every system. Standard library only."""

from __future__ import annotations

import asyncio
import os
import random
import string
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["CALLS", "CALL_SIZE", "Ready", "Task", "act", "act_blocking", "calls", "lines_in", "make_text", "question"]

CALLS = 20
"""Tool calls that an agent which makes any makes in a trial."""
CALL_SIZE = 2_000
"""Characters of each call's result."""


@dataclass(frozen=True)
class Task:
    """One scenario in one size."""

    scenario: str
    """`trials`, or one of those that not every system has."""
    cases: int
    trials_each: int = 1
    concurrency: int = 10
    agent: str = "instant"
    """instant, async (waits), blocking (waits and holds its thread), calls (reports tool calls), tools (calls tools
    that the harness hands out) or marked (waits, then says in a file that it has finished)."""
    wait_s: float = 0.0
    mark: str = ""
    """The file that a marked agent adds a byte to."""

    @property
    def trials(self) -> int:
        """All of them."""
        return self.cases * self.trials_each


@dataclass(frozen=True)
class Ready:
    """A scenario whose preparations are done. Only `run` is measured."""

    run: Callable[[], Any]
    count: Callable[[Any], int]
    """From what `run` gave, how many trials (or cases) came out right."""


def question(number: int) -> str:
    """What case `number` asks; the right answer is the question itself."""
    return f"question {number}"


async def act(task: Task) -> None:
    """What an async agent does besides answering."""
    if task.wait_s:
        await asyncio.sleep(task.wait_s)
    if task.mark:
        os.write(_opened(task.mark), b".")


def act_blocking(task: Task) -> None:
    """What a blocking agent does besides answering."""
    time.sleep(task.wait_s)


def calls(asked: str) -> Iterator[tuple[int, str]]:
    """The calls an agent makes on a question: number and result, a random text that no compression makes small."""
    text, first = make_text(), int(asked.rpartition(" ")[2]) * CALLS
    for number in range(CALLS):
        at = (first + number) * 104_729 % (len(text) - CALL_SIZE)
        yield number, text[at : at + CALL_SIZE]


def lines_in(path: Path) -> int:
    """Lines of a file, read bit by bit."""
    with path.open("rb") as file:
        return sum(1 for _ in file)


@cache
def make_text() -> str:
    """What results are cut from; made once, before the clock starts."""
    return "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=1_000_000))


@cache
def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
