"""`make bench`: what Seatrial costs on this machine, each figure beside its target. A figure that is missed says so.

Machines differ and are noisy: ratios are taken within this one run, pair by pair, and the median is printed.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import load_cases

PAIRS = 9
NOTHING = ("-c", "")


@dataclass(frozen=True)
class Figure:
    """One measured figure."""

    name: str
    value: float
    target: float
    unit: str

    def line(self) -> str:
        verdict = "met" if self.value <= self.target else "MISSED"
        return f"{self.name:<58} {self.value:>9.3f} {self.unit:<3} target {self.target:>6.2f}  {verdict}"


def process_seconds(*arguments: str) -> float:
    """Wall time of one Python process."""
    began = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def ratio(ours: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Median ratio of two commands' wall times, run in turn."""
    pairs = [(process_seconds(*ours), process_seconds(*other)) for _ in range(PAIRS + 1)]
    return statistics.median(a / b for a, b in pairs[1:])


def difference(ours: tuple[str, ...], other: tuple[str, ...]) -> float:
    """Median difference of two commands' wall times, run in turn."""
    pairs = [(process_seconds(*ours), process_seconds(*other)) for _ in range(PAIRS + 1)]
    return statistics.median(a - b for a, b in pairs[1:])


def overhead(trials: int) -> float:
    """Seconds for that many instant trials of one case each, graded and kept on disk."""
    import seatrial

    with tempfile.TemporaryDirectory() as folder:
        cases = Path(folder, "cases")
        cases.mkdir()
        lines = [f'{{"id": "c{n}", "input": "x", "expected": {{"answer": "x"}}}}\n' for n in range(trials)]
        (cases / "all.jsonl").write_text("".join(lines))
        Path(folder, "seatrial.yaml").write_text("version: 1\nagent: operator:not_\n")

        async def agent(task: str) -> str:
            return task

        from seatrial.harness.plan import Request, plan
        from seatrial.harness.runs import execute

        planned = plan(Request(project=Path(folder), agent=agent))
        began = time.perf_counter()
        assert execute(planned).exit_code == seatrial.load(planned.folder).exit_code == 0
        return time.perf_counter() - began


def figures() -> list[Callable[[], Figure]]:
    bare_click = ("-c", "import click")
    return [
        lambda: Figure("load 10,000 cases of five keys", load_cases.seconds(files=1), 3.0, "s"),
        lambda: Figure(
            "seatrial --help over a bare `import click`", ratio(("-m", "seatrial", "--help"), bare_click), 2.5, "x"
        ),
        lambda: Figure("import seatrial beyond bare Python", difference(("-c", "import seatrial"), NOTHING), 0.04, "s"),
        lambda: Figure("1,000 instant trials, graded, on disk, summarised", overhead(1_000), 1.5, "s"),
    ]


def main() -> None:
    for measure in figures():
        print(measure().line(), flush=True)


if __name__ == "__main__":
    main()
