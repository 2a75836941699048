"""Commands that decide a release, through the real command: exit codes, what is refused before it costs anything."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import seatrial as api
from projects import case, write_project
from seatrial.cli import _exit_code

POLICY = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}}\n"
COUNTED = """
    import pathlib

    def answer(task):
        path = pathlib.Path(__file__).with_name("calls")
        path.write_text((path.read_text() if path.exists() else "") + "x")
        return f"you said {task}"
    """


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {f"cases/smoke/c{n}.yaml": case(f"c{n}") for n in range(4)}
    write_project(tmp_path, {**files, "my_agent.py": COUNTED, "policies/release_policy.yaml": POLICY})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def calls(project: Path) -> int:
    return len((project / "calls").read_text())


def approve(run: Path, *more: str, by: str = "Ada", reason: str = "first") -> int:
    return _exit_code(["approve", str(run), "--by", by, "--reason", reason, "--trials", "2", *more])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"by": "  "}, "--by is empty"),
        ({"reason": ""}, "--reason is empty"),
        ({"more": ("--expires", "2020-01-31")}, "--expires 2020-01-31 has passed"),
        ({"more": ("--output", "cases")}, "cases"),
        ({"more": ("--output", "my_agent.py/approved.json")}, "is no folder"),
    ],
)
def test_what_an_approval_lacks_is_said_before_any_trial(
    more: dict[str, object], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = api.run(project).folder
    before = calls(project)
    assert approve(run, *more.pop("more", ()), **more) == 2  # type: ignore[misc,arg-type]
    assert message in capsys.readouterr().err
    assert calls(project) == before
    assert approve(run, "--expires", "2999-01-31") == 0


def test_an_unfinished_run_is_refused_before_any_trial(project: Path) -> None:
    run = api.run(project).folder
    info = json.loads((run / "run.json").read_text())
    (run / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    before = calls(project)
    assert approve(run) == 1
    assert approve(run, "--no-fresh") == 1
    assert calls(project) == before
    assert not (project / "baselines").exists()


@pytest.mark.parametrize(
    ("policy", "code"),
    [
        ("gates: {smoke: {minimum_pass_rate: {value: 1, level: review}}}", 1),
        ("gates: {smoke: {minimum_pass_rate: 1}}", 1),
        ("gates: {smoke: {minimum_pass_rate: 0}, handoffs: {minimum_accuracy: {value: 1, level: review}}}", 1),
        ("gates: {smoke: {minimum_pass_rate: 0}}\nreview: {require_human_review_when: {new_failures_exceeds: 0}}", 0),
        (
            "gates: {smoke: {minimum_pass_rate: 0}}\n"
            "review: {require_human_review_when: {candidate_failure_count_exceeds: 0}}",
            0,
        ),
    ],
)
def test_a_gate_of_any_level_holds_an_approval_up_and_a_condition_is_shown(
    policy: str, code: int, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "cases" / "smoke" / "c0.yaml").write_text(case("c0", answer="else"))
    (project / "policies" / "release_policy.yaml").write_text(f"version: 1\n{policy}\n")
    run = api.run(project).folder
    assert approve(run) == code
    shown = capsys.readouterr().out
    assert (project / "baselines" / "approved.json").exists() == (code == 0)
    if "candidate_failure_count" in policy:
        assert "candidate_failure_count" in shown
        assert "REVIEW" in shown


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize("merged", [False, True], ids=["stdout", "both"])
def test_a_reader_that_goes_away_changes_no_exit_code(merged: bool, project: Path) -> None:
    (project / "cases" / "smoke" / "c0.yaml").write_text(case("c0", answer="else"))
    good = api.run(project, output=project / "good").folder
    commands = {
        ("run", "--output", "out"): 1,
        ("run", "--json"): 1,
        ("gate", "--candidate", str(good)): 1,
        ("gate", "--candidate", str(good), "--json"): 1,
        ("compare", str(good), str(good)): 0,
        ("report", str(good), "--annotations"): 0,
        ("check",): 0,
    }
    for arguments, code in commands.items():
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "seatrial", *arguments],
            cwd=project,
            stdout=writing,
            stderr=writing if merged else subprocess.PIPE,
            check=False,
        )
        os.close(writing)
        assert done.returncode == code, (arguments, done.stderr)
        assert not merged or done.stderr is None
        assert b"BrokenPipe" not in (done.stderr or b"")
    assert len((project / "out" / "trials.jsonl").read_text().splitlines()) == 4


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize("as_json", [False, True])
def test_an_interrupted_run_with_a_policy_leaves_an_incomplete_decision(as_json: bool, project: Path) -> None:
    agent = """
        import asyncio, pathlib

        async def answer(task):
            if task == "wait":
                pathlib.Path("waiting").touch()
                await asyncio.sleep(3600)
            return task
        """
    write_project(project, {"my_agent.py": agent, "cases/smoke/d.yaml": case("d", message="wait")})
    more = ["--policy", "policies/release_policy.yaml", *(["--json"] if as_json else [])]
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "--output", "out", "--concurrency", "1", *more],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (project / "waiting").exists():
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    decision = json.loads((project / "out" / "release-decision.json").read_text())
    assert decision["verdict"] == "incomplete"
    assert any("is interrupted, not finished" in reason for reason in decision["reasons"])
    if as_json:
        assert json.loads(out) == decision
    else:
        assert "INCOMPLETE" in out
