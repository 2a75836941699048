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
from dataclasses import dataclass, replace
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


def project(folder: Path, cases: int) -> None:
    """A project of that many cases which an echoing agent passes."""
    (folder / "cases").mkdir()
    lines = [f'{{"id": "c{n}", "input": "x", "expected": {{"answer": "x"}}}}\n' for n in range(cases)]
    (folder / "cases" / "all.jsonl").write_text("".join(lines))
    (folder / "seatrial.yaml").write_text("version: 1\nagent: operator:not_\n")


def overhead(trials: int) -> float:
    """Seconds for that many instant trials of one case each, graded and kept on disk."""
    import seatrial

    with tempfile.TemporaryDirectory() as folder:
        project(Path(folder), trials)

        async def agent(task: str) -> str:
            return task

        from seatrial.harness.plan import Request, plan
        from seatrial.harness.runs import execute

        planned = plan(Request(project=Path(folder), agent=agent))
        began = time.perf_counter()
        assert execute(planned).exit_code == seatrial.load(planned.folder).exit_code == 0
        return time.perf_counter() - began


def resume_milliseconds(trials: int) -> float:
    """Milliseconds a kept trial for going on with a run whose last trial is missing, from the plan to the last file."""
    with tempfile.TemporaryDirectory() as folder:
        project(Path(folder), trials)

        async def agent(task: str) -> str:
            return task

        from seatrial.harness.plan import Request, plan
        from seatrial.harness.runs import execute

        request = Request(project=Path(folder), agent=agent, output=Path(folder, "out"))
        execute(plan(request))
        records = Path(folder, "out", "trials.jsonl")
        records.write_bytes(b"".join(records.read_bytes().splitlines(keepends=True)[:-1]))
        planned = plan(replace(request, resume=True))
        began = time.perf_counter()
        assert len(execute(planned).trials) == trials
        return (time.perf_counter() - began) / trials * 1000


def journal_milliseconds(trials: int) -> float:
    """Milliseconds a trial for keeping it: masked, linked, as two lines on disk."""
    from seatrial.core.case import Case
    from seatrial.core.run import RunInfo
    from seatrial.core.trace import Message, StopReason, Trace
    from seatrial.core.trial import TrialRecord, TrialStatus
    from seatrial.environment.secrets import Redactor
    from seatrial.store.rundir import RunWriter

    trace = Trace(events=(Message(number=1, role="user", content="x"),), output="x", outputs=("x",))
    record = TrialRecord(case_id="c", status=TrialStatus.PASSED, stop_reason=StopReason.ANSWERED, output="x")
    with tempfile.TemporaryDirectory() as folder:
        masks = Redactor({"API_KEY": "sk-000000000000"})
        writer = RunWriter.create(Path(folder, "out"), RunInfo(run_id="r"), [Case(id="c")], masks)
        began = time.perf_counter()
        for number in range(trials):
            writer.write(record.model_copy(update={"trial_index": number + 1}), trace)
        writer.commit()
        spent = time.perf_counter() - began
        writer.finish(writer.info)
        return spent / trials * 1000


def figures() -> list[Callable[[], Figure]]:
    bare_click = ("-c", "import click")
    return [
        lambda: Figure("load 10,000 cases of five keys", load_cases.seconds(files=1), 3.0, "s"),
        lambda: Figure(
            "seatrial --help over a bare `import click`", ratio(("-m", "seatrial", "--help"), bare_click), 2.5, "x"
        ),
        lambda: Figure("import seatrial beyond bare Python", difference(("-c", "import seatrial"), NOTHING), 0.04, "s"),
        lambda: Figure("1,000 instant trials, graded, on disk, summarised", overhead(1_000), 1.5, "s"),
        lambda: Figure("keeping a trial (journal)", journal_milliseconds(10_000), 0.05, "ms"),
        lambda: Figure("resume, a kept trial", resume_milliseconds(5_000), 1.0, "ms"),
    ]


def main() -> None:
    for measure in figures():
        print(measure().line(), flush=True)


if __name__ == "__main__":
    main()
