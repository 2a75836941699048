"""What an agent gave is kept by models as JSON and back, lone surrogates included."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.encoding import dumps, line_of, to_json
from seatrial.core.model_json import json_of, model_of
from seatrial.core.run import RunInfo
from seatrial.core.trace import Observable, ToolCallEvent, Trace
from seatrial.verdict.trajectories import Step

texts = st.text(st.characters() | st.sampled_from("\ud800\udfff"), max_size=4)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
).map(to_json)


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
