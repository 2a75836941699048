from __future__ import annotations

from typing import Any

import pytest

from seatrial.core.grade import Grade
from seatrial.core.permissions import Rules
from seatrial.core.trace import Observable
from seatrial.environment.recorder import Recorder
from traces import finished, record, said, the_grade, tool_call, trace_of, without


def verdict(expected: dict[str, Any], output: Any) -> str:
    return said(expected, output).verdict.value


@pytest.mark.parametrize(
    ("wanted", "output", "result", "reason"),
    [
        ("392", "It is 392.", "pass", "'392' is in the output"),
        ("392", "13920", "fail", "'392' is not in the output '13920'"),
        ("392", {"answer": 392}, "pass", None),
        ("392", {"answer": 392, "text": "see above"}, "pass", None),
        ("Paris", {"city": "PARIS", "n": 1}, "pass", None),
        ("Paris", ["Rome", {"x": "paris"}], "pass", None),
        ({"number": -5, "tolerance": 0}, "−5", "pass", "-5 is in the output"),
        ({"number": 5}, "-5", "fail", "expected the number 5, the output holds -5"),
        ({"number": 5}, "five", "fail", "expected the number 5, but the output holds no number"),
        ({"number": 3.14, "tolerance": 0.01}, "about 3.15", "pass", "3.14 within 0.01 is in the output"),
        (
            {"number": 3.14, "tolerance": 0.01},
            "3.16",
            "fail",
            "expected the number 3.14 within 0.01, the output holds 3.16",
        ),
        ({"number": 20}, "a 20% share", "pass", "20 is in the output (20% reads as 20)"),
        ({"number": 0.2}, "a 20% share", "fail", "expected the number 0.2, the output holds 20% (20% reads as 20)"),
        ({"number": 7, "which": "last"}, "7 of 9", "fail", "expected the number 7, the last number of the output is 9"),
        ({"number": 9, "which": "last"}, "7 of 9", "pass", None),
        ({"number": 1000}, "1,000 EUR", "pass", None),
        ({"number": 200}, {"values": [100, 200]}, "pass", None),
        ({"any_of": ["Paris", {"number": 3}]}, "3 cities", "pass", "3 is in the output"),
        (
            {"any_of": ["Paris", {"number": 3}]},
            "Rome",
            "fail",
            "'Paris' is not in the output 'Rome'; expected the number 3, but the output holds no number",
        ),
    ],
)
def test_answer(wanted: Any, output: Any, result: str, reason: str | None) -> None:
    grade = said({"answer": wanted}, output)
    assert (grade.name, grade.verdict) == ("answer", result)
    assert reason is None or grade.reason == reason


@pytest.mark.parametrize(
    "expected", [{"answer": "x"}, {"output": {"a": 1}}, {"response": {"equals": "x"}}, {"response": {"matches": "x"}}]
)
def test_an_output_that_was_not_observed_makes_its_graders_abstain(expected: dict[str, Any]) -> None:
    grade = the_grade(expected, trace_of(output=None, observes=without(Observable.OUTPUT)))
    assert (grade.verdict, grade.reason, grade.score) == ("abstain", "output was not observed", None)


@pytest.mark.parametrize(
    ("wanted", "output", "reason"),
    [
        ({"answer": 3.0}, {"answer": 3, "more": 1}, None),
        ({"answer": 3.0}, '{"answer": 3}', None),
        ({"answer": 3.0}, '```json\n{"answer": 3}\n```', None),
        ({"answer": 3.0}, {"answer": 4}, "output.answer: expected 3.0, got 4"),
        ({"answer": 3.0}, '{"answer": "3"}', "output.answer: expected 3.0 (number), got '3' (string)"),
        ({"answer": 3.0}, "three", "output: expected {\"answer\":3.0} (object), got 'three' (string)"),
        ("100", "100", None),
        (100, "100", None),
        ({"$contains": "b"}, "abc", None),
        (None, None, None),
        (None, "x", "output: expected null, got 'x' (string)"),
    ],
)
def test_output(wanted: Any, output: Any, reason: str | None) -> None:
    grade = said({"output": wanted}, output)
    assert (grade.name, grade.verdict) == ("output", "fail" if reason else "pass")
    assert grade.reason == (reason or "the output is as expected")


SCHEMA = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("key", "wanted", "output", "result", "reason"),
    [
        (
            "required_concepts",
            ["a b", {"any_of": ["c", "d"]}],
            "A  b and D",
            "pass",
            "the output says 'a b', 'c' or 'd'",
        ),
        (
            "required_concepts",
            ["a b", {"any_of": ["c", "d"]}],
            "a",
            "fail",
            "the output does not say 'a b' nor 'c' or 'd'",
        ),
        ("required_concepts", ["has been issued"], "It has not been issued", "fail", None),
        (
            "prohibited_concepts",
            ["refund completed"],
            "Refund completed.",
            "fail",
            "the output says 'refund completed'",
        ),
        ("prohibited_concepts", ["refund completed"], "No refund completed yet.", "fail", None),
        (
            "prohibited_concepts",
            ["refund completed"],
            "The refund is not completed.",
            "pass",
            "the output says none of 'refund completed'",
        ),
        ("matches", r"O-\d+", "order O-100", "pass", r"the output matches 'O-\\d+'"),
        ("matches", r"^O", "order O-100", "fail", "the output does not match '^O': 'order O-100'"),
        ("equals", "Café", " Cafe\u0301\n", "pass", "the output is the expected text"),
        ("equals", "Yes", "yes", "fail", "expected 'Yes', got 'yes'"),
        ("json_schema", SCHEMA, '```\n{"a": 1}\n```', "pass", "the output is valid under the schema"),
        ("json_schema", SCHEMA, {"a": 1}, "pass", None),
        ("json_schema", SCHEMA, {"a": "1"}, "fail", "$.a: '1' is not of type 'integer'"),
        ("json_schema", SCHEMA, "nothing", "fail", "the output is no JSON: 'nothing'"),
        ("max_characters", 3, "abc", "pass", "the output has at most 3 characters"),
        ("max_characters", 3, "abcd", "fail", "the output has 4 characters, at most 3 are allowed"),
        ("language", "de", "Das ist nicht die Antwort.", "pass", "the output is in 'de'"),
        ("language", "de", "This is not the answer.", "fail", "expected 'de', got 'en'"),
        ("language", "de", "42", "abstain", "the output has too little text to tell its language"),
    ],
)
def test_response(key: str, wanted: Any, output: Any, result: str, reason: str | None) -> None:
    grade = said({"response": {key: wanted}}, output)
    assert (grade.name, grade.verdict) == (f"response.{key}", result)
    assert reason is None or grade.reason == reason


def test_a_schema_that_points_elsewhere_fetches_nothing() -> None:
    with pytest.raises(Exception, match="Unresolvable"):
        said({"response": {"json_schema": {"$ref": "http://127.0.0.1:9/schema.json"}}}, {"a": 1})


# --- asks -----------------------------------------------------------------------------------------------------------

RULES = Rules.model_validate({"tools": {"pay": {"side_effect": True}, "look": {}}})


def conversation(*steps: str, output: str = "done", **fields: Any) -> Any:
    """`say TEXT` and `call NAME` in order."""
    recorder = Recorder()
    for step in steps:
        kind, _, rest = step.partition(" ")
        if kind == "say":
            recorder.message("assistant", rest)
        elif kind == "turn":
            recorder.turn = int(rest)
        else:
            record(recorder, tool_call(rest))
    return finished(recorder, output=output, **fields)


@pytest.mark.parametrize(
    ("steps", "output", "result", "reason"),
    [
        ((), "What is your order number?", "pass", "the agent asked for 'order number' before it acted"),
        ((), "Please tell me the order number.", "pass", None),
        ((), "Your order number is O-100.", "fail", "the agent never asked for 'order number'"),
        ((), "Is that all? Your order number is O-1.", "fail", None),
        (("say Which order number?", "call pay"), "done", "pass", None),
        (("call pay",), "Which order number?", "fail", "pay was called before the agent asked for 'order number'"),
        (("call pay", "say Which order number?"), "done", "fail", None),
        (("call pay",), "done", "fail", "pay was called before the agent asked for 'order number'"),
        (("call look",), "Which order number?", "pass", None),
    ],
)
def test_asks(steps: tuple[str, ...], output: str, result: str, reason: str | None) -> None:
    expected = {"asks": "order number", "allowed_tools": ["look"]}
    for options in ({}, {"rules": RULES}):
        grade = asked(expected, conversation(*steps, output=output), **options)
        assert grade.verdict == result
        assert reason is None or grade.reason == reason


def asked(expected: dict[str, Any], trace: Any, **options: Any) -> Grade:
    from traces import grades

    return grades(expected, trace, **options)["asks"]


def test_without_rules_every_call_that_is_not_allowed_acts() -> None:
    trace = conversation("call look", output="Which order number?")
    assert asked({"asks": "order number"}, trace).verdict == "fail"
    assert asked({"asks": "order number"}, trace, rules=RULES).verdict == "pass"


def test_an_answer_of_an_earlier_turn_comes_before_the_calls_of_the_next() -> None:
    fine = conversation("turn 2", "call pay", outputs=("Which order number?", "done"))
    assert asked({"asks": "order number"}, fine).verdict == "pass"
    late = conversation("call pay", "turn 2", "say ok", outputs=("Which order number?", "done"))
    assert asked({"asks": "order number"}, late).verdict == "fail"


def test_asks_abstains_where_calls_were_not_observed() -> None:
    trace = conversation(output="Which order number?", observes=without(Observable.TOOL_CALLS))
    assert asked({"asks": "order number"}, trace).verdict == "abstain"


# --- faults seen in the field ---------------------------------------------------------------------------------------


def test_bl_044_only_punctuation_around_a_number_is_ignored() -> None:
    results = [verdict({"answer": {"number": 3.14}}, text) for text in ("(3.14)", "3.14.", "$3.14", "314")]
    assert results == ["pass", "pass", "pass", "fail"]


def test_bl_046_a_typographic_minus_is_a_minus() -> None:
    results = [verdict({"answer": {"number": -5}}, text) for text in ("−5", "-5", "5")]
    assert results == ["pass", "pass", "fail"]


def test_bl_048_structured_output_is_compared_as_data() -> None:
    expected = {"output": {"$exact": {"a": 1, "b": [1, 2]}}}
    assert verdict(expected, '{ "b":[1,2],"a":1.0 }') == "pass"
    grade = said(expected, '{"a":1,"b":[2,1]}')
    assert grade.verdict == "fail"
    assert grade.reason.startswith("output.b[0]: expected 1, got 2")
