"""The refund example: its good build fails nothing, each faulty build exactly what the table says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

import seatrial
from examples.expected_failures import EXPECTED_FAILURES, Row
from seatrial.core.trial import TrialStatus

# LangChain hides a deprecated call of its own in `warnings.catch_warnings`, which is not made for threads: where
# several trials make their tools at once, the warning gets out, and pytest would turn it into the agent's error.
pytestmark = pytest.mark.filterwarnings("ignore:Support for class-based `config`")

PROJECT = Path(__file__).parents[2] / "examples" / "refund_agent"
SUITES = {"smoke", "regression", "safety", "handoff", "capability"}


def written_cases() -> list[dict[str, Any]]:
    files = sorted((PROJECT / "cases").rglob("*.yaml"))
    return [case for file in files for case in yaml.safe_load(file.read_text(encoding="utf-8"))["cases"]]


def failures(run: Any) -> set[Row]:
    """(case, grade, kind of evidence) of every grade that failed."""
    return {
        (record.case_id, grade.name, evidence_kind(run.trace(record), grade.evidence))
        for record in run.trials
        for grade in record.grades
        if grade.verdict != "pass"
    }


def evidence_kind(trace: Any, numbers: tuple[int, ...]) -> str | None:
    kinds = {trace.events[number - 1].kind for number in numbers}
    return "+".join(sorted(kinds)) or None


@pytest.mark.slow
@pytest.mark.parametrize("build", EXPECTED_FAILURES)
def test_each_build_fails_exactly_what_the_table_says(build: str, tmp_path: Path) -> None:
    run = seatrial.run(project=PROJECT, build=build, output=tmp_path / "run")
    assert failures(run) == EXPECTED_FAILURES[build]
    failed = {record.case_id for record in run.trials if record.status is not TrialStatus.PASSED}
    assert failed == {case for case, _, _ in EXPECTED_FAILURES[build]}
    assert all(record.status in (TrialStatus.PASSED, TrialStatus.FAILED) for record in run.trials)
    assert all(record.cost_usd is not None and record.cost_usd > 0 for record in run.trials)
    assert run.exit_code == (1 if failed else 0)


@pytest.mark.slow
def test_equal_behaviour_gives_equal_results(tmp_path: Path) -> None:
    texts = []
    for name in ("one", "two"):
        seatrial.run(project=PROJECT, output=tmp_path / name)
        results = json.loads((tmp_path / name / "results.json").read_text(encoding="utf-8"))
        texts.append({key: value for key, value in results.items() if key != "times"})
    assert texts[0] == texts[1]


def test_the_table_covers_every_build_of_the_project() -> None:
    project = yaml.safe_load((PROJECT / "seatrial.yaml").read_text(encoding="utf-8"))
    assert set(project["builds"]) == set(EXPECTED_FAILURES)


def test_there_are_enough_cases_over_all_suites() -> None:
    cases = written_cases()
    assert len(cases) >= 14
    assert {path.name for path in (PROJECT / "cases").iterdir()} == SUITES
    assert any(len(case.get("turns", ())) == 2 for case in cases), "a conversation of three turns"


def test_no_build_knows_a_case() -> None:
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (PROJECT / "refund_agent").rglob("*.py"))
    assert [case["id"] for case in written_cases() if case["id"] in sources] == []
    assert "expected" not in sources


def test_a_live_model_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(PROJECT))
    graph = importlib.import_module("refund_agent.graph")
    monkeypatch.setenv("MODEL", "fireworks:some-model")
    with pytest.raises(ImportError, match="langchain-fireworks"):
        graph.language_model()
