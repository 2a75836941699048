"""The LlamaIndex example: its good build passes, and each faulty build fails what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

import seatrial

PROJECT = Path(__file__).parents[2] / "examples" / "research_workflow"

FAILURES = {
    "good": {},
    "adds_first": {"research_chained_arithmetic": {"answer", "required_tools", "tool_order"}},
    "from_memory": {
        "research_fact": {"required_tools", "response.required_concepts"},
        "research_facts_and_a_sum": {"answer", "required_tools", "tool_order"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("build", FAILURES)
def test_each_build_fails_exactly_what_it_should(build: str, tmp_path: Path) -> None:
    run = seatrial.run(project=PROJECT, build=build, output=tmp_path / "run")
    failed = {r.case_id: {grade.name for grade in r.grades if grade.verdict != "pass"} for r in run.trials}
    assert {case: grades for case, grades in failed.items() if grades} == FAILURES[build]
    assert len(failed) == 4
    assert run.exit_code == (1 if FAILURES[build] else 0)
    assert all(record.cost_usd for record in run.trials)
