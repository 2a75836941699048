from __future__ import annotations

import pickle
from typing import Any

import pytest

from seatrial.core.case import Case
from seatrial.core.permissions import Rules
from seatrial.core.ports import Grader
from seatrial.core.trace import StopReason
from seatrial.core.trial import TrialStatus, status_of
from seatrial.environment.recorder import Recorder
from seatrial.errors import UsageError
from seatrial.graders import graders_for
from traces import finished, grades, record, tool_call, trace_of

WHOLE = {
    "answer": "x",
    "output": {"a": 1},
    "outcome": {"a": 1},
    "required_tools": ["a"],
    "allowed_tools": ["b"],
    "forbidden_tools": ["c"],
    "tool_order": [["a", "c"]],
    "exact_tools": True,
    "handoff": {"target": None},
    "response": {
        "required_concepts": ["x"],
        "prohibited_concepts": ["y"],
        "matches": "x",
        "equals": "x",
        "json_schema": {},
        "max_characters": 5,
        "language": "en",
    },
    "asks": "number",
    "forbidden_approvals": [{"action": "c"}],
    "safety": {"blocked_events": ["secret_exposure"]},
    "error_handling": True,
    "max_steps": 3,
}


def names(**case: Any) -> list[str]:
    return [grader.name for grader in graders_for(Case.model_validate({"id": "case", **case}))]


def test_every_key_gives_its_grade_and_every_grader_loads() -> None:
    case = Case.model_validate(
        {"id": "case", "expected": WHOLE, "thresholds": {"max_latency_ms": 1, "max_estimated_cost_usd": 1}}
    )
    found = graders_for(case, canaries=True, rules=Rules())
    assert [grader.name for grader in found] == [
        "answer",
        "output",
        "outcome",
        "required_tools",
        "forbidden_tools",
        "tool_order",
        "handoff",
        "response.required_concepts",
        "response.prohibited_concepts",
        "response.matches",
        "response.equals",
        "response.json_schema",
        "response.max_characters",
        "response.language",
        "asks",
        "forbidden_approvals",
        "safety",
        "error_handling",
        "step_efficiency",
        "max_latency_ms",
        "max_estimated_cost_usd",
        "permissions",
    ]
    assert all(isinstance(grader, Grader) for grader in found)
    assert pickle.loads(pickle.dumps(found)) == found
    given = grades(WHOLE, trace_of(), outcome={"a": 1})
    assert {grade.name for grade in given.values()} == set(given)


def test_only_graders_of_the_final_output_need_an_answer() -> None:
    case = Case.model_validate({"id": "case", "expected": WHOLE})
    needy = {grader.name for grader in graders_for(case) if grader.needs_answer}
    assert needy == {"answer", "output"} | {f"response.{key}" for key in WHOLE["response"]}  # type: ignore[attr-defined]


def test_a_key_that_was_not_written_expects_nothing_and_an_empty_list_asks_for_nothing() -> None:
    assert names() == []
    assert names(expected={"forbidden_tools": [], "tool_order": [], "forbidden_approvals": []}) == []
    assert names(expected={"required_tools": []}) == ["required_tools"]
    assert names(expected={"output": None}) == ["output"]
    assert names(expected={"response": {"required_concepts": [], "max_characters": 0}}) == ["response.max_characters"]


def test_advisory_grades_are_not_required_and_short_names_do() -> None:
    case = Case.model_validate(
        {"id": "case", "expected": {"max_steps": 1, "answer": "x"}, "advisory": ["max_steps", "answer"]}
    )
    assert [grader.required for grader in graders_for(case)] == [False, False]
    given = grades({"max_steps": 1}, trace_of(steps=9), case={"advisory": ["step_efficiency"]})
    assert (given["step_efficiency"].verdict, given["step_efficiency"].required) == ("fail", False)


@pytest.mark.parametrize(
    ("case", "message"),
    [
        (
            {"expected": {"answer": "x"}, "advisory": ["anwser"]},
            "case case: advisory: no grade is called 'anwser'; did you mean 'answer'?",
        ),
        (
            {"graders": [{"use": "json:dumps", "name": "a"}, {"use": "json:loads", "name": "a"}]},
            "case case: two grades are called 'a'; give one of the graders a `name:`",
        ),
        (
            {"expected": {"answer": "x"}, "graders": [{"use": "json:dumps", "name": "answer"}]},
            "case case: two grades are called 'answer'; give one of the graders a `name:`",
        ),
        (
            {"judges": [{"rubric": "quality"}]},
            "case case: judges: this version has no judges; use `response` or an own grader",
        ),
        (
            {"expected": {"output": {"$gtt": 1}}},
            "case case: expected.output: unknown operator '$gtt'; did you mean '$gt'?",
        ),
        (
            {"expected": {"tool_order": [["a", {"name": "b", "arguments": {"n": {"$lt": "5"}}}]]}},
            "case case: expected.tool_order[0][1].arguments: $lt takes a number, not '5' (string)",
        ),
        (
            {"turns": [{"user": "hi", "expected": {"response": {"language": "enn"}}}]},
            "case case: turns[0].expected.response.language: language 'enn' cannot be recognised; did you mean 'en'?",
        ),
        (
            {"expected": {"response": {"json_schema": {"type": "objekt"}}}},
            "case case: expected.response.json_schema: not a JSON Schema at $.type: "
            "'objekt' is not valid under any of the given schemas",
        ),
    ],
)
def test_what_cannot_be_graded_is_said_before_anything_runs(case: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as raised:
        names(**case)
    assert str(raised.value) == message


# --- turns ----------------------------------------------------------------------------------------------------------

TURNS = {
    "turns": [
        {"user": "go on", "expected": {"required_tools": ["look"], "answer": "found", "max_steps": 1}},
        {"user": "and?", "expected": {"required_tools": ["pay"], "answer": "paid"}},
    ]
}


def two_turns(**fields: Any) -> Any:
    recorder = Recorder()
    recorder.message("user", "hi")
    record(recorder, tool_call("pay"))
    recorder.turn = 2
    recorder.message("user", "go on")
    record(recorder, tool_call("look"))
    fields = {"steps": 2, "steps_are_tool_calls": True, "outputs": ("paid", "found"), **fields}
    return finished(recorder, output=None, **fields)


def test_a_turns_expectations_see_that_turn_and_its_answer() -> None:
    given = grades({}, two_turns(stop_reason=StopReason.AGENT_ERROR), case=TURNS)
    assert {name: grade.verdict.value for name, grade in given.items()} == {
        "turn[2].answer": "pass",
        "turn[2].required_tools": "pass",
        "turn[2].step_efficiency": "pass",
    }
    assert given["turn[2].step_efficiency"].reason == "1 step (tool calls), at most 1"


def test_a_turn_that_was_begun_and_not_answered_has_its_calls_graded_but_no_answer() -> None:
    trace = two_turns(outputs=("paid",), stop_reason=StopReason.TIMEOUT)
    assert set(grades({}, trace, case=TURNS)) == {"turn[2].required_tools", "turn[2].step_efficiency"}


def test_the_case_sees_all_turns() -> None:
    given = grades({"required_tools": ["pay", "look"]}, two_turns(), case=TURNS)
    assert given["required_tools"].verdict == "pass"


# --- faults seen in the field ---------------------------------------------------------------------------------------


def test_bl_020_nothing_to_score_is_no_grade() -> None:
    given = grades({"required_tools": []}, trace_of())
    assert {name: grade.score for name, grade in given.items()} == {"required_tools": 1.0}
    assert "tool_precision" not in given["required_tools"].tallies
    assert "required_tool_recall" not in given["required_tools"].tallies


def test_bl_022_an_empty_list_of_graders_is_no_graders() -> None:
    assert names(graders=[]) == []
    assert names(graders=["json:dumps", "json:loads"]) == ["json:dumps", "json:loads"]


def test_bl_024_a_trial_that_nothing_grades_is_ungraded() -> None:
    given = grades({"forbidden_tools": []}, trace_of())
    assert given == {}
    assert status_of((), (), StopReason.ANSWERED) == (TrialStatus.UNGRADED, None)
