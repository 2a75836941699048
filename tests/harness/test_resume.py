"""A run that was ended in any way goes on where it stopped: nothing lost, nothing twice, nothing mixed."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from packed import unpacked
from projects import case, seatrial, small_disk, write_project
from seatrial.errors import SeatrialError, StorageError, UsageError
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute
from seatrial.store.journal import TRACES, TRIALS
from seatrial.store.lock import FolderLock
from seatrial.store.rundir import RunFolder, RunWriter

posix = pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")


class Stopper:
    """An agent that counts its calls and, at one of them, has the operator press Ctrl-C."""

    def __init__(self, stop_at: int | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.stop_at = stop_at

    async def __call__(self, task: Any) -> str:
        self.calls[api.current_trial().case.id] += 1
        if sum(self.calls.values()) == self.stop_at:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.Event().wait()
        return f"you said {task}"


def project(folder: Path, count: int = 4, **more: str) -> Path:
    return write_project(folder, {f"cases/c{n:02}.yaml": case(f"c{n:02}", **more) for n in range(count)})


def run(folder: Path, agent: Any, **options: Any) -> Run:
    options = {"concurrency": 1, "seed": 7, "output": folder / "out", "resume": True} | options
    return api.run(folder, agent=agent, **options)


def behaviour(run: Run) -> str:
    """`results.json` without what differs from run to run."""
    results = json.loads((run.folder / "results.json").read_text(encoding="utf-8"))
    del results["times"]
    return json.dumps(results)


def content(folder: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in sorted(folder.rglob("*")) if path.is_file()
    }


def keys(run: Run) -> list[str]:
    return [str(record.key) for record in run.trials]


@posix
def test_an_interrupted_run_goes_on_with_what_is_missing_and_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    project(tmp_path)
    first = run(tmp_path, Stopper(3), trials=2)
    assert (first.exit_code, len(first.trials)) == (130, 2)
    agent = Stopper()
    second = run(tmp_path, agent)
    assert agent.calls == {"c00": 1, "c01": 1, "c02": 2, "c03": 2}
    unbroken = run(tmp_path, Stopper(), trials=2, output=tmp_path / "unbroken")
    assert behaviour(second) == behaviour(unbroken)
    assert sorted(keys(second)) == sorted(keys(unbroken))
    assert {record.key: record.seed for record in second.trials} == {r.key: r.seed for r in unbroken.trials}
    info = RunFolder(second.folder).info
    assert (info.run_id, info.seed, info.started) == (first.info.run_id, 7, first.info.started)
    assert (str(info.status), len(info.resumed)) == ("finished", 1)
    assert api.load(second.folder).trials == second.trials
    assert not (second.folder / "run.lock").exists()


@posix
def test_bl_066_an_operators_stop_is_final_whatever_agents_and_graders_make_of_it(tmp_path: Path) -> None:
    calls: Counter[str] = Counter()

    async def agent(task: str) -> str:
        identifier = api.current_trial().case.id
        calls[identifier] += 1
        if identifier == "c01":
            os.kill(os.getpid(), signal.SIGINT)
            try:
                await asyncio.Event().wait()
            finally:
                raise ConnectionError("cut off")
        return f"you said {task}"

    project(
        tmp_path,
        3,
        graders="[{use: my_graders:broken}]",
        retries="{attempts: 5, on: [ConnectionError, ValueError]}",
    )
    (tmp_path / "my_graders.py").write_text(
        "def broken(context):\n    if context.case.id == 'c01':\n        raise ValueError('no')\n    return True\n"
    )
    stopped = run(tmp_path, agent)
    assert calls == {"c00": 1, "c01": 1}
    assert stopped.exit_code == 130
    assert [(item.case_id, str(item.verdict)) for item in stopped.cases] == [
        ("c00", "passed"),
        ("c01", "not_run"),
        ("c02", "not_run"),
    ]
    assert stopped.cases[1].reason == "interrupted: 1 of 1 trials did not run"
    assert keys(stopped) == ["c00#1"]


def test_a_stop_while_the_threads_come_up_is_final_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Counter[str] = Counter()
    started = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        started(thread)
        if thread.name == "seatrial-watchdog":
            raise KeyboardInterrupt

    async def agent(task: str) -> str:
        calls[api.current_trial().case.id] += 1
        await asyncio.Event().wait()
        return task

    project(tmp_path, 2, retries="{attempts: 5, on: [CancelledError, TimeoutError]}")
    before = set(threading.enumerate())
    monkeypatch.setattr(threading.Thread, "start", start)
    stopped = run(tmp_path, agent)
    assert stopped.exit_code == 130
    assert keys(stopped) == []
    assert max(calls.values(), default=0) <= 1
    assert [thread.name for thread in set(threading.enumerate()) - before if thread.name == "seatrial-watchdog"] == []


def test_bl_072_a_resume_sees_the_trials_of_all_earlier_sittings(tmp_path: Path) -> None:
    project(tmp_path, 10)
    first = Stopper(9)
    run(tmp_path, first)
    killed_right_after_start(tmp_path)
    third = Stopper()
    finished = run(tmp_path, third)
    assert sum(third.calls.values()) == 2
    assert Counter(keys(finished)) == Counter(f"c{n:02}#1" for n in range(10))
    assert len(finished.summary()["cases"]) == 10
    assert len(RunFolder(finished.folder).info.resumed) == 2


def as_if_killed(folder: Path) -> None:
    """Let a run folder say what it says of a run that did not come to its end."""
    info = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(info | {"status": "running", "ended": None, "chain_end": None}))


def killed_right_after_start(folder: Path) -> None:
    """What a sitting leaves that is killed before its first trial."""
    planned = plan(Request(project=folder, agent=Stopper(), output=folder / "out", resume=True))
    RunWriter.resume(planned.folder, planned.info, [], planned.redactor).close()
    with (planned.folder / TRIALS).open("ab") as trials:
        trials.write(b'{"run_id":"torn')


@posix
def test_bl_074_a_resume_tops_up_single_trials_and_leaves_a_finished_run_alone(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": case("a"), "cases/b.yaml": case("b", answer="goodbye")})
    run(tmp_path, Stopper(2), trials=4)
    agent = Stopper()
    finished = run(tmp_path, agent, trials=4)
    assert sum(agent.calls.values()) == 7
    before = content(finished.folder)
    agent = Stopper()
    again = run(tmp_path, agent)
    assert sum(agent.calls.values()) == 0
    assert content(finished.folder) == before
    assert (again.exit_code, again.trials) == (finished.exit_code, finished.trials) == (1, finished.trials)


@posix
@pytest.mark.slow
def test_bl_076_an_interrupt_stops_before_the_next_trial_and_cases_of_equal_text_are_not_mixed_up(
    tmp_path: Path,
) -> None:
    agent = """
        import pathlib, time
        import seatrial

        def answer(task):
            with pathlib.Path("calls.log").open("a") as file:
                file.write(seatrial.current_trial().case.id + "\\n")
            time.sleep(0.2)
            return task
        """
    cases = {f"cases/c{n:02}.yaml": case(f"c{n:02}", message="hello" if n < 2 else f"hello {n}") for n in range(20)}
    write_project(tmp_path, {"my_agent.py": agent, **cases})
    calls = tmp_path / "calls.log"
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "--concurrency", "1", "--output", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not calls.exists() or calls.read_text().count("\n") < 5:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    begun = calls.read_text().split()
    stopped = api.load(tmp_path / "out")
    assert len(begun) - len(stopped.trials) <= 1
    assert "seatrial run --concurrency 1 --output out --resume" in err
    resumed = seatrial("run", "--concurrency", "1", "--output", "out", "--resume", cwd=tmp_path)
    assert resumed.returncode == 0, resumed.stderr
    ran = calls.read_text().split()[len(begun) :]
    assert sorted(ran + [record.case_id for record in stopped.trials]) == [f"c{n:02}" for n in range(20)]
    assert len(api.load(tmp_path / "out").trials) == 20


@posix
@pytest.mark.slow
def test_a_second_interrupt_ends_at_once_and_leaves_a_run_to_go_on_with(tmp_path: Path) -> None:
    agent = """
        import asyncio, pathlib, time

        async def answer(task):
            if task == "wait":
                pathlib.Path("waiting").touch()
                await asyncio.to_thread(time.sleep, 3600)
            return task
        """
    write_project(tmp_path, {"my_agent.py": agent, "cases/a.yaml": case("a"), "cases/b.yaml": case("b", "wait")})
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "--concurrency", "1", "--output", "out"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None
    while process.poll() is None:  # a signal may find the one before it not yet handled
        process.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
    out, err = process.communicate()
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    assert "1 of 2 trials are on record" in err
    assert str(api.load(tmp_path / "out").info.status) == "interrupted"


def test_a_trial_whose_retries_were_cut_off_goes_on_with_the_next_attempt(tmp_path: Path) -> None:
    """As if the process had been killed between two attempts."""
    project(tmp_path, 1, retries="{attempts: 3, on: [ConnectionError]}")

    async def broken(task: str) -> str:
        raise ConnectionError("reset")

    folder = tmp_path / "out"
    unbroken = run(tmp_path, broken, output=tmp_path / "unbroken")
    assert [record.attempt for record in unbroken.trials] == [1, 2, 3]
    run(tmp_path, broken)
    trials = folder / TRIALS
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:1]))
    as_if_killed(folder)
    resumed = run(tmp_path, broken)
    assert [record.attempt for record in resumed.trials] == [1, 2, 3]
    assert behaviour(resumed) == behaviour(unbroken)


def test_a_finished_run_can_be_topped_up_with_trials(tmp_path: Path) -> None:
    project(tmp_path, 2)
    run(tmp_path, Stopper(), trials=2)
    agent = Stopper()
    more = run(tmp_path, agent, trials=3)
    assert agent.calls == {"c00": 1, "c01": 1}
    assert behaviour(more) == behaviour(run(tmp_path, Stopper(), trials=3, output=tmp_path / "unbroken"))
    assert run(tmp_path, agent).exit_code == 0
    assert sum(agent.calls.values()) == 2


def test_a_resume_of_nothing_starts_a_run(tmp_path: Path) -> None:
    project(tmp_path, 2)
    assert len(run(tmp_path, Stopper()).trials) == 2


def test_a_run_whose_last_files_are_missing_gets_them(tmp_path: Path) -> None:
    """As if the process had been killed between its last trial and `results.json`."""
    project(tmp_path, 2)
    finished = run(tmp_path, Stopper())
    (finished.folder / "results.json").unlink()
    info = finished.folder / "run.json"
    info.write_text(info.read_text().replace('"finished"', '"running"'))
    agent = Stopper()
    assert run(tmp_path, agent).exit_code == 0
    assert agent.calls == {}
    assert (finished.folder / "results.json").exists()


# --- refusals -------------------------------------------------------------------------------------------------------


def refused(folder: Path, agent: Any = "my_agent:answer", **options: Any) -> str:
    before = content(folder / "out")
    with pytest.raises(UsageError) as error:
        run(folder, agent, **options)
    assert content(folder / "out") == before
    return str(error.value)


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    """A project with a run in `out` that was cut off after two of three trials."""
    project(tmp_path, 3)
    finished = run(tmp_path, "my_agent:answer", trials=1)
    trials = finished.folder / TRIALS
    trials.write_bytes(b"".join(trials.read_bytes().splitlines(keepends=True)[:2]))
    as_if_killed(finished.folder)
    return tmp_path


@pytest.mark.parametrize(
    ("changes", "options", "named"),
    [
        ({"cases/c01.yaml": case("c01", answer="goodbye")}, {}, "case c01: it, its fixture"),
        ({}, {"agent": "my_agent:later"}, 'agent.target: was "my_agent:answer", now "my_agent:later"'),
        ({}, {"seed": 8}, "seed: was 7, now 8"),
        ({}, {"build_id": "v2"}, 'build_id: was "dev", now "v2"'),
        ({}, {"set": ("prices.m.input=2", "prices.m.output=3")}, "prices.m: was not given"),
        ({}, {"select": ("c00", "c01")}, "case c02: is not selected"),
        ({"cases/new.yaml": case("new")}, {"select": ("cases",)}, "case new: is no case of the run"),
        ({}, {"timeout_s": 3.0}, "case c00: it, its fixture"),
    ],
)
def test_a_changed_project_is_refused_naming_what_changed(
    begun: Path, changes: dict[str, str], options: dict[str, Any], named: str
) -> None:
    write_project(begun, {f"cases/c{n:02}.yaml": case(f"c{n:02}") for n in range(3)} | changes)
    message = refused(begun, **options)
    assert named in message
    assert "start a new run" in message


def test_fewer_trials_than_the_run_had_are_refused(tmp_path: Path) -> None:
    project(tmp_path, 1)
    run(tmp_path, "my_agent:answer", trials=3)
    assert "case c00: had 3 trials, now 2; more is fine" in refused(tmp_path, trials=2)


def test_what_the_request_leaves_open_is_as_the_run_had_it(begun: Path) -> None:
    write_project(begun, {"cases/new.yaml": case("new")})
    resumed = api.run(begun, agent="my_agent:answer", output=begun / "out", resume=True)
    assert (len(resumed.trials), resumed.info.seed) == (3, 7)


def test_a_run_of_another_live_writer_is_refused(begun: Path) -> None:
    lock = FolderLock(begun / "out")
    try:
        assert f"process {os.getpid()} is still writing this run" in refused(begun)
    finally:
        lock.release()
    assert len(run(begun, "my_agent:answer").trials) == 3


def test_a_folder_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    project(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("keep me")
    assert "holds no run to go on with" in refused(tmp_path)


def test_a_resume_needs_a_folder_and_a_new_run_an_empty_one(begun: Path) -> None:
    with pytest.raises(UsageError, match="--resume needs --output DIR"):
        api.run(begun, resume=True)
    with pytest.raises(UsageError, match="not empty; name a new one, or resume the run in it"):
        run(begun, "my_agent:answer", resume=False)


@pytest.mark.parametrize("trials", [1, 2])
@pytest.mark.parametrize("name", [TRIALS, TRACES, "cases.jsonl"])
def test_a_finished_run_that_is_not_whole_is_refused_even_to_be_topped_up(
    tmp_path: Path, name: str, trials: int
) -> None:
    project(tmp_path, 2)
    out = run(tmp_path, "my_agent:answer", trials=1).folder
    (out / name).unlink()
    before = content(out)
    with pytest.raises(StorageError, match=f"{name}: is missing"):
        run(tmp_path, "my_agent:answer", trials=trials)
    assert content(out) == before


@pytest.mark.parametrize("name", [TRIALS, TRACES])
def test_a_finished_run_that_was_cut_short_is_refused(tmp_path: Path, name: str) -> None:
    project(tmp_path, 2)
    out = run(tmp_path, "my_agent:answer").folder
    os.truncate(out / name, (out / name).stat().st_size - 1)
    before = content(out)
    with pytest.raises(StorageError, match=name):
        run(tmp_path, "my_agent:answer")
    assert content(out) == before


def test_the_second_of_two_that_start_a_run_at_once_with_resume_is_told_who_writes_it(tmp_path: Path) -> None:
    project(tmp_path, 1)
    request = Request(project=tmp_path, agent=Stopper(), output=tmp_path / "out", resume=True)
    second = plan(request)
    first = plan(request)
    writer = RunWriter.create(first.folder, first.info, [], first.redactor)
    with pytest.raises(UsageError, match=f"process {os.getpid()} is still writing this run"):
        execute(second)
    writer.close()
    with pytest.raises(UsageError, match="another process has just run in it; resume again"):
        execute(second)
    assert run(tmp_path, Stopper(), seed=first.info.seed).exit_code == 0


# --- disks ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_disk_that_fills_up_loses_no_finished_trial(tmp_path: Path) -> None:
    lines = [json.dumps({"id": f"c{n}", "input": f"{n}", "expected": {"answer": f"{n}"}}) for n in range(300)]
    write_project(tmp_path, {"cases/all.jsonl": "\n".join(lines) + "\n"})
    with small_disk(tmp_path / "disk") as disk:
        (disk / "ballast").write_bytes(b"x" * 20_000)
        full = seatrial("run", "--output", "disk/out", "--seed", "7", cwd=tmp_path)
        assert full.returncode == 2, full.stderr
        assert "No space left on device" in full.stderr
        assert "Traceback" not in full.stderr
        assert "seatrial run --output disk/out --resume" in full.stderr
        kept = keys(api.load(disk / "out"))
        assert 0 < len(kept) < 300
        assert f"{len(kept)} of 300 trials are on record" in full.stderr
        subprocess.run(["mount", "-o", "remount,size=10m", str(disk)], check=True)
        more = seatrial("run", "--output", "disk/out", "--resume", cwd=tmp_path)
        assert more.returncode == 0, more.stderr
        resumed = api.load(disk / "out")
        assert keys(resumed)[: len(kept)] == kept
        assert Counter(keys(resumed)) == Counter(f"c{n}#1" for n in range(300))
        unbroken = api.run(tmp_path, output=tmp_path / "unbroken", seed=7)
        assert behaviour(resumed) == behaviour(unbroken)


@pytest.mark.slow
def test_a_read_only_folder_is_named_before_the_first_agent_call(tmp_path: Path) -> None:
    project(tmp_path, 2)
    agent = Stopper()
    with small_disk(tmp_path / "disk") as disk:
        run(tmp_path, Stopper(2), output=disk / "begun")
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        for folder, named in ((disk / "new", "new"), (disk / "begun", r"run\.lock")):
            with pytest.raises(StorageError, match=f"{named}.*Read-only file system"):
                run(tmp_path, agent, output=folder)
    assert agent.calls == {}


def test_a_disk_that_is_full_when_all_trials_have_ended_leaves_a_run_to_finish(tmp_path: Path) -> None:
    project(tmp_path, 2)
    planned = plan(Request(project=tmp_path, agent=Stopper(), output=tmp_path / "out", seed=7))

    def block(*_: Any) -> None:
        (tmp_path / "out" / "results.json").mkdir(exist_ok=True)

    with pytest.raises(SeatrialError, match=r"results\.json: cannot be written"):
        execute(planned, block)
    assert str(api.load(tmp_path / "out").info.status) == "running"
    (tmp_path / "out" / "results.json").rmdir()
    agent = Stopper()
    assert run(tmp_path, agent).exit_code == 0
    assert agent.calls == {}


# --- files ----------------------------------------------------------------------------------------------------------


def test_bl_096_every_file_is_strict_json_and_odd_numbers_can_be_told_apart(tmp_path: Path) -> None:
    async def agent(task: str) -> dict[str, float]:
        return {"nan": float("nan"), "inf": float("inf"), "minus": float("-inf")}

    write_project(tmp_path, {"cases/a.yaml": case("a")})
    finished = run(tmp_path, agent)
    for path in finished.folder.rglob("*.json*"):
        text = unpacked(path).decode()
        for line in text.splitlines() if ".jsonl" in path.suffixes else [text]:
            json.loads(line, parse_constant=pytest.fail)
    (record,) = api.load(finished.folder).trials
    assert [record.output[name]["value"] for name in ("nan", "inf", "minus")] == ["nan", "inf", "-inf"]
    assert finished.trace(record).output == record.output
