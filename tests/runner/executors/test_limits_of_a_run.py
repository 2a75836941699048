"""Rate limits and the limit for judges hold over all trials of a run, wherever these run."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import seatrial, write_project
from seatrial.core.project import RateLimit, RatesSpec
from seatrial.core.trial import TrialRecord
from seatrial.environment.pace import Rates
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.worker import setup_for
from seatrial.runner.executors.process import ProcessExecutor
from seatrial.runner.processes import Launcher
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings
from seatrial.runner.waiting import Places

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

GAP_S = 0.25
AGENT = """
import os
import time
from pathlib import Path

import seatrial

HERE = Path(__file__).parent


def note(name, text):
    descriptor = os.open(HERE / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{text}\\n".encode())
    os.close(descriptor)


def patient(task):
    note("asked", time.monotonic())
    seatrial.current_trial().wait_for_model("m")
    note("called", time.monotonic())
    return f"done {os.getpid()}"


def impatient(task):
    return "done"


def forks(task):
    pid = os.fork()
    for _ in range(3):
        seatrial.current_trial().wait_for_model("m")
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "done"


async def asks_in_the_loop(task):
    seatrial.current_trial().wait_for_model("m")
    return "done"


@seatrial.grader(judge=True)
def judges(context):
    note("judging", "+1")
    time.sleep(0.05)
    note("judging", "-1")
    return True
"""
FILES = {
    "seatrial.yaml": f"""
        version: 1
        agent: my_agent:patient
        concurrency: 6
        rates: {{models: {{m: {{requests_per_minute: {60 / GAP_S:g}}}}}}}
        judge_concurrency: 2
        """,
    "my_agent.py": AGENT,
    "cases/all.yaml": "{id: a, input: x}",
}
PROCESS, DASK = ("--isolation", "process"), ("--executor", "dask")
WAYS = pytest.mark.parametrize("way", [PROCESS, DASK, DASK + PROCESS], ids=["process", "dask", "dask-process"])


def numbers(path: Path) -> list[float]:
    return [float(line) for line in path.read_text().split()]


def run_with(way: tuple[str, ...], project: Path, *more: str) -> api.Run:
    """In a process of its own: a cluster leaves threads behind."""
    if "dask" in way:
        pytest.importorskip("distributed")
    done = seatrial("run", "-q", "--output", "out", *way, *more, cwd=project)
    assert done.returncode in (0, 4), done.stderr
    return api.load(project / "out")


@WAYS
def test_no_call_comes_before_its_turn_of_the_whole_run(tmp_path: Path, way: tuple[str, ...]) -> None:
    write_project(tmp_path, FILES)
    run = run_with(way, tmp_path, "--trials", "6")
    assert [str(record.stop_reason) for record in run.trials] == ["answered"] * 6
    assert len({record.output for record in run.trials}) > 1  # processes
    first, called = min(numbers(tmp_path / "asked")), sorted(numbers(tmp_path / "called"))
    assert len(called) == 6
    assert [number for number, at in enumerate(called) if at < first + number * GAP_S - 1e-6] == []


@WAYS
def test_no_more_judges_are_asked_at_once_than_the_run_may(tmp_path: Path, way: tuple[str, ...]) -> None:
    write_project(tmp_path, FILES | {"cases/all.yaml": "{id: a, input: x, graders: [my_agent:judges]}"})
    run = run_with(way, tmp_path, "--trials", "12", "--agent", "my_agent:impatient")
    assert [str(record.status) for record in run.trials] == ["passed"] * 12
    moves = numbers(tmp_path / "judging")
    assert len(moves) == 24
    assert max(sum(moves[:end]) for end in range(len(moves))) <= 2


class Counted(Rates):
    """Rates whose clock stands still: turns are 10 ms apart, and on record."""

    def __init__(self) -> None:
        super().__init__(RatesSpec(models={"m": RateLimit(requests_per_minute=6000)}), clock=lambda: 1000.0)
        self.turns: list[float] = []

    def turn(self, kind: Any, name: str) -> tuple[float, float]:
        self.turns.append(super().turn(kind, name)[1])
        return 1000.0, self.turns[-1]


def run_by(launcher_forks: bool, project: Path, settings: TrialSettings, **options: Any) -> list[TrialRecord]:
    """The records of a run with processes that are forked, or fresh, six at once."""
    planned = plan(Request(project=project, isolation="process", **options))
    kept: list[TrialRecord] = []

    class Kept:
        def write(self, record: TrialRecord, trace: Any) -> TrialRecord:
            kept.append(record)
            return record

    launcher = Launcher("seatrial.harness.worker:bench", setup_for(planned, planned.request), fork=launcher_forks)
    try:
        executor = ProcessExecutor(planned.agent, settings, launcher, planned.scratch(), 6)
        executor.run(FixedTrials(planned.cases), Kept())
    finally:
        planned.scratch.remove()
    return kept


@pytest.mark.parametrize("forks", [True, False])
@pytest.mark.parametrize("agent", ["patient", "asks_in_the_loop"])
def test_every_call_takes_one_turn_here_by_either_way_of_starting_a_process(
    tmp_path: Path, forks: bool, agent: str
) -> None:
    write_project(tmp_path, FILES)
    rates = Counted()
    records = run_by(forks, tmp_path, TrialSettings(rates=rates), agent=f"my_agent:{agent}", trials=4)
    assert [str(record.stop_reason) for record in records] == ["answered"] * 4
    assert rates.turns == pytest.approx([1000.0, 1000.01, 1000.02, 1000.03])


def test_a_fork_of_a_trials_process_asks_nobody_and_takes_no_answers(tmp_path: Path) -> None:
    write_project(tmp_path, FILES)
    rates = Counted()
    (record,) = run_by(True, tmp_path, TrialSettings(rates=rates), agent="my_agent:forks")
    assert (str(record.stop_reason), len(rates.turns)) == ("answered", 3)


@pytest.mark.parametrize("forks", [True, False])
def test_a_process_that_dies_judging_gives_its_place_back(tmp_path: Path, forks: bool) -> None:
    dies = "\n\n@seatrial.grader(judge=True)\ndef dies(context):\n    os._exit(4)\n"
    write_project(
        tmp_path,
        FILES | {"my_agent.py": AGENT + dies, "cases/all.yaml": "{id: a, input: x, graders: [my_agent:dies]}"},
    )
    settings = TrialSettings(judges=Places(1))
    records = run_by(forks, tmp_path, settings, agent="my_agent:impatient", trials=3)
    assert [record.detail for record in records] == [
        "the trial's process exited with code 4 after the agent had ended"
    ] * 3
