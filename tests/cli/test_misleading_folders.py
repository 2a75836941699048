"""Commands that read a run folder which is damaged or made to mislead: one message, exit 2, whatever it is."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

import seatrial as api
from projects import case, write_project
from seatrial.cli import _exit_code
from seatrial.store.frames import TRACES


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A finished run of three cases, in a project that is the working folder."""
    write_project(tmp_path, {f"cases/smoke/c{n}.yaml": case(f"c{n}") for n in range(3)})
    monkeypatch.chdir(tmp_path)
    return api.run(tmp_path).folder


def _commands(folder: Path) -> dict[str, list[str]]:
    return {
        "show": ["show", str(folder), "c1"],
        "export": ["export", str(folder), "out.jsonl"],
        "rerun": ["rerun", str(folder), "c1"],
        "resume": ["run", "--output", str(folder), "--resume"],
    }


def _loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _deep(path: Path) -> None:
    path.write_bytes(b"[" * 200_000 + b"\n")


def _list(path: Path) -> None:
    path.write_bytes(b"[]\n")


def _endless_number(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(
        lines[0] + b"".join(line.replace(b'"attempt":1,', b'"attempt":1' + b"0" * 30 + b",") for line in lines[1:])
    )


@pytest.mark.parametrize("command", ["show", "export", "rerun", "resume"])
@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("trials.jsonl", _loop),
        ("trials.jsonl", _deep),
        ("trials.jsonl", _list),
        ("trials.jsonl", _endless_number),
        ("run.json", _deep),
        ("run.json", _list),
    ],
)
def test_a_file_that_cannot_be_read_is_named_by_every_command(
    command: str, name: str, spoil: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / name)
    assert _exit_code(_commands(folder)[command]) == 2
    said = capsys.readouterr().err
    assert name in said
    assert "Traceback" not in said


@pytest.mark.parametrize("command", ["show", "export", "rerun"])
@pytest.mark.parametrize("spoil", [_loop, _deep, _list])
def test_so_are_its_cases(
    command: str, spoil: Callable[[Path], None], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(folder / "cases.jsonl")
    assert _exit_code(_commands(folder)[command]) == 2
    assert "cases.jsonl" in capsys.readouterr().err


def _set(folder: Path, **changes: object) -> None:
    info = json.loads((folder / "run.json").read_text()) | changes
    (folder / "run.json").write_text(json.dumps(info))


def test_a_start_that_is_no_time_is_said_by_export(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _set(folder, started="yesterday")
    assert _exit_code(["export", str(folder), "out.jsonl"]) == 2
    assert "run.json: cannot be read as a run: started: should be a time" in " ".join(capsys.readouterr().err.split())


def test_an_agent_that_is_none_is_said_by_rerun(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _set(folder, agent={"target": "my_agent:answer", "nonsense": 1})
    assert _exit_code(["rerun", str(folder), "c1"]) == 2
    assert "agent: nonsense: is no known key" in " ".join(capsys.readouterr().err.split())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipes_are_not_waited_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / TRACES).unlink()
    os.mkfifo(folder / TRACES)
    (folder.parent / "another").mkdir()
    os.mkfifo(folder.parent / "another" / "run.json")
    assert _exit_code(["show", "latest", "c1"]) == 2
    assert _exit_code(["list"]) == 0
    assert folder.name in capsys.readouterr().out
