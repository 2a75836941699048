"""The support example: its good build passes, and each faulty build fails what its README says."""

from __future__ import annotations

from pathlib import Path

import pytest

import seatrial

PROJECT = Path(__file__).parents[2] / "examples" / "support_graph"

FAILURES = {
    "good": {},
    "mental_arithmetic": {
        "support_multiplication": {"answer", "required_tools"},
        "support_division_by_zero": {"required_tools", "response.required_concepts"},
        "support_free_shipping": {"required_tools"},
    },
    "ignores_the_added_item": {
        "support_free_shipping": {
            "answer",
            "required_tools",
            "response.required_concepts",
            "response.prohibited_concepts",
        },
    },
    "looks_up_everything": {
        "support_multiplication": {"required_tools", "step_efficiency"},
        "support_greeting": {"required_tools", "step_efficiency"},
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("build", FAILURES)
def test_each_build_fails_exactly_what_it_should(build: str, tmp_path: Path) -> None:
    run = seatrial.run(project=PROJECT, build=build, output=tmp_path / "run")
    failed = {
        record.case_id: {grade.name for grade in record.grades if grade.verdict != "pass"} for record in run.trials
    }
    assert {case: grades for case, grades in failed.items() if grades} == FAILURES[build]
    assert len(failed) == 5
    assert run.exit_code == (1 if FAILURES[build] else 0)


@pytest.mark.slow
def test_the_web_is_the_stand_in_and_the_rest_is_the_agent_s_own(tmp_path: Path) -> None:
    run = seatrial.run(project=PROJECT, output=tmp_path / "run")
    stood_in = {call.name: call.stand_in for record in run.trials for call in run.trace(record).tool_calls}
    assert stood_in == {
        "add": False,
        "divide": False,
        "multiply": False,
        "search_knowledge_base": False,
        "search_web": True,
    }
