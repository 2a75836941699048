"""What an agent gave is kept by models as JSON and back, lone surrogates included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from made import passing
from odd_json import texts, values
from seatrial.core.case import Case
from seatrial.core.encoding import dumps, line_of, to_json
from seatrial.core.model_json import as_given, dumped, json_of, model_of
from seatrial.core.policy import ExceptionRule
from seatrial.core.run import RunInfo
from seatrial.core.trace import Observable, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord
from seatrial.verdict.trajectories import Step


@given(values, values, texts)
def test_a_model_is_the_json_data_that_its_line_holds_and_reads_back_equal(given: Any, gave: Any, name: str) -> None:
    call = ToolCallEvent(number=1, name=to_json(name), arguments=given, result=(gave,))
    trace = Trace(
        events=(call,),
        observes=frozenset({Observable.OUTPUT}),
        unobserved={Observable.USAGE: to_json(name)},
        output=gave,
    )
    data = json_of(trace)
    assert dumped(trace) == trace.model_dump()
    assert data == json.loads(line_of(trace))
    assert type(data["events"][0]["state"]) is str
    assert json_of(model_of(Trace, dumps(data).encode())) == data


@given(values)
def test_what_is_left_out_is_left_out_whatever_the_keys(value: Any) -> None:
    case = Case(id="c", input={"deep": {"\ud800": value}})
    assert json_of(case, exclude_unset=True) == {"id": "c", "input": {"deep": {"\ud800": value}}}
    assert Case(**json_of(case, exclude_unset=True)).digest == case.digest
    step = Step(kind="call", name="look", arguments={"a": {"\ud800": 1}})
    assert json_of(step) == {"call": "look", "arguments": {"a": {"\ud800": 1}}}


PARTS: dict[str, Any] = {
    "suite": "default",
    "tags": ["one", "two"],
    "attachments": [{"path": "a.txt", "sha256": "0" * 64, "size": 1, "absolute": "elsewhere/a.txt"}],
    "turns": [{"user": "and now?", "expected": {"response": {"equals": "so"}}}],
    "expected": {"required_tools": [{"name": "look", "arguments": {"n": None}}], "handoff": {"target": None}},
    "thresholds": {"trials": 3, "required_successes": 2},
    "limits": {"steps": 4},
    "graders": [{"use": "own:check", "with": {"strict": True}}, {"use": "own:other"}],
    "metadata": {"at": 1.5, "of": {"\ud800": None}},
    "path": "cases/a.yaml",
    "line": 3,
    "base_id": "c",
}


@given(st.sets(st.sampled_from(sorted(PARTS))), values)
def test_what_was_given_is_what_the_serializer_leaves(parts: set[str], value: Any) -> None:
    case = Case(id="c", input={"message": "x", "more": value}, **{name: PARTS[name] for name in parts})
    assert case.digest  # is kept beside the fields, and is none
    assert line_of(case, as_given) == line_of(dumped(case, by_alias=True, exclude_unset=True))


def test_keys_stay_what_they_are_in_whatever_field() -> None:
    keys = {chr(code): code for code in (0xD800, 0xD801, 0xFFFD)}
    record = passing("c", tools=keys, outcome=keys)
    assert {name: json_of(record)[name] for name in ("tools", "outcome")} == {"tools": keys, "outcome": keys}
    assert TrialRecord.model_validate(json_of(record)) == record
    assert json_of(Case(id="c", input=keys), exclude_unset=True) == {"id": "c", "input": keys}


def test_dates_are_text_beside_any_text() -> None:
    excepted = ExceptionRule(case="c\ud800", reason="known", approver="Ada", expires="2027-01-31")
    assert json_of(excepted)["expires"] == "2027-01-31"
    assert ExceptionRule.model_validate(json_of(excepted)) == excepted


def test_what_is_nested_deeply_is_kept_and_read() -> None:
    output: Any = 1
    for _ in range(300):
        output = {"in": [output]}
    trace = Trace(output=output)
    assert json_of(trace)["output"] == output
    assert model_of(Trace, line_of(trace)) == trace


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b'{"run_id": "r"', "json_invalid"),
        (b'{"run_id": "r\\ud800"', "json_invalid"),
        (b'{"run_id": "\xff"}', "json_invalid"),
        (b"[" * 100_000, "json_invalid"),
        (b"", "json_invalid"),
        (b'{"run_id": 5, "build_id": "\\ud800"}', "string_type"),
        (b'{"run_id": 5}', "string_type"),
    ],
)
def test_what_is_no_such_model_is_refused_for_that_reason(text: bytes, kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model_of(RunInfo, text)
    assert [error["type"] for error in caught.value.errors()] == [kind]
