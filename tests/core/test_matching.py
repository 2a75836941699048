from __future__ import annotations

import datetime
import itertools
import json
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel

from seatrial.core.encoding import to_json
from seatrial.core.matching import (
    MISSING,
    lookup_path,
    matches,
    maximum_matching,
    mismatches,
    missing_references,
    problem_with_matcher,
    resolve_input,
)
from seatrial.core.matching.checking import CHECKS
from seatrial.core.matching.comparing import OPERATORS

KEYS = st.text(max_size=5).filter(lambda key: not key.startswith("$"))
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


def why(expected: Any, actual: Any, **options: Any) -> list[str]:
    return [str(mismatch) for mismatch in mismatches(expected, actual, **options)]


@given(JSON)
def test_json_data_matches_itself(data: Any) -> None:
    assert mismatches(data, data) == []


@given(st.dictionaries(KEYS, JSON, max_size=5), st.dictionaries(KEYS, JSON, max_size=5))
def test_further_keys_never_hurt_a_subset_and_always_break_exact(wanted: dict[str, Any], more: dict[str, Any]) -> None:
    actual = {**more, **wanted}
    assert matches(wanted, actual)
    assert matches({"$exact": wanted}, actual) == (actual.keys() == wanted.keys())


@given(JSON, JSON)
def test_not_is_the_opposite_and_nothing_raises(expected: Any, actual: Any) -> None:
    assert matches({"$not": expected}, actual) != matches(expected, actual)


@given(JSON, JSON)
def test_without_a_mismatch_it_matches(expected: Any, actual: Any) -> None:
    assert matches(expected, actual) == (mismatches(expected, actual) == [])


@given(st.lists(JSON, max_size=5).flatmap(lambda items: st.tuples(st.just(items), st.permutations(items))))
def test_unordered_matches_every_permutation(lists: tuple[list[Any], list[Any]]) -> None:
    items, shuffled = lists
    assert matches({"$unordered": items}, shuffled)


@given(st.lists(st.lists(st.integers(0, 4), unique=True, max_size=5), max_size=5))
def test_the_assignment_is_as_large_as_the_best_that_exists(edges: list[list[int]]) -> None:
    found = maximum_matching(edges)
    taken = [right for right in found if right is not None]
    assert len(taken) == len(set(taken))
    assert all(right is None or right in edges[left] for left, right in enumerate(found))
    choices = itertools.product(*([None, *options] for options in edges))
    best = max(
        len(rights) for choice in choices if len(rights := [r for r in choice if r is not None]) == len(set(rights))
    )
    assert len(taken) == best


def test_a_long_chain_of_augmentations_does_not_exhaust_the_stack() -> None:
    size = 3000
    edges = [[n, n + 1] for n in range(size)] + [[0]]
    assert None not in maximum_matching(edges)


@pytest.mark.parametrize(
    ("expected", "actual", "reason"),
    [
        (750, 750.0, []),
        (True, 1, ["expected true (boolean), got 1 (integer)"]),
        (1, True, ["expected 1 (integer), got true (boolean)"]),
        (100, "100", ["expected 100 (integer), got '100' (string)"]),
        (0.1, 0.2, ["expected 0.1, got 0.2"]),
        ("a", "A", ["expected 'a', got 'A'"]),
        (None, None, []),
        (None, "x", ["expected null, got 'x' (string)"]),
        (None, MISSING, ["expected null, got nothing"]),
        ({"a": None}, {}, ["a: expected null, got nothing"]),
        ({}, {"a": 1}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2, "c": 3}}, ["a.b: expected 1, got 2"]),
        ({"a": 1}, [1], ['expected {"a":1} (object), got [1] (array)']),
        ([1, 2], [1], ["expected 2 elements: [1,2], got [1] (1 element)"]),
        ([1, 2], [2, 1], ["[0]: expected 1, got 2", "[1]: expected 2, got 1"]),
        ([{"a": 1}], [{"a": 1, "b": 2}], []),
        ({"$any": True}, None, []),
        ({"k": {"$any": True}}, {}, ["k: expected any value, got nothing"]),
        ({"k": {"$absent": True}}, {}, []),
        ({"k": {"$absent": True}}, {"k": None}, ["k: expected nothing, got null"]),
        ({"k": {"$not": "x"}}, {}, []),
        ({"$not": "x"}, "x", ["expected anything but 'x', got 'x'"]),
        ({"$one_of": [1, "a"]}, "a", []),
        ({"$one_of": [1, "a"]}, "b", ["expected one of 1, 'a', got 'b'"]),
        ({"$regex": "b+"}, "abba", []),
        ({"$regex": "^b"}, "abba", ["expected text matching '^b', got 'abba'"]),
        ({"$regex": "1"}, 1, ["expected text matching '1', got 1 (integer)"]),
        ({"$contains": "lim"}, "over the limit", []),
        ({"$contains": "Lim"}, "limit", ["expected something containing 'Lim', got 'limit'"]),
        ({"$contains": {"id": 1}}, [{"id": 2}, {"id": 1, "x": 0}], []),
        ({"$contains": ["a", "b"]}, ["b", "c", "a"], []),
        ({"$contains": ["a", "a"]}, ["a"], ["expected something containing 'a' and 'a', got [\"a\"]"]),
        ({"$contains": "a"}, 1, ["expected something containing 'a', got 1 (integer)"]),
        ({"$unordered": [1, 2]}, [2, 1, 1], ["expected [1,2] in any order, got [2,1,1]"]),
        ({"$gt": 500}, 500, ["expected a number above 500, got 500"]),
        ({"$gte": 500, "$lt": 501}, 500.5, []),
        ({"$gte": 500, "$lt": 501}, 501, ["expected a number below 501, got 501"]),
        ({"$lte": 5}, "4", ["expected a number of at most 5, got '4' (string)"]),
        ({"$gt": 0}, True, ["expected a number above 0, got true (boolean)"]),
        ({"$approx": {"value": 3.04, "tolerance": 0.1}}, 3.14, []),
        ({"$approx": {"value": 3, "tolerance": 0.1}}, 3.2, ["expected 3 within 0.1, got 3.2"]),
        ({"$type": "integer"}, 3.0, []),
        ({"$type": "number"}, 3, []),
        ({"$type": "integer"}, True, ["expected a value of type integer, got true (boolean)"]),
        ({"$type": "null"}, None, []),
        ({"k": {"$type": "null"}}, {}, ["k: expected a value of type null, got nothing"]),
        ({"$exact": {"a": {"b": 1}}}, {"a": {"b": 1, "c": 2}}, ["a.c: expected no such key, got 2"]),
        ({"$exact": {"a": {"$any": True}}}, {"a": 1}, []),
        ({"$folded": "Grüße  AN"}, "grüsse an", []),
        ({"$folded": {"$contains": "ORDER"}}, "my order", []),
        ({"$folded": "a"}, "b", ["expected 'a' in any case, got 'b'"]),
        ({"$number_text": 1000}, "1,000.00", []),
        ({"$number_text": {"$gt": 5}}, "6", []),
        ({"$number_text": 100}, "abc", ["expected text that reads as a number (100), got 'abc' (string)"]),
        ({"$number_text": 100}, "101", ["expected 100, got 101"]),
    ],
)
def test_matching_rules(expected: Any, actual: Any, reason: list[str]) -> None:
    assert why(expected, actual) == reason


KINDS = ("float", "decimal", "bytes", "set", "datetime", "dataclass", "mapping", "object", "cycle", "integer", "any")
ODD = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.fixed_dictionaries({"$type": st.sampled_from(KINDS) | inner, "value": inner | inner.map(json.dumps)})
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=10,
)
MATCHERS = (
    SCALARS
    | st.sampled_from([{"$any": True}, {"$type": "object"}, {"$contains": 1}, {"$unordered": [1]}, {"$gt": 1}])
    | st.sampled_from(
        [{"$regex": "x"}, {"$folded": "x"}, {"$number_text": 1}, {"$approx": {"value": 1, "tolerance": 1}}]
    )
)


@pytest.mark.parametrize("held", [{"$type": None, "value": None}, {"$foo": 1}, {"$gt": "x"}])
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_mark_holds_is_refused_where_comparing_it_would_raise(kind: str, held: Any) -> None:
    for value in (held, json.dumps([held]), f"Order {json.dumps({'a': held})}", json.dumps([["a", held]])):
        mark = {"$type": kind, "value": value}
        if problem_with_matcher(mark) is None:
            why({"a": mark}, {"a": []})  # raises nothing
    unread = {"$type": "float", "value": held}
    assert problem_with_matcher(unread) is not None


@given(MATCHERS | ODD, ODD)
@example({"$type": "float", "value": {"$type": None, "value": None}}, {})
def test_data_that_looks_like_a_mark_raises_nothing(matcher: Any, data: Any) -> None:
    if problem_with_matcher(matcher) is None:
        why(matcher, data)
        why(matcher, to_json(data))
        why({"outcome": matcher}, {"outcome": to_json(data)})


@pytest.mark.parametrize(
    "data",
    [
        {"$type": "mapping", "value": 3},
        {"$type": "set", "value": [1, 2]},
        {"$type": "set", "value": "{}"},
        {"$type": "dataclass", "value": "x 3"},
        {"$type": [], "value": 1},
        {"$type": "mapping", "value": '[["a", 1]]'},
        {"$type": "mapping", "value": {"$type": "mapping", "value": 3}},
    ],
)
def test_what_only_looks_like_a_mark_is_a_mapping_like_any_other(data: Any) -> None:
    encoded = to_json({"status": data})
    assert why({"status": {"value": data["value"]}}, encoded) == []
    assert why({"status": {"$type": "object"}}, encoded) == []
    (reason,) = why({"status": "issued"}, encoded)
    assert reason.startswith("status: expected 'issued' (string), got {")
    assert reason.endswith("(object)")


@pytest.mark.parametrize("matcher", [1, {"$gt": 0}, {"$lte": 0}, {"$approx": {"value": 0, "tolerance": 9}}, math.nan])
def test_nan_matches_nothing_and_raises_nothing(matcher: Any) -> None:
    for nan in (math.nan, to_json(math.nan), Decimal("NaN"), Decimal("sNaN")):
        assert not matches(matcher, nan)
    assert matches({"$gt": 5}, to_json(math.inf))
    assert matches(to_json(math.nan), to_json(math.nan))


class Order(BaseModel):
    id: str
    total: Decimal


def test_values_that_json_lacks_match_by_what_they_mean() -> None:
    encoded = to_json({"total": Decimal("0.10"), "tags": {"b", "a"}, "day": datetime.date(2026, 3, 1), "raw": b"ab"})
    assert matches({"total": 0.1, "tags": ["a", "b"], "day": "2026-03-01"}, encoded)
    assert matches(encoded, encoded)
    assert why({"total": "0.10"}, encoded) == ["total: expected '0.10' (string), got 0.10 (number)"]
    assert matches({"id": "O-1", "total": {"$lt": 1}}, to_json(Order(id="O-1", total=Decimal("0.5"))))
    assert matches({"total": 0.5}, Order(id="O-1", total=Decimal("0.5")))


def test_an_encoded_value_that_cannot_be_read_is_a_mapping() -> None:
    assert not matches(1, {"$type": "decimal", "value": "one"})


def test_references_to_the_input_are_resolved_before_matching() -> None:
    data = {"user_id": "customer-1042", "orders": [{"id": "O-100"}]}
    assert matches(
        {"user": "$input.user_id", "order": "$input.orders[0].id"},
        {"user": "customer-1042", "order": "O-100"},
        input=data,
    )
    assert why({"user": "$input.user_id"}, {"user": "x"}, input=data) == ["user: expected 'customer-1042', got 'x'"]
    assert resolve_input(["$input", "$input.nope", "$inputs", "$input.orders.0.id"], "text") == [
        "text",
        None,
        "$inputs",
        None,
    ]
    assert missing_references({"a": ["$input.nope", "$input.user_id"]}, data) == ["$input.nope"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("a.b[0].c", 1),
        ("a.b.0.c", 1),
        ("a.b[-1].c", 1),
        ("x.y", 2),
        ("a.b[1]", MISSING),
        ("a.nope", MISSING),
        ("a.b.c", MISSING),
        ("n", None),
    ],
)
def test_paths_lead_to_values(path: str, value: Any) -> None:
    assert lookup_path({"a": {"b": [{"c": 1}]}, "x.y": 2, "n": None}, path) == value


@pytest.mark.parametrize(
    ("matcher", "problem"),
    [
        ({"$gt": 1, "$lt": 2}, None),
        ({"a": [{"$regex": "x"}]}, None),
        ({"$gt": "$input.limit"}, None),
        ({"$type": "decimal", "value": "1.5"}, None),
        ({"$contians": 1}, "unknown operator '$contians'; did you mean '$contains'?"),
        ({"a": {"$gt": "5"}}, "$gt takes a number, not '5' (string)"),
        ({"$any": False}, "$any takes true, not false (boolean)"),
        ({"$one_of": []}, "$one_of takes a list of at least one"),
        ({"$one_of": [{"$lt": None}]}, "$lt takes a number, not null"),
        ({"$approx": {"value": 1}}, '$approx takes {value: number, tolerance: number}, not {"value":1}'),
        ({"$approx": {"value": 1, "tolerance": -1}}, "$approx takes a tolerance of 0 or more, not -1"),
        (
            {"$type": "text"},
            "$type takes one of integer, number, string, boolean, array, object, null, not 'text' (string)",
        ),
        ({"$gt": 1, "id": 2}, "operators and plain keys cannot stand in one mapping: $gt, id"),
        ({"$not": {"$regex": 5}}, "$regex takes a text, not 5 (integer)"),
    ],
)
def test_wrong_matchers_are_named(matcher: Any, problem: str | None) -> None:
    assert problem_with_matcher(matcher) == problem


def test_a_pattern_that_is_none_or_may_never_end_is_refused() -> None:
    assert "is not a regular expression" in str(problem_with_matcher({"$regex": "("}))
    assert "may never end" in str(problem_with_matcher({"$regex": "^(a+)+$"}))


def test_a_wrong_matcher_raises_when_it_is_used_all_the_same() -> None:
    with pytest.raises(ValueError, match="unknown operator"):
        mismatches({"$nope": 1}, 1)


def test_bl_010_numbers_compare_by_value() -> None:
    wanted = {"n": 1, "on": True}
    assert why(wanted, {"n": 1.0, "on": True}) == []
    assert why(wanted, {"n": True, "on": True}) == ["n: expected 1 (integer), got true (boolean)"]
    assert why(wanted, {"n": "1", "on": True}) == ["n: expected 1 (integer), got '1' (string)"]
    assert why(wanted, {"n": 1, "on": 1}) == ["on: expected true (boolean), got 1 (integer)"]


def test_bl_012_subset_is_deep_and_lists_are_whole() -> None:
    call = {"filter": {"city": "Rome", "page": 1}, "trace": "x"}
    assert matches({"filter": {"city": "Rome"}}, call)
    assert not matches({"$exact": {"filter": {"city": "Rome"}}}, call)
    assert not matches({"tags": ["a"]}, {"tags": ["a", "b"]})
    assert not matches({"$exact": {"tags": ["a"]}}, {"tags": ["a", "b"]})
    assert matches({"tags": {"$contains": "a"}}, {"tags": ["a", "b"]})


def test_every_operator_says_what_it_takes() -> None:
    assert list(CHECKS) == list(OPERATORS)
