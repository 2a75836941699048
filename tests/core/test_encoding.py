"""Properties of the JSON encoding: total, strict, stable, and readable back."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.encoding import digest, dumps, from_json, indented, line_of, to_json
from seatrial.core.grade import Grade, Verdict

any_text = st.text(st.characters())  # lone surrogates included
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | any_text
    | st.binary()
    | st.decimals(allow_nan=False)
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner) | st.dictionaries(any_text | st.just("$type") | st.just("value"), inner)
)


def strictly(text: str) -> object:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    return json.loads(text.encode("utf-8"), parse_constant=refuse)


def normal(value: object) -> object:
    """The same value with pairs of surrogates joined, as the module says."""
    if isinstance(value, str):
        return to_json(value)
    if isinstance(value, dict):
        return {normal(key): normal(item) for key, item in value.items()}
    return [normal(item) for item in value] if isinstance(value, list) else value


@given(values)
def test_what_json_can_hold_reads_back_equal(value: object) -> None:
    encoded = to_json(value)
    stored = strictly(dumps(encoded))
    assert stored == encoded
    keys_kept_apart = normal(value)
    assert from_json(stored) == keys_kept_apart


class Hostile:
    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __iter__(self):
        raise RuntimeError("no")

    model_dump = property(lambda self: 1 / 0)


ODD = {
    "nan": lambda: math.nan,
    "inf": lambda: -math.inf,
    "set": lambda: {1, 2, "a", frozenset({b"x"})},
    "date": lambda: datetime.date(2026, 3, 1),
    "hostile": Hostile,
    "error": lambda: ValueError("a value"),
    "object": object,
    "function": lambda: strictly,
    "class": lambda: int,
    "huge": lambda: 10**5000,
    "complex": lambda: 1j,
    "decimal": lambda: decimal.Decimal("sNaN"),
    "proxy": lambda: MappingProxyType({"a": 1}),
    "tuple": lambda: (1, (2,)),
    "range": lambda: range(3),
}
odd = st.sampled_from(sorted(ODD)).map(lambda name: ODD[name]())
odd_values = st.recursive(
    odd | scalars,
    lambda inner: st.lists(inner) | st.dictionaries(any_text | st.integers() | st.none() | st.booleans(), inner),
)


@given(odd_values)
def test_anything_becomes_strict_json_of_one_form(value: object) -> None:
    text = dumps(to_json(value))
    strictly(text)
    assert dumps(to_json(value)) == text
    assert digest(to_json(value)) == digest(strictly(text))
    from_json(strictly(text))


def test_bl_094_any_text_an_agent_returns_is_stored_and_reads_back_equal() -> None:
    for text in ("\ud835 ok", "a\u0000b", "\U0001f600", "\u2028", "\ud835"):
        assert strictly(dumps(to_json({"output": text}))) == {"output": text}


def test_bl_094_a_pair_of_surrogates_becomes_its_character() -> None:
    assert to_json({"\ud835\udc00": "\ud835\udc00"}) == {"\U0001d400": "\U0001d400"}


def test_bl_096_numbers_that_are_not_finite_can_be_told_apart() -> None:
    stored = strictly(dumps(to_json([math.nan, math.inf, -math.inf])))
    read = from_json(stored)
    assert math.isnan(read[0])
    assert read[1:] == [math.inf, -math.inf]


def test_a_whole_number_of_any_size_is_stored() -> None:
    assert from_json(strictly(dumps(to_json([10**5000, -(10**5000)])))) == [10**5000, -(10**5000)]


def test_keys_that_json_cannot_tell_apart_are_all_kept() -> None:
    encoded = to_json({1: "a", "1": "b"})
    assert encoded["$type"] == "mapping"
    assert json.loads(encoded["value"]) == [["1", "a"], ["1", "b"]]


@pytest.mark.parametrize(
    ("key", "text"), [(1, "1"), (True, "true"), (None, "null"), (1.5, "1.5"), ((1, "a"), '[1,"a"]')]
)
def test_keys_become_text(key: object, text: str) -> None:
    assert to_json({key: 0}) == {text: 0}


def test_a_mapping_that_looks_like_a_mark_stays_a_mapping() -> None:
    value = {"$type": "float", "value": "nan"}
    assert from_json(strictly(dumps(to_json(value)))) == value


@pytest.mark.parametrize(
    "mark",
    [
        ("float", "x"),
        ("decimal", "x"),
        ("bytes", "é"),
        ("bytes", "!!!!"),
        ("mapping", "["),
        ("mapping", "1"),
        ("mapping", '["ab"]'),
        ("mapping", '{"ab": 1}'),
        ("mapping", "[[[], 1]]"),
        ("mapping", "[" * 100_000),
    ],
)
def test_a_mark_that_nobody_wrote_stays_as_it_is(mark: tuple[str, str]) -> None:
    marked = {"$type": mark[0], "value": mark[1]}
    assert from_json(marked) == marked


kinds = st.sampled_from(["float", "decimal", "bytes", "set", "datetime", "dataclass", "mapping", "object", "integer"])
odd_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"$type": kinds | inner, "value": inner | inner.map(json.dumps)})
        | st.dictionaries(any_text, inner, max_size=3)
    ),
    max_leaves=10,
)


@given(odd_json)
def test_whatever_looks_like_a_mark_is_read_without_raising_and_kept_by_encoding_it(data: object) -> None:
    from_json(data)
    assert from_json(to_json(data)) == normal(data)


def test_a_copy_is_not_touched_by_later_changes() -> None:
    value = {"items": [1]}
    encoded = to_json(value)
    value["items"].append(2)
    assert encoded == {"items": [1]}


def test_cycles_and_deep_nesting_end() -> None:
    cycle: list[object] = []
    cycle.append(cycle)
    assert to_json(cycle) == [{"$type": "cycle", "value": "list"}]
    deep: object = 0
    for _ in range(1_000):
        deep = [deep]
    assert "nested deeper than 100" in dumps(to_json(deep))


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = [1]
    assert to_json([shared, shared]) == [[1], [1]]


class Colour(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int
    label: object


def test_objects_have_one_form_without_addresses() -> None:
    assert to_json([Colour.RED, Level.HIGH]) == ["red", 3]
    assert to_json({3, 1, 2}) == {"$type": "set", "value": "[1,2,3]"}
    assert to_json(Point(1, [Colour.RED]))["value"].endswith('Point {"x":1,"label":["red"]}')
    shown = dumps(to_json([object(), ValueError(f"at {object()!r}"), lambda: None]))
    assert "0x" not in shown


def test_what_imitates_a_number_or_array_becomes_plain() -> None:
    class Scalar:
        shape = ()

        def item(self) -> int:
            return 7

    class Array:
        shape = (2,)

        def tolist(self) -> list[int]:
            return [1, 2]

    assert to_json([Scalar(), Array()]) == [7, [1, 2]]


@given(st.dictionaries(any_text, st.integers()))
def test_the_order_of_keys_does_not_change_a_digest(value: dict[str, int]) -> None:
    assert digest(to_json(value)) == digest(to_json(dict(reversed(value.items()))))


@given(values)
def test_the_text_of_a_file_reads_back_equal_and_can_be_encoded(value: object) -> None:
    encoded = to_json(value)
    assert strictly(indented(encoded)) == encoded


def test_a_lone_surrogate_in_a_file_leaves_the_text_around_it_readable() -> None:
    assert indented({"é": "ü\ud800\U0001f600"}) == '{\n  "é": "ü\\ud800\U0001f600"\n}'


def test_what_is_no_json_data_has_a_stand_in_or_is_refused() -> None:
    assert indented([1, object], lambda value: value.__name__) == '[\n  1,\n  "object"\n]'
    with pytest.raises(TypeError, match="object"):
        indented([object()])


@given(values)
def test_a_line_reads_back_as_what_the_slow_way_writes(value: object) -> None:
    encoded = to_json(value)
    line = line_of(encoded)
    assert strictly(line.decode()) == encoded == strictly(dumps(encoded))
    assert b"\n" not in line


def test_a_figure_that_is_no_finite_number_is_null_in_a_line() -> None:
    assert line_of({"a": math.nan, "b": [math.inf, 2**70]}) == b'{"a":null,"b":[null,1180591620717411303424]}'
    assert line_of({"a": math.nan, "b": "\ud800"}) == b'{"a":null,"b":"\\ud800"}'
    assert json.loads(indented({"a": math.nan, "b": "\ud800"})) == {"a": None, "b": "\ud800"}


def test_a_model_is_a_line_with_all_its_fields() -> None:
    grade = Grade(name="é", verdict=Verdict.PASS, reason="\ud800")
    assert json.loads(line_of(grade)) == grade.model_dump(mode="json")
    assert json.loads(line_of({"in": (grade.altered({"reason": ""}),), "of": {Verdict.FAIL}})) == {
        "in": [grade.model_dump(mode="json") | {"reason": ""}],
        "of": ["fail"],
    }


def test_what_is_no_json_data_is_no_line() -> None:
    with pytest.raises(TypeError, match="object"):
        line_of({"a": object()})
