"""A trace's line says what is not as by default, and reads back as the trace."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from made import passing
from odd_json import texts, values
from seatrial.core.encoding import to_json
from seatrial.core.trace import AgentError, Message, ModelCallEvent, Observable, ToolCallEvent, Trace, Usage
from seatrial.store.trace_line import trace_line

KEY = {"case_id": "c", "trial_index": 1, "attempt": 1}


def told(trace: Trace) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(trace_line(passing("c"), trace))
    assert data.items() >= KEY.items()
    return {name: value for name, value in data.items() if name not in KEY}


def test_what_is_as_by_default_is_left_out_but_for_the_kind_of_an_event() -> None:
    events = (
        Message(number=1, role="user", content=None),
        ModelCallEvent(number=2, usage=Usage(input=3)),
        ModelCallEvent(number=3, usage=Usage(), turn=2),
        ToolCallEvent(number=4, name="look", arguments={"state": "executed"}),
    )
    assert told(Trace()) == {}
    assert told(Trace(events=events, error=AgentError(type="E", message=""))) == {
        "events": [
            {"number": 1, "kind": "message", "role": "user", "content": None},
            {"number": 2, "kind": "model_call", "usage": {"input": 3}},
            {"number": 3, "turn": 2, "kind": "model_call", "usage": {}},
            {"number": 4, "kind": "tool_call", "name": "look", "arguments": {"state": "executed"}},
        ],
        "error": {"type": "E", "message": ""},
    }


usages = st.builds(Usage, input=st.none() | st.integers(0, 9), output=st.none() | st.integers(0, 9))
events = st.lists(
    st.builds(Message, number=st.just(1), role=st.just("user"), content=values)
    | st.builds(ModelCallEvent, number=st.just(1), usage=st.none() | usages, cost_usd=st.none() | st.floats(0, 9))
    | st.builds(ToolCallEvent, number=st.just(1), name=st.just("look"), arguments=values, result=values),
    max_size=3,
)
traces = st.builds(
    Trace,
    events=events.map(tuple),
    observes=st.frozensets(st.sampled_from(Observable)),
    unobserved=st.dictionaries(st.sampled_from(Observable), texts.map(to_json), max_size=2),
    output=values,
    outputs=st.lists(values, max_size=2).map(tuple),
    error=st.none() | st.builds(AgentError, type=st.just("E"), message=texts.map(to_json)),
    estimates=st.dictionaries(st.integers(1, 3), st.floats(0, 9), max_size=2),
)


@given(traces)
def test_whatever_was_observed_reads_back_equal(trace: Trace) -> None:
    assert Trace.model_validate(told(trace)) == trace
    assert told(trace).get("observes", []) == sorted(trace.observes)
