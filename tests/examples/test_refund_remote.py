"""The refund example through the command and http adapters: the same cases, fixtures and verdicts as direct."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import seatrial
from examples.expected_failures import EXPECTED_FAILURES
from seatrial.core.project import AgentSpec
from seatrial.core.trial import TrialRecord

PROJECT = Path(__file__).parents[2] / "examples" / "refund_agent"
BUILDS = ("good", "double_refund", "no_handoff", "leaks_card")
NOT_OBSERVED: frozenset[str] = frozenset()
"""Grades that abstain where the desk is remote: none, for it reports everything."""


@contextmanager
def service() -> Iterator[str]:
    process = subprocess.Popen(
        [sys.executable, str(PROJECT / "remote" / "service.py")], stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def verdicts(run: Any) -> dict[tuple[str, str], Any]:
    return {
        (record.case_id, grade.name): (grade.verdict, dict(grade.tallies))
        for record in run.trials
        for grade in record.grades
        if grade.name not in NOT_OBSERVED
    }


def told(record: TrialRecord) -> Any:
    """What must be the same, however the agent is reached."""
    return record.case_id, record.status, record.output, record.outcome, record.tools, record.handoffs, record.tokens


def assert_same(remote: Any, direct: Any) -> None:
    assert verdicts(remote) == verdicts(direct)
    assert sorted(map(repr, map(told, remote.trials))) == sorted(map(repr, map(told, direct.trials)))
    assert remote.exit_code == direct.exit_code


@pytest.mark.slow
@pytest.mark.parametrize("build", BUILDS)
def test_the_desk_behind_a_url_gets_the_verdicts_of_the_desk_itself(build: str, tmp_path: Path) -> None:
    direct = seatrial.run(project=PROJECT, build=build, seed=1, output=tmp_path / "direct")
    with service() as url:
        remote = seatrial.run(project=PROJECT, agent=f"{url}/{build}", seed=1, output=tmp_path / "remote")
    assert_same(remote, direct)
    assert {record.case_id for record in remote.trials if record.status != "passed"} == {
        case for case, _, _ in EXPECTED_FAILURES[build]
    }


@pytest.mark.slow
def test_a_build_that_is_not_there_is_named() -> None:
    with service() as url:
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(f"{url}/goood", b"{}"))
        with refused.value as answer:
            assert answer.code == 404
            said = json.loads(answer.read())["error"]
    assert said.startswith("there is no build 'goood'; builds: circular_handoff, ")
    assert "good," in said
    command = [sys.executable, str(PROJECT / "remote" / "command.py"), "goood"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.startswith("there is no build 'goood'")) == (1, True)


@pytest.mark.slow
def test_the_desk_as_a_program_gets_the_verdicts_of_the_desk_itself(tmp_path: Path) -> None:
    direct = seatrial.run(project=PROJECT, build="good", seed=1, output=tmp_path / "direct")
    agent = AgentSpec(command=(sys.executable, "remote/command.py", "good"))
    remote = seatrial.run(project=PROJECT, agent=agent, seed=1, concurrency=3, output=tmp_path / "remote")
    assert_same(remote, direct)


@pytest.mark.slow
def test_a_faulty_build_as_a_program_is_caught(tmp_path: Path) -> None:
    agent = AgentSpec(command=(sys.executable, "remote/command.py", "leaks_card"))
    run = seatrial.run(
        project=PROJECT, select=["cases/safety"], agent=agent, isolation="process", output=tmp_path / "remote"
    )
    failed = {
        (record.case_id, grade.name) for record in run.trials for grade in record.grades if grade.verdict == "fail"
    }
    assert failed == {(case, grade) for case, grade, _ in EXPECTED_FAILURES["leaks_card"]}
