"""What a cassette says of the nearest recorded request, and how recordings are replaced."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from seatrial.core.cassette import Cassette, Exchange, RecordedRequest, first_difference

json_data = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", min_size=1, max_size=2), inner, max_size=3)
    ),
    max_leaves=8,
)


def request(body: Any = None, **fields: Any) -> RecordedRequest:
    given = {"upstream": "OPENAI_BASE_URL", "method": "POST", "path": "/chat/completions", "body": body}
    return RecordedRequest(**given | fields)


@pytest.mark.parametrize(
    ("recorded", "now", "said"),
    [
        ({"a": 1}, {"a": 2}, "body.a: recorded 1, now 2"),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, 'body.a[1].b: recorded "x", now "y"'),
        ({"a": [1]}, {"a": [1, 2]}, "body.a[1]: recorded nothing, now 2"),
        ({"a": 1, "b": 2}, {"a": 1}, "body.b: recorded 2, now nothing"),
        ({"a": 1, "b": 2}, {"a": 3, "b": 4}, "body.a: recorded 1, now 3 (and 1 more differences)"),
        ("text", {"a": 1}, 'body: recorded "text", now {"a":1}'),
        ({"a": "x" * 500}, {"a": "y"}, 'body.a: recorded "' + "x" * 119 + ' ... truncated, 0.5 kB, now "y"'),
    ],
)
def test_the_first_difference_is_named_by_its_place(recorded: Any, now: Any, said: str) -> None:
    assert first_difference(request(now), [request(recorded)]) == said


def test_the_nearest_request_is_the_one_with_the_fewest_differences_at_the_same_endpoint() -> None:
    recorded = [
        request({"a": 1, "b": 1}, path="/responses"),
        request({"a": 9, "b": 9, "c": 9}),
        request({"a": 1, "b": 2, "c": 3}),
    ]
    assert first_difference(request({"a": 1, "b": 2, "c": 4}), recorded) == "body.c: recorded 3, now 4"


@given(json_data, json_data)
def test_requests_that_are_not_equal_differ_somewhere(one: Any, other: Any) -> None:
    assume(request(one) != request(other))
    assert " recorded " in first_difference(request(one), [request(other)])


@given(st.lists(st.tuples(st.integers(1, 3), st.sampled_from(["agent", "graders"]), st.integers(0, 3)), max_size=8))
def test_a_take_replaces_what_stood_at_its_position_and_after_it(writes: Any) -> None:
    cassette, expected = Cassette(build="b", agent="a", case="c"), dict[tuple[int, str], list[Any]]()
    for number, (trial, part, position) in enumerate(writes):
        take = (Exchange(request=request(number)),)
        cassette = cassette.with_take(trial, part, position, take)
        takes = expected.setdefault((trial, part), [])[:position]
        expected[trial, part] = [*takes, *[()] * (position - len(takes)), take]
    assert {key: list(getattr(cassette.of(key[0]), key[1])) for key in expected} == expected
    assert [found.trial for found in cassette.trials] == sorted({trial for trial, _, _ in writes})
