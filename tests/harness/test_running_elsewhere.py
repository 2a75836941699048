"""Budgets and resuming where trials run in processes of their own or on a cluster: as in this process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.core.run import RunStatus

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")]

AGENT = """
import os
import time
from pathlib import Path

from seatrial import AgentRun, ModelCall, current_trial

HERE = Path(__file__).parent


def called():
    descriptor = os.open(HERE / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    trial = current_trial()
    os.write(descriptor, f"{trial.case.id}#{trial.trial_index}\\n".encode())
    os.close(descriptor)


def answer(task):
    called()
    return AgentRun(f"you said {task}", usage=[{"model": "m", "input": 100_000, "output": 0}])


def spends(task):
    called()
    for _ in range(5):
        current_trial().record(ModelCall("m", 100_000, 0))
    return f"you said {task}"


def waits_at_the_third(task):
    called()
    while (HERE / "calls").read_text().count("\\n") > 2 and not (HERE / "go-on").exists():
        time.sleep(0.01)
    return f"you said {task}"
"""
PRICED = "version: 1\nagent: my_agent:answer\nprices: {m: {input: 1.0, output: 1.0}}\n"
WAYS = pytest.mark.parametrize("way", [("--isolation", "process"), ("--executor", "dask")], ids=["process", "dask"])


@pytest.fixture(autouse=True)
def _has_dask(request: pytest.FixtureRequest) -> None:
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and "dask" in callspec.params.get("way", ()):
        pytest.importorskip("distributed")


def project(folder: Path, cases: int = 12, settings: str = PRICED, **more: str) -> Path:
    files = {f"cases/smoke/c{n:02}.yaml": case(f"c{n:02}", **more) for n in range(cases)}
    return write_project(folder, {**files, "my_agent.py": AGENT, "seatrial.yaml": settings, "calls": ""})


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().split()


def run(folder: Path, *options: str, expected: int) -> api.Run:
    done = seatrial("run", "-q", "--output", "out", *options, cwd=folder)
    assert done.returncode == expected, done.stderr
    return api.load(folder / "out")


@WAYS
def test_a_budget_of_five_trials_runs_five_and_a_larger_one_the_rest(tmp_path: Path, way: tuple[str, ...]) -> None:
    """Five fit, at four at once; nothing is set aside too late, whoever runs the trials."""
    project(tmp_path)
    short = run(tmp_path, *way, "--max-cost", "0.5", "--concurrency", "4", expected=4)
    assert (len(short.trials), len(calls(tmp_path))) == (5, 5)
    assert short.info.status is RunStatus.OUT_OF_BUDGET
    assert short.summary()["figures"]["cost"]["total"]["usd"] == pytest.approx(0.5)
    rest = run(tmp_path, *way, "--resume", "--max-cost", "2", expected=0)
    assert rest.info.status is RunStatus.FINISHED
    assert Counter(calls(tmp_path)) == Counter(f"c{n:02}#1" for n in range(12))


@WAYS
def test_time_that_is_up_ends_the_run_and_keeps_what_ran(tmp_path: Path, way: tuple[str, ...]) -> None:
    project(tmp_path)
    short = run(tmp_path, *way, "--max-time", "1e-9", "--concurrency", "1", expected=4)
    assert 1 <= len(short.trials) < 12
    assert [str(record.key) for record in short.trials] == calls(tmp_path)
    assert short.info.status is RunStatus.OUT_OF_BUDGET
    assert "the run ended out of budget" in json.dumps(short.summary()["problems"])


@WAYS
def test_a_trial_above_its_own_limit_is_stopped_where_it_runs(tmp_path: Path, way: tuple[str, ...]) -> None:
    project(tmp_path, cases=1, limits="{cost_usd: 0.25}")
    (record,) = run(tmp_path, *way, "--agent", "my_agent:spends", expected=1).trials
    assert (str(record.status), str(record.stop_reason)) == ("failed", "budget")
    assert record.cost_usd == pytest.approx(0.3)


@WAYS
def test_a_price_that_turns_out_to_be_missing_costs_one_trial(tmp_path: Path, way: tuple[str, ...]) -> None:
    project(tmp_path, settings=PRICED.replace("m:", "other:"))
    refused = seatrial("run", "--output", "out", *way, "--max-cost", "1", cwd=tmp_path)
    assert refused.returncode == 2
    assert "the price of model 'm' is unknown" in refused.stderr
    assert len(calls(tmp_path)) == 1
    assert api.load(tmp_path / "out").info.status is RunStatus.OUT_OF_BUDGET


def behaviour(run: api.Run) -> str:
    results = json.loads((run.folder / "results.json").read_text(encoding="utf-8"))
    del results["times"]
    return json.dumps(results)


@WAYS
def test_an_interrupted_run_goes_on_with_what_is_missing_and_ends_like_an_unbroken_one(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    project(tmp_path, cases=4)
    command = ["run", "--agent", "my_agent:waits_at_the_third", "--trials", "2", "--seed", "7", "--concurrency", "1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "seatrial", *command, *way, "--output", "out"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "NO_COLOR": "1"},
        text=True,
    )
    while len(calls(tmp_path)) < 3:
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=100)
    assert running.returncode == 130, errors
    assert [str(record.key) for record in api.load(tmp_path / "out").trials] == ["c00#1", "c01#1"]
    assert "--resume" in errors
    (tmp_path / "go-on").touch()
    (tmp_path / "calls").write_text("")
    resumed = run(tmp_path, *command[1:], *way, "--resume", expected=0)
    assert sorted(calls(tmp_path)) == ["c00#2", "c01#2", "c02#1", "c02#2", "c03#1", "c03#2"]
    unbroken = api.run(tmp_path, agent="my_agent:waits_at_the_third", trials=2, seed=7, output=tmp_path / "unbroken")
    assert behaviour(resumed) == behaviour(unbroken)
    assert {record.key: record.seed for record in resumed.trials} == {r.key: r.seed for r in unbroken.trials}
    before = sorted(calls(tmp_path))
    assert run(tmp_path, *command[1:], *way, "--resume", expected=0).trials == resumed.trials
    assert sorted(calls(tmp_path)) == before
