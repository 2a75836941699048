"""What `input:` and `output:` of an agent may say, for every framework."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.agents.expressions import filled, named_function, read_path, reader
from seatrial.agents.telling import says_the_same
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError

names = st.text("abcdefgh_", min_size=1, max_size=4)
nested = st.recursive(
    st.integers(), lambda inner: st.dictionaries(names, inner, min_size=1) | st.lists(inner, min_size=1)
)


TURN = TurnInput(case_id="a", input={"message": "hello", "order": {"id": "O-1"}})


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("$message", "hello"),
        ("$input.order.id", "O-1"),
        ("$input.order.price", None),
        ("$input", TURN.input),
        ("$$5", "$5"),
        ("plain", "plain"),
        ({"a": ["$message", 3]}, {"a": ["hello", 3]}),
        ("$shout", "HELLO"),
    ],
)
def test_expressions_are_replaced_at_any_depth(value: Any, found: Any) -> None:
    assert filled(value, TURN, {"$shout": lambda turn: turn.message.upper()}) == found


def test_an_unknown_expression_names_those_there_are() -> None:
    with pytest.raises(UsageError, match=r"'\$mesage' is not known; write \$message, \$shout, \$input"):
        filled("$mesage", TURN, {"$shout": lambda turn: turn.message})


def test_a_function_is_named_by_module_and_name() -> None:
    assert named_function("builtins:len") is len
    assert named_function("$message:x") is None
    assert named_function({"a": 1}) is None


def test_output_is_read_by_path_by_function_or_by_default() -> None:
    state = {"messages": [{"content": "hi"}]}
    assert reader("messages[-1].content", str)(state) == "hi"
    assert reader("builtins:len", str)(state) == 1
    assert reader(None, lambda found: found["messages"])(state) == [{"content": "hi"}]
    with pytest.raises(UsageError, match="there is no text"):
        reader("messages[0].text", str)(state)


@pytest.mark.parametrize(
    ("told", "result", "same"),
    [("3", 3, True), ('{"a": 1}', {"a": 1}, True), ("None", None, True), ("It is 3.", 3, False), ("x", "y", False)],
)
def test_what_the_model_was_told_is_compared_with_the_result(told: Any, result: Any, same: bool) -> None:
    assert says_the_same(told, result) is same


@given(nested, st.data())
def test_every_path_into_data_leads_to_its_value(value: Any, data: st.DataObject) -> None:
    path, found = "", value
    while isinstance(found, (dict, list)):
        key = data.draw(st.sampled_from(list(found) if isinstance(found, dict) else range(-len(found), len(found))))
        path += f"[{key}]" if isinstance(found, list) else f".{key}"
        found = found[key]
    path = path.removeprefix(".")
    if path:
        assert read_path(value, path) == found


@pytest.mark.parametrize("path", ["", "a..b", "a[x]", "a[1", "[]"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="not a path"):
        read_path({}, path)
