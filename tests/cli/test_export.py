"""`seatrial export`, through the real command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import seatrial as api
from packed import edit_traces
from projects import case, write_project
from seatrial.cli import _exit_code
from seatrial.store.frames import TRACES


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_project(tmp_path, {f"cases/smoke/c{n}.yaml": case(f"c{n}") for n in range(3)})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_is_written_one_trial_a_line(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = api.run(project, trials=2).folder
    assert _exit_code(["export", str(folder), "spans/run.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": "spans/run.jsonl", "format": "otlp", "trials": 6}
    lines = (project / "spans" / "run.jsonl").read_text().splitlines()
    assert len(lines) == 6
    assert all(json.loads(line)["resourceSpans"] for line in lines)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-here", "out.jsonl"], "nothing-here"),
        (["latest", "cases"], "cases"),
        (["latest", "cases/smoke/c0.yaml/out.jsonl"], "c0.yaml"),
        (["latest", "out.jsonl", "--to", "html"], "html"),
    ],
)
def test_what_cannot_be_exported_is_said_and_nothing_is_written(
    arguments: list[str], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.run(project)
    before = sorted(project.rglob("*"))
    assert _exit_code(["export", *arguments]) == 2
    assert message in capsys.readouterr().err
    assert sorted(project.rglob("*")) == before


def test_a_trace_that_cannot_be_read_leaves_the_file_of_before(project: Path) -> None:
    folder = api.run(project).folder
    (project / "out.jsonl").write_text("the one before")
    edit_traces(folder, lambda lines: lines.__setitem__(0, lines[0].replace('"events":[', '"events":{')))
    assert _exit_code(["export", str(folder), "out.jsonl"]) == 2
    assert (project / "out.jsonl").read_text() == "the one before"
    assert [path.name for path in project.glob(".out*")] == []


def test_trials_that_are_lost_are_spoken_of(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = api.run(project).folder
    traces = folder / TRACES
    traces.write_bytes(traces.read_bytes()[:-200])
    assert _exit_code(["export", str(folder), "out.jsonl"]) == 2
    assert "traces.jsonl.zst: ends before the trace of c" in capsys.readouterr().err
    assert not (project / "out.jsonl").exists()
    info = folder / "run.json"
    info.write_text(info.read_text().replace('"status": "finished"', '"status": "running"'))  # then a crash took them
    assert _exit_code(["export", str(folder), "out.jsonl"]) == 0
    assert "1 of 3 planned trials are not on record" in capsys.readouterr().err
