"""The function example: both versions pass three of four, and not the same three."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import seatrial

PROJECT = Path(__file__).parents[2] / "examples" / "data_question_function"


@pytest.mark.parametrize(("build", "failed"), [(None, {"median"}), ("v1", {"median"}), ("v2", {"empty_input"})])
def test_each_version_passes_three_of_four(build: str | None, failed: set[str], tmp_path: Path) -> None:
    run = seatrial.run(project=PROJECT, build=build, output=tmp_path / "run")
    assert len(run.trials) == 4
    assert {record.case_id for record in run.trials if record.status != "passed"} == failed
    assert run.exit_code == 1


def test_the_harness_style_says_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(PROJECT))
    monkeypatch.chdir(tmp_path)
    example = importlib.import_module("harness_example")
    for version, crash in (("version_1", ""), ("version_2", "raised StatisticsError: no median for empty data")):
        example.main(version)
        printed = capsys.readouterr().out
        assert printed.startswith("3/4 passed")
        assert crash in printed
        assert (tmp_path / f"eval_results_{version}.json").exists()
