"""A run that is killed at any moment leaves files that read, and goes on as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

import seatrial as api
from projects import killed_at, seatrial, write_project
from seatrial.store.journal import TRIALS

AGENT = """
import asyncio, os, time
import seatrial

CALLS = os.open("calls.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def called():
    trial = seatrial.current_trial()
    os.write(CALLS, f"{trial.case.id}#{trial.trial_index} {os.getpid()} {os.getppid()}\\n".encode())


async def instant(task):
    called()
    return task


async def slow(task):
    called()
    await asyncio.sleep(0.01)
    return task


def blocking(task):
    called()
    time.sleep(0.01)
    return task
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")]


def written(folder: Path) -> bytes:
    """The whole lines of `trials.jsonl`."""
    content = (folder / TRIALS).read_bytes() if (folder / TRIALS).exists() else b""
    return content[: content.rfind(b"\n") + 1]


def finished(folder: Path) -> list[str]:
    """The trials of these lines, in the order in which they finished."""
    records = [json.loads(line) for line in written(folder).splitlines()]
    return [f"{record['case_id']}#{record['trial_index']}" for record in records]


def assert_readable(folder: Path) -> None:
    """Every file that is there reads."""
    if (folder / "cases.jsonl").exists():
        run = api.load(folder)
        assert [run.trace(record).output for record in run.trials] == [record.output for record in run.trials]
    if (folder / "results.json").exists():
        json.loads((folder / "results.json").read_text(encoding="utf-8"))


def behaviour(folder: Path) -> str:
    results = json.loads((folder / "results.json").read_text(encoding="utf-8"))
    del results["times"]
    return json.dumps(results)


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def trials_called(calls: bytes, isolation: str) -> list[str]:
    """Which trials called their agent; waits until their processes, and the one that started them, have ended."""
    lines = [line.split() for line in calls.decode().splitlines()]
    if isolation == "process":
        started = {int(pid) for _, *pids in lines for pid in pids}
        while any(lives(pid) for pid in started):  # the test's own time limit ends this
            pass
    return [trial for trial, *_ in lines]


THREADS = [(agent, "thread", trials, 10) for agent, trials in (("instant", 30), ("slow", 5), ("blocking", 5))]
PROCESSES = [
    pytest.param(
        *(agent, "process", trials, 5),
        marks=pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them"),
    )
    for agent, trials in (("instant", 3), ("slow", 2), ("blocking", 2))
]


@pytest.mark.parametrize(("agent", "isolation", "trials", "moments"), [*THREADS, *PROCESSES])
def test_bl_098_killed_at_random_moments_and_resumed_loses_doubles_and_breaks_nothing(
    tmp_path: Path, agent: str, isolation: str, trials: int, moments: int
) -> None:
    lines = [json.dumps({"id": f"c{n}", "input": f"{n}", "expected": {"answer": f"{n % 9}"}}) for n in range(60)]
    write_project(tmp_path, {"my_agent.py": AGENT, "cases/all.jsonl": "\n".join(lines) + "\n"})
    asked = ["run", "-q", "--agent", f"my_agent:{agent}", "--trials", str(trials), "--seed", "7"]
    asked += ["--isolation", isolation]
    unbroken = seatrial(*asked, "--output", "unbroken", cwd=tmp_path)
    resume = [*asked, "--output", "out", "--resume"]
    out, calls = tmp_path / "out", tmp_path / "calls.log"
    whole = (tmp_path / "unbroken" / TRIALS).stat().st_size
    chance = random.Random(f"{agent} {isolation}")
    sizes = sorted(chance.randrange(whole * 3 // 4) for _ in range(moments - 1))
    kills = 0
    for size, watched in [(0, out), *((size, out / TRIALS) for size in sizes)]:
        kept, done, called = written(out), finished(out), calls.stat().st_size
        kills += killed_at(max(size, len(kept) + 1), watched, *resume, cwd=tmp_path)
        ran = trials_called(calls.read_bytes()[called:], isolation)
        assert set(done).isdisjoint(ran), "a finished trial ran again"
        assert written(out).startswith(kept), "a finished trial was lost"
        assert_readable(out)
    assert kills >= moments - 2
    last = seatrial(*resume, cwd=tmp_path)
    assert (last.returncode, last.stderr) == (unbroken.returncode, unbroken.stderr)
    assert Counter(finished(out)) == Counter(f"c{n}#{k}" for n in range(60) for k in range(1, trials + 1))
    assert behaviour(out) == behaviour(tmp_path / "unbroken")
    assert_readable(out)
