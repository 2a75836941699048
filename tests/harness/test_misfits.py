"""Settings of an agent that do not fit what its factory makes: one error, and no trial that failed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.errors import Misfit
from seatrial.store.rundir import RunFolder

FACTORY = """
from pathlib import Path

made = Path(__file__).with_name("made.txt")


def build(config):
    with made.open("a") as file:
        file.write("x")
    return lambda task: f"you said {task}"


async def later(config):
    return build(config)


def sometimes(environment):
    if environment.case.id == "c1":
        return None
    return lambda task: f"you said {task}"
"""
SAID = "named config, returned: a function takes no `input`: it gets the case's input as it is"


def project(folder: Path, agent: str, cases: int = 3) -> Path:
    files = {f"cases/c{n}.yaml": case(f"c{n}") for n in range(1, cases + 1)}
    return write_project(folder, {"seatrial.yaml": f"version: 1\nagent: {agent}\n", "my_factory.py": FACTORY, **files})


@pytest.mark.parametrize("name", ["build", "later"])
@pytest.mark.parametrize("options", [{}, pytest.param({"isolation": "process"}, marks=pytest.mark.slow)])
def test_input_for_a_function_from_a_factory_ends_the_run_once_and_keeps_no_trial(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    root = project(tmp_path, f'{{target: "my_factory:{name}", input: {{question: $message}}}}', cases=20)
    with pytest.raises(Misfit) as caught:
        api.run(root, concurrency=2, output=root / "out", **options)
    assert str(caught.value).endswith(SAID)
    assert len((root / "made.txt").read_text()) <= 4, "no more trials began than were in flight"
    kept = RunFolder(root / "out")
    assert (len(kept.records()), kept.info.status) == (0, "interrupted")
    assert json.loads((root / "out" / "results.json").read_text())["cases"][0]["verdict"] != "failed"


@pytest.mark.slow
def test_the_command_says_it_in_one_line_with_exit_code_2(tmp_path: Path) -> None:
    root = project(tmp_path, '{target: "my_factory:build", output: answer.text}')
    ended = seatrial("run", "-q", cwd=root)
    said = ended.stderr.strip().splitlines()
    assert (ended.returncode, len(said)) == (2, 1)
    assert said[0].endswith("returned: a function takes no `output`: its output is what it returns")


def test_a_factory_that_gives_no_agent_in_one_trial_fails_that_trial_alone(tmp_path: Path) -> None:
    run = api.run(project(tmp_path, "my_factory:sometimes"))
    assert {item.case_id: str(item.verdict) for item in run.cases} == {"c1": "failed", "c2": "passed", "c3": "passed"}
