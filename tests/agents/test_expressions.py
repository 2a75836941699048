"""`$` expressions and paths, as adapters read them in `input:` and `output:`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.agents.expressions import filled, output_reader, read_path
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError

names = st.text("abcdefgh_", min_size=1, max_size=4)
nested = st.recursive(
    st.integers(), lambda inner: st.dictionaries(names, inner, min_size=1) | st.lists(inner, min_size=1)
)


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


def test_messages_are_what_the_framework_makes_of_them() -> None:
    turn = TurnInput("case", {"message": "hi", "n": [1]})
    value = {"said": "$messages", "deep": ["$input.n[0]", "$$5"], "n": 3}
    assert filled(value, turn, lambda turn: [turn.message.upper()]) == {"said": ["HI"], "deep": [1, "$5"], "n": 3}


def test_the_answer_is_read_by_default_path_or_function() -> None:
    assert output_reader(None, str.upper, "the output")("a") == "A"
    assert output_reader("[0].n", str, "the output")([{"n": 3}]) == 3
    assert output_reader("builtins:len", str, "the output")([1, 2]) == 2
    with pytest.raises(UsageError, match="there is no m in dict"):
        output_reader("m", str, "the output")({})
