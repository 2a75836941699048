"""A process serves one trial, so nothing in it reaches the next one; what can be left is a file, and that is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import seatrial as api
from projects import case, write_project
from seatrial.core.trial import Leftover, LeftoverKind, TrialRecord
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.runs import execute

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

AGENT = """
import os
import subprocess
import threading
import time
from pathlib import Path

from seatrial import current_trial

HERE = Path(__file__).parent
NOTES = HERE.parent / "pids"
SEEN = []


def leaks(task):
    found = [
        "LEAKED" in os.environ and "variable",
        Path.cwd() != HERE and "folder",
        any(thread.name == "leaked" for thread in threading.enumerate()) and "thread",
        bool(SEEN) and "global",
        any(map(lives, noted())) and "program",
    ]
    os.environ["LEAKED"] = "yes"
    threading.Thread(target=time.sleep, args=(60,), name="leaked").start()
    SEEN.append(task)
    leave_programs()
    os.chdir("/")
    return ", ".join(name for name in found if name) or "as it was"


def leave_programs():
    \"\"\"One in a session of its own, one whose parent has ended, too, and theirs.\"\"\"
    note(subprocess.Popen(["sleep", "60"], start_new_session=True).pid)
    if (pid := os.fork()) == 0:
        os.setsid()
        child = subprocess.Popen(["setsid", "sh", "-c", "sleep 60 & echo $!; wait"], stdout=subprocess.PIPE)
        note(int(child.stdout.readline()))
        note(child.pid)
        os._exit(0)
    os.waitpid(pid, 0)


def noted():
    return [int(pid) for pid in NOTES.read_text().split()] if NOTES.exists() else []


def note(pid):
    with NOTES.open("a") as file:
        file.write(f"{pid}\\n")


def lives(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def keeps_its_programs(task):  # `quick` ends while `slow` uses programs that have left its group
    here, quick = HERE / "slow-began", task == "quick"
    if quick:
        while not here.exists():
            time.sleep(0.01)
        return task
    leave_programs()
    here.touch()
    while not (HERE / "quick-ended").exists():
        time.sleep(0.01)
    return f"{sum(map(lives, noted()))} of {len(noted())}"


def makes_a_file(task):
    (HERE / f"left by {current_trial().trial_index}").touch()
    return task
"""


def test_nothing_of_a_trials_process_reaches_the_next_trial_and_nothing_of_it_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    write_project(project, {"my_agent.py": AGENT, "cases/a.yaml": case("a", answer="as it was")})
    monkeypatch.chdir(project)
    run = api.run(".", agent="my_agent:leaks", isolation="process", trials=4, concurrency=1)
    assert len((tmp_path / "pids").read_text().split()) == 12
    assert [(record.output, record.detail) for record in run.trials] == [("as it was", "")] * 4
    assert [record.leftovers for record in run.trials] == [()] * 4
    assert run.summary()["problems"] == []


def test_programs_of_a_trial_that_still_runs_are_left_alone(tmp_path: Path) -> None:
    project = write_project(
        tmp_path / "project",
        {
            "my_agent.py": AGENT,
            "cases/slow.yaml": case("slow", message="slow", answer="3 of 3"),
            "cases/quick.yaml": case("quick", message="quick", answer="quick"),
        },
    )

    def tell(record: TrialRecord, done: int, total: int) -> None:
        (project / f"{record.case_id}-ended").touch()

    planned = plan(Request(project=project, agent="my_agent:keeps_its_programs", isolation="process"))
    run = execute(planned, on_trial=tell)
    assert sorted((record.case_id, record.output) for record in run.trials) == [("quick", "quick"), ("slow", "3 of 3")]


def test_a_file_that_a_trial_leaves_is_told_with_the_trial(tmp_path: Path) -> None:
    write_project(tmp_path, {"my_agent.py": AGENT, "cases/a.yaml": "{id: a, input: x}"})
    run = api.run(tmp_path, agent="my_agent:makes_a_file", isolation="process", trials=2, concurrency=1)
    made = [f"left by {number} was made in the project's folder" for number in (1, 2)]
    assert [record.leftovers for record in run.trials] == [
        (Leftover(kind=LeftoverKind.FILE, what=what),) for what in made
    ]
    told = [problem for problem in run.summary()["problems"] if problem["kind"] == "leftovers"]
    assert len(told) == 2
    assert api.load(run.folder).trials == run.trials
