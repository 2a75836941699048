from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.loading.located import Map, Spot, located, plain
from seatrial.loading.matrix import expansions


def expanded(case: dict) -> dict:
    problems: list = []
    found = {suffix: plain(values) for suffix, values in expansions(located(case, Spot()), problems)}
    assert not problems
    return found


def test_a_mapping_of_lists_gives_the_product_in_order() -> None:
    found = expanded({"matrix": {"a": [1, 2.5], "b": ["x", None]}, "t": "${a}-${b}"})
    assert {suffix: values["t"] for suffix, values in found.items()} == {
        "[a=1,b=x]": "1-x",
        "[a=1,b=null]": "1-null",
        "[a=2.5,b=x]": "2.5-x",
        "[a=2.5,b=null]": "2.5-null",
    }


def test_a_list_of_mappings_gives_one_case_each() -> None:
    found = expanded({"matrix": [{"a": 1}, {"a": 2, "b": True}], "t": "${a}"})
    assert found == {"[a=1]": {"t": 1}, "[a=2,b=true]": {"t": 2}}


def test_a_whole_text_takes_the_type_and_dollars_escape() -> None:
    case = {
        "matrix": {"v": [{"x": [1]}]},
        "whole": "${v}",
        "part": "got ${v}",
        "escaped": "$${v} ${v}",
        "key": {"${v}": 1},
    }
    (values,) = expanded(case).values()
    assert values == {
        "whole": {"x": [1]},
        "part": 'got {"x": [1]}',
        "escaped": '${v} {"x": [1]}',
        "key": {"${v}": 1},
    }


def test_values_are_not_filled_in_again() -> None:
    assert expanded({"matrix": {"a": ["${b}"]}, "t": "x ${a}"}) == {"[a=${b}]": {"t": "x ${b}"}}


def test_a_product_that_explodes_is_refused() -> None:
    problems: list = []
    case = located({"matrix": {name: list(range(100)) for name in "abcd"}}, Spot())
    assert list(expansions(case, problems)) == []
    assert "100,000,000" in problems[0].message


@given(st.lists(st.text() | st.integers() | st.lists(st.text(), max_size=3), min_size=1, max_size=5))
def test_different_values_of_one_type_have_different_printable_suffixes(values: list) -> None:
    distinct = [value for n, value in enumerate(values) if not any(value == other for other in values[:n])]
    suffixes = [suffix for suffix, _ in expansions(located({"matrix": {"v": distinct}}, Spot()), [])]
    texts = {value if isinstance(value, str) else repr(value) for value in distinct}
    if len(texts) == len(distinct) and all(isinstance(v, str) and v.isprintable() for v in distinct):
        assert len(set(suffixes)) == len(distinct)
    assert all(suffix.isprintable() for suffix in suffixes)


def test_a_case_without_a_matrix_is_the_same_object() -> None:
    case = located({"t": "${x}"}, Spot())
    assert isinstance(case, Map)
    assert [values is case for _, values in expansions(case, [])] == [True]
