"""Projects whose agent is a service or a program: runs, processes, reruns, checks, and no secret on disk."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import seatrial
from packed import contents
from programs import agent_of
from projects import write_project
from seatrial.errors import UsageError
from seatrial.harness.checking import check_project
from services import Asked, serving

CASE = "{id: a, query: hi, expected: {answer: hi}}"


def heard(asked: Asked) -> Any:
    assert asked.headers["authorization"] == "Bearer a-very-secret-value"
    return {"said": asked.body["q"], "echo": asked.headers["authorization"]}


def service_project(folder: Path, url: str) -> Path:
    settings = f"""
        version: 1
        agent:
          target: "{url}"
          headers: {{Authorization: "Bearer ${{SERVICE_TOKEN}}"}}
          input: {{q: $message}}
          output: {{tool_calls: calls}}
    """
    return write_project(folder, {"seatrial.yaml": settings, "cases/smoke/a.yaml": CASE})


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_service_runs_and_runs_again_and_its_token_is_nowhere_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: str
) -> None:
    monkeypatch.setenv("SERVICE_TOKEN", "a-very-secret-value")
    with serving(heard) as url:
        home = service_project(tmp_path / "home", url)
        run = seatrial.run(project=home, isolation=isolation)
        assert run.exit_code == 0
        assert seatrial.rerun(run.folder, "a#1", project=home).same
    written = [text.decode() for text in contents(home)]
    assert [text for text in written if "a-very-secret-value" in text] == []
    assert any("[secret:SERVICE_TOKEN]" in text for text in written)
    assert run.info.agent_kind == "http"


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_program_runs_and_runs_again(tmp_path: Path, isolation: str) -> None:
    settings = f"version: 1\nagent: {{command: [{sys.executable}, -S, agent.py]}}\n"
    home = write_project(tmp_path / "home", {"seatrial.yaml": settings, "cases/smoke/a.yaml": CASE})
    agent_of(home, 'say(type="answer", output=hear()["message"])')
    run = seatrial.run(project=home, isolation=isolation)
    assert run.exit_code == 0
    assert [record.leftovers for record in run.trials] == [()]
    assert seatrial.rerun(run.folder, "a#1", project=home).same


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        ("{command: [no-such-program]}", "there is no program 'no-such-program'"),
        ("{target: 'http://localhost:1/', output: {anser: x}}", "did you mean 'answer'?"),
        ("{command: [python3], input: {q: $message}}", "agent input and output"),
    ],
)
def test_check_finds_an_agent_that_cannot_be(tmp_path: Path, agent: str, message: str) -> None:
    home = write_project(tmp_path, {"seatrial.yaml": f"version: 1\nagent: {agent}\n", "cases/smoke/a.yaml": CASE})
    problems = [problem for problem in check_project(home) if problem.rule == "bad-agent"]
    assert [(message in problem.message, problem.path, problem.line) for problem in problems] == [
        (True, "seatrial.yaml", 2)
    ]
    with pytest.raises(UsageError):
        seatrial.run(project=home)
