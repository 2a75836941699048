"""Every documented exit code through the real command; no mistake of a user prints a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from projects import case, seatrial, write_project

pytestmark = pytest.mark.slow


def test_0_when_every_case_passes(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/smoke/a.yaml": case("a")})
    done = seatrial("run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1/1" in done.stdout


def test_1_when_a_case_of_a_gating_suite_fails(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/smoke/a.yaml": case("a"), "cases/smoke/b.yaml": case("b", answer="goodbye")})
    done = seatrial("run", cwd=tmp_path)
    assert done.returncode == 1
    assert "goodbye" in done.stdout


def test_0_when_only_a_suite_that_does_not_gate_fails(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {
            "seatrial.yaml": "version: 1\nagent: my_agent:answer\nsuites: {capability: {gate: false}}\n",
            "cases/smoke/a.yaml": case("a"),
            "cases/capability/b.yaml": case("b", answer="goodbye"),
        },
    )
    assert seatrial("run", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("files", "arguments", "message"),
    [
        ({"cases/a.yaml": "id: a\ninput: x\nexpectd: {answer: x}\n"}, ["run"], "cases/a.yaml:3:1"),
        ({"cases/a.yaml": "id: a\ninput: x\nexpectd: {answer: x}\n"}, ["check"], "expected"),
        ({"cases/a.yaml": case("a")}, ["run", "--agent", "my_agnt:answer"], "no module named 'my_agnt'"),
        ({"cases/a.yaml": case("a")}, ["run", "--agent", "my_agent:anser"], "did you mean 'answer'"),
        ({"cases/a.yaml": case("a"), "my_agent.py": "raise ValueError('no key')\n"}, ["run"], "no key"),
        ({"cases/a.yaml": case("a")}, ["run", "--build", "good"], "there is no build 'good'"),
        ({"cases/a.yaml": case("a")}, ["run", "--trials", "0"], "--trials"),
        ({"cases/a.yaml": case("a")}, ["rnu"], "did you mean 'run'"),
        ({"cases/a.yaml": case("a")}, ["run", "--nothing"], "--nothing"),
        ({"cases/a.yaml": case("a")}, ["show", "latest", "a"], "there is no run yet"),
        ({"cases/a.yaml": case("a")}, ["compare", "one", "two"], "one"),
        ({"cases/a.yaml": case("a"), "full/x": "x"}, ["run", "--output", "full"], "not empty"),
        ({"cases/a.yaml": case("a"), "seatrial.yaml": "agnt: x\n"}, ["run"], "did you mean 'agent'"),
        ({"cases/a.yaml": case("a", judges="[{rubric: nice}]")}, ["run"], "judges are not available"),
    ],
)
def test_2_when_usage_or_input_is_wrong(
    tmp_path: Path, files: dict[str, str], arguments: list[str], message: str
) -> None:
    write_project(tmp_path, files)
    done = seatrial(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stdout + done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_2_as_json_is_one_document_with_every_diagnostic(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": "id: a\ninput: x\nexpectd: 1\n", "cases/b.yaml": "id: b\nrisk: huge\n"})
    done = seatrial("run", "--json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 2
    assert {item["path"] for item in document["diagnostics"]} == {"cases/a.yaml", "cases/b.yaml"}


def test_3_when_a_case_broke_within_noise(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {
            "cases/a.yaml": case("a"),
            "my_agent.py": "import os\ndef answer(task):\n    return task if os.environ.get('GOOD') else 'no'\n",
        },
    )
    assert seatrial("run", "--output", "one", cwd=tmp_path, GOOD="1").returncode == 0
    assert seatrial("run", "--output", "two", cwd=tmp_path).returncode == 1
    done = seatrial("compare", "one", "two", cwd=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "broke" in done.stdout
    assert seatrial("compare", "one", "two", "--strict", cwd=tmp_path).returncode == 1
    assert seatrial("compare", "two", "one", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("reason", ["ungraded", "invalid"])
def test_4_when_a_case_says_nothing(tmp_path: Path, reason: str) -> None:
    files = {"cases/a.yaml": "id: a\ninput: x\n"}
    if reason == "invalid":
        files = {
            "cases/a.yaml": "id: a\ninput: x\nenvironment: {fixture: broken}\nexpected: {answer: x}\n",
            "fixtures/broken.py": "def broken(environment):\n    raise OSError('no database')\n    yield\n",
        }
    write_project(tmp_path, files)
    done = seatrial("run", cwd=tmp_path)
    assert done.returncode == 4, done.stdout + done.stderr
    assert reason in done.stdout


@pytest.mark.parametrize(("selection", "hint"), [("aple", "apple"), ("--suite=smok", "smoke"), ("-kzzz", "")])
def test_5_when_nothing_is_selected(tmp_path: Path, selection: str, hint: str) -> None:
    write_project(tmp_path, {"cases/smoke/a.yaml": case("apple")})
    done = seatrial("run", selection, cwd=tmp_path)
    assert done.returncode == 5
    assert hint in done.stderr
    as_json = seatrial("run", selection, "--json", cwd=tmp_path)
    assert as_json.returncode == 5
    assert set(json.loads(as_json.stdout)) == {"error", "diagnostics"}


def test_70_when_the_program_itself_is_at_fault(tmp_path: Path) -> None:
    program = (
        "import sys, types, click, seatrial.cli as cli\n"
        "broken = types.ModuleType('broken')\n"
        "broken.command = click.Command('broken', callback=lambda: 1 / 0)\n"
        "sys.modules['broken'] = broken\n"
        "cli.COMMANDS['broken'] = ('broken:command', 'breaks')\n"
        "cli.main(['broken'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 70
    assert "ZeroDivisionError" in done.stderr
    assert "report it" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_130_when_interrupted_and_the_run_stays_readable(tmp_path: Path) -> None:
    write_project(
        tmp_path,
        {
            "my_agent.py": (
                "import asyncio, pathlib\n"
                "async def answer(task):\n"
                "    if task == 'wait':\n"
                "        pathlib.Path('waiting').touch()\n"
                "        await asyncio.sleep(3600)\n"
                "    return task\n"
            ),
            "cases/a.yaml": case("a"),
            "cases/b.yaml": case("b", message="wait"),
        },
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "--output", "out", "--concurrency", "1"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "waiting").exists():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "Traceback" not in out + err
    info = json.loads((tmp_path / "out" / "run.json").read_text())
    assert info["status"] == "interrupted"
    shown = seatrial("show", "out", "a", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert [case["verdict"] for case in results["cases"]] == ["passed", "not_run"]
