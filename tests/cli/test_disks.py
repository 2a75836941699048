"""Full disks and folders that cannot be written: one clear line that names the place, and finished trials are safe."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

import seatrial as api
from projects import case, seatrial, small_disk, write_project

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="disks of POSIX")]

COUNTS = """
from pathlib import Path

HERE = Path(__file__).parent


def answer(task):
    with (HERE / "calls").open("a") as file:
        file.write("x")
    return f"you said {task}"


def fills(task):
    from seatrial import current_trial

    with open(current_trial().workdir / "big", "wb") as file:
        file.write(b"x" * 1_000_000)
    return f"you said {task}"


def reads(task):
    from seatrial import current_trial

    return f"you said {task} {current_trial().database.execute('SELECT count(*) FROM t')}"
"""
POLICY = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}}\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    cases = {f"cases/smoke/c{n}.yaml": case(f"c{n}") for n in range(3)}
    return write_project(
        tmp_path / "project",
        {"my_agent.py": COUNTS, "calls": "", "policies/release_policy.yaml": POLICY, **cases},
    )


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def fill(disk: Path) -> None:
    """Leave no room on it."""
    with (disk / "ballast").open("wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)


def assert_one_clear_error(done: subprocess.CompletedProcess[str], place: str, reason: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    (line,) = [line for line in done.stderr.splitlines() if reason in line]
    assert place in line


@pytest.mark.parametrize("kind", ["--junit", "--markdown"])
@pytest.mark.parametrize("where", ["full", "read-only"])
def test_a_report_that_cannot_be_written_is_named_and_the_run_stays_as_it_is(
    project: Path, tmp_path: Path, kind: str, where: str
) -> None:
    assert seatrial("run", "--output", "out", cwd=project).returncode == 0
    before = content(project / "out")
    with small_disk(tmp_path / "disk") as disk:
        if where == "full":
            fill(disk)
        else:
            subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = seatrial("report", "out", kind, str(disk / "report.out"), cwd=project)
        reason = {"full": "No space left on device", "read-only": "cannot be written (no permission)"}[where]
        assert_one_clear_error(done, "report.out", reason)
        assert [path.name for path in disk.iterdir()] == (["ballast"] if where == "full" else [])
    assert content(project / "out") == before


def test_a_decision_that_cannot_be_written_is_named_and_the_run_stays_as_it_is(project: Path, tmp_path: Path) -> None:
    assert seatrial("run", "--output", "out", cwd=project).returncode == 0
    before = content(project / "out")
    with small_disk(tmp_path / "disk") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = seatrial("gate", "--candidate", "out", "--output", str(disk / "decision.json"), cwd=project)
        assert_one_clear_error(done, "decision.json", "cannot be written (no permission)")
    assert content(project / "out") == before


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_folder_that_cannot_be_written_is_named_before_the_first_agent_call(
    project: Path, tmp_path: Path, isolation: str
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        done = seatrial("run", "--output", str(disk / "out"), "--isolation", isolation, cwd=project)
        assert_one_clear_error(done, "out", "Read-only file system")
    (project / "file").touch()
    done = seatrial("run", "--output", "file/out", "--isolation", isolation, cwd=project)
    assert_one_clear_error(done, "file/out", "Not a directory")
    assert (project / "calls").read_text() == ""


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_files_that_may_grow_no_further_end_the_run_and_it_can_go_on(project: Path, isolation: str) -> None:
    """As under a quota: no file may be larger than 64 KiB."""
    lines = [json.dumps({"id": f"n{n}", "input": f"{n}", "expected": {"answer": f"{n}"}}) for n in range(100)]
    (project / "cases" / "all.jsonl").write_text("\n".join(lines) + "\n")
    run = ["run", "--output", "out", "--seed", "7", "--isolation", isolation]
    words = shlex.join([sys.executable, "-m", "seatrial", *run])
    full = subprocess.run(
        ["bash", "-c", f"ulimit -f 64; exec {words}"], cwd=project, capture_output=True, text=True, check=False
    )
    assert_one_clear_error(full, "jsonl", "File too large")
    kept = [str(record.key) for record in api.load(project / "out").trials]
    assert 0 < len(kept) < 103
    assert f"{len(kept)} of 103 trials are on record" in full.stderr
    assert "--resume" in full.stderr
    more = seatrial(*run, "--resume", cwd=project)
    assert more.returncode == 0, more.stderr
    resumed = [str(record.key) for record in api.load(project / "out").trials]
    assert resumed[: len(kept)] == kept
    assert max(Counter(resumed).values()) == 1
    assert len(resumed) == 103


@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_full_temporary_folder_is_the_agents_or_the_fixtures_trouble_and_every_trial_is_on_record(
    project: Path, tmp_path: Path, isolation: str
) -> None:
    """An agent that fills it failed; a fixture that finds no room says nothing about the agent."""
    rows = "CREATE TABLE t(x);\n" + "INSERT INTO t VALUES (zeroblob(100000));\n" * 10
    write_project(
        project,
        {
            "my_agent.py": COUNTS,
            "fixtures/big/fixture.yaml": "database: {sqlite: big.sql}\n",
            "fixtures/big/big.sql": rows,
            "cases/smoke/c0.yaml": case("c0", environment="{fixture: big}"),
        },
    )
    with small_disk(tmp_path / "disk") as disk:
        for agent, case_id, status in (("fills", "c1", "failed"), ("reads", "c0", "invalid")):
            options = ("--agent", f"my_agent:{agent}", "--isolation", isolation, "--output", agent)
            done = seatrial("run", case_id, *options, cwd=project, TMPDIR=str(disk))
            assert done.returncode == {"failed": 1, "invalid": 4}[status], done.stderr
            assert "Traceback" not in done.stderr
            (record,) = api.load(project / agent).trials
            assert (str(record.status), "No space left" in record.detail or "full" in record.detail) == (status, True)
            assert list(disk.iterdir()) == []
