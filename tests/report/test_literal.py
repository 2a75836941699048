from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.report.literal import inline, lines, literal, value_text

any_text = st.text(st.characters(exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[2J", "\\x1b[2J"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("750\u00a0€", "750\u00a0€"),
        ("日本 café", "日本 café"),
        ("\ud835 ok", "\\ud835 ok"),
        ("[bold red]hi[/]", "[bold red]hi[/]"),
    ],
)
def test_text_is_literal(text, shown):
    assert literal(text) == shown


@given(any_text)
def test_nothing_that_steers_a_terminal_is_left(text):
    for line in [literal(text), inline(text), *lines(text)]:
        assert not {unicodedata.category(c) for c in line} & {"Cc", "Cf", "Cs", "Zl", "Zp"}


def test_line_ends_are_kept_and_lone_returns_shown():
    assert lines("a\r\nb\n\tc\rd") == ["a", "b", "    c\\rd"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)


@given(json_values)
def test_inline_values_are_one_literal_line(value):
    assert "\n" not in inline(value)


@given(st.lists(st.integers() | st.text("abc é[]"), max_size=5))
def test_plain_values_stay_readable_json(value):
    assert json.loads(inline(value)) == value


def test_long_values_are_cut_with_their_size():
    assert inline("x" * 50_000_000).endswith('truncated, 50.0 MB"')
    assert inline(["x" * 5000]).endswith("truncated, 5.0 kB")
    assert value_text({"a": 1}) == '{"a":1}'
