"""Text that is no Unicode (lone surrogates), wherever an agent puts it, is kept, shown and read like any other."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, write_project
from seatrial.cli import _exit_code

AGENT = r"""
import os

from seatrial import AgentRun, HandoffEvent, ToolCall

ODD = {"\ud800": 1, "in": [{"\udfff k": "\ud801"}]}


def answer(task):
    print("printed \ud800x\udfff \ud83d\ude00 é")
    return {
        "plain": ODD,
        "large": {**ODD, "text": "x" * 70_000},
        "leak": {**ODD, "text": os.environ["MY_TOKEN"]},
        "report": AgentRun(
            "hello",
            [ToolCall("look\ud800", {"a": ODD}, result=ODD)],
            [HandoffEvent("a", "b\ud800", context=ODD)],
            outcome={"seen": ODD, "\ud802": 1},
            usage=[{"model": "m\ud800", "input": 1, "output": 1}],
        ),
    }[task]
"""
ODD = {"\ud800": 1, "in": [{"\udfff k": "\ud801"}]}
NAMES = ("plain", "large", "leak", "report")
SETTINGS = "version: 1\nagent: my_agent:answer\n"
TOKEN = "geheim-1234"


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_TOKEN", TOKEN)


def project(folder: Path, settings: str = SETTINGS) -> Path:
    cases = {f"cases/smoke/{name}.yaml": case(name, message=name) for name in NAMES}
    return write_project(folder, {**cases, "my_agent.py": AGENT, "seatrial.yaml": settings})


def told(folder: Path) -> dict[str, tuple[Any, Any, Any, str]]:
    """What is on record of each case: status, counted calls and outcome; output, calls and log."""
    run = api.load(folder)
    traces = {record.case_id: run.trace(record) for record in run.trials}
    calls = {name: [(call.name, call.arguments, call.result) for call in traces[name].tool_calls] for name in NAMES}
    counted = {record.case_id: (record.status, record.tools, record.outcome) for record in run.trials}
    return {name: (counted[name], traces[name].output, calls[name], traces[name].log) for name in NAMES}


@pytest.mark.parametrize("settings", [SETTINGS, SETTINGS + 'redact: ["ACC-[0-9]+"]\n'], ids=["plain", "redact"])
def test_a_run_keeps_them_reads_them_and_goes_on(tmp_path: Path, settings: str) -> None:
    folder = api.run(project(tmp_path, settings), trials=1, output=tmp_path / "out").folder
    kept = told(folder)
    assert kept["plain"][1] == ODD
    assert kept["large"][1] == {**ODD, "text": "x" * 70_000}
    assert kept["leak"][1] == {**ODD, "text": "[secret:MY_TOKEN]"}
    assert kept["report"][0] == ("passed", {"look\ud800": 1}, {"seen": ODD, "\ud802": 1})
    assert kept["report"][2] == [("look\ud800", {"a": ODD}, ODD)]
    assert {kept[name][3] for name in NAMES} == {"printed \ud800x\udfff \U0001f600 é\n"}
    assert api.load(folder).info.models == ("m\ud800",)
    assert api.run(tmp_path, trials=2, output=folder, resume=True).exit_code == 1
    assert len(api.load(folder).trials) == 2 * len(NAMES)


def test_commands_show_and_export_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(project(tmp_path))
    api.run(tmp_path, output=tmp_path / "out")
    for name in NAMES:
        assert _exit_code(["show", "out", name]) == 0
        capsys.readouterr()
        assert _exit_code(["show", "out", name, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert shown["trace"]["log"] == "printed \ud800x\udfff \U0001f600 é\n"
        assert _exit_code(["rerun", "out", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["same"] is True
    assert shown["record"]["outcome"] == {"seen": ODD, "\ud802": 1}
    assert _exit_code(["export", "out", "spans.jsonl"]) == 0
    assert _exit_code(["regrade", "out", "-q"]) == 1
    assert _exit_code(["compare", "out", "out", "--json"]) == 0


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="processes as Linux has them")
@pytest.mark.parametrize("way", [{"isolation": "process"}, {"executor": "dask"}], ids=["process", "dask"])
def test_trials_elsewhere_tell_the_same(tmp_path: Path, way: dict[str, Any]) -> None:
    if "executor" in way:
        pytest.importorskip("distributed")
    project(tmp_path)
    here = api.run(tmp_path, output=tmp_path / "here").folder
    there = api.run(tmp_path, output=tmp_path / "there", **way).folder
    assert told(there) == told(here)
