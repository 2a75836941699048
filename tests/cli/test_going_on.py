"""The command that a run prints when its budget is spent does run the rest, wherever and however the run was begun."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.cli.run import run as run_command
from seatrial.core.run import RunStatus
from seatrial.harness.going_on import option_of

PAID = """
    from seatrial import AgentRun

    def answer(task):
        return AgentRun(f"you said {task}", usage=[{"model": "m", "input": 100_000, "output": 0}])

    def other(task):
        return answer(task)
    """
SETTINGS = (
    "version: 1\nagent: my_agent:answer\nbuilds: {other one: my_agent:other}\nprices: {m: {input: 5.0, output: 1.0}}\n"
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    files = {f"cases/smoke/c{number}.yaml": case(f"c{number}") for number in range(6)}
    policy = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.5}}\n"
    return write_project(
        tmp_path / "the project",
        {**files, "my_agent.py": PAID, "seatrial.yaml": SETTINGS, "strict.yaml": policy},
    )


def printed(stderr: str) -> list[str]:
    """The command of the hint, without the name of the program."""
    (line,) = (line for line in stderr.splitlines() if line.startswith("the budget ran out"))
    program, *words = shlex.split(line.partition("to run the rest: ")[2])
    assert program == "seatrial"
    return words


def check_rest(folder: Path, short: int) -> None:
    """The rest was run, each trial once."""
    run = api.load(folder)
    assert 1 <= short < 6
    assert Counter(str(record.key) for record in run.trials) == Counter(f"c{number}#1" for number in range(6))
    assert (run.info.status, run.exit_code) == (RunStatus.FINISHED, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        ("--max-cost", "0.25", "--concurrency", "1"),
        ("--max-time", "1e-9", "--concurrency", "1"),
        ("--max-cost", "0.25", "--build", "other one", "--set", "prices.m.input=1.0", "--set", "redact=[x y]"),
        ("--max-cost", "0.25", "--set", "prices.m.input=1.0", "--agent", "my_agent:other", "--isolation", "process"),
        (
            "--max-cost",
            "0.25",
            "--set",
            "prices.m.input=1.0",
            "--executor",
            "local",
            "--policy",
            "the project/strict.yaml",
        ),
        ("--max-cost", "1.1", "--cassettes", "tapes", "--cassette-mode", "record", "--max-time", "3600"),
    ],
)
def test_the_printed_command_runs_the_rest_in_one_go(tmp_path: Path, project: Path, options: tuple[str, ...]) -> None:
    begun = seatrial(
        "run",
        "--project",
        project.name,
        "--output",
        "out",
        *options,
        cwd=tmp_path,
        OPENAI_BASE_URL="http://127.0.0.1:9/v1",
    )
    short = api.load(tmp_path / "out")
    assert short.info.status is RunStatus.OUT_OF_BUDGET, begun.stderr
    kept = len(short.trials)
    words = printed(begun.stderr)
    rest = seatrial(*words, cwd=tmp_path, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert rest.returncode == 0, (words, rest.stderr)
    assert "the budget ran out" not in rest.stderr
    check_rest(tmp_path / "out", kept)
    assert ("gate" in rest.stdout.lower() or "decision" in rest.stdout.lower()) or "--policy" not in options


@pytest.mark.slow
def test_a_run_begun_in_python_names_a_command_of_what_it_was_given(tmp_path: Path, project: Path) -> None:
    run = api.run(
        project, max_cost=0.25, build="other one", set=["prices.m.input=1.0"], concurrency=1, output=tmp_path / "out"
    )
    command = api.load(run.folder).resume_command
    assert command == run.resume_command
    assert command is not None
    kept = len(run.trials)
    rest = seatrial(*shlex.split(command)[1:], cwd=tmp_path)
    assert rest.returncode == 0, rest.stderr
    check_rest(run.folder, kept)


def test_a_masked_setting_is_not_said_again(project: Path) -> None:
    (project / ".env").write_text("PAY_KEY=sk-1234567890\n")
    run = api.run(project, max_cost=0.6, set=["build_id=sk-1234567890", "concurrency=1"])
    command = api.load(run.folder).resume_command or ""
    assert "--set concurrency=1" in command
    assert "build_id" not in command


def test_a_run_graded_again_is_not_gone_on_with(project: Path) -> None:
    run = api.run(project, max_cost=0.6)
    again = api.regrade(run.folder, project=project)
    assert run.resume_command is not None
    assert again.resume_command is None


def test_every_option_is_spelled_as_the_command_line_takes_it() -> None:
    options = [each for each in run_command.params if each.opts[0].startswith("-")]
    assert len(options) > 20
    assert [each.name for each in options if option_of(str(each.name)) not in each.opts] == []
