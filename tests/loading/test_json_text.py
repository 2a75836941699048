from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import InputError
from seatrial.loading.json_text import read_json, read_json_lines
from seatrial.loading.located import plain

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_json_reads_as_the_standard_reader_reads_it(data: Any, indent: Any, ascii_only: bool) -> None:
    text = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    assert plain(read_json(text)) == data


@given(st.text('{}[]",:0123eE+-.truefalsn\\u \n', max_size=40))
def test_any_text_reads_as_the_standard_reader_reads_it_or_is_an_input_error(text: str) -> None:
    try:
        found = read_json(text)
    except InputError:
        return
    assert plain(found) == (json.loads(text) if text.strip() else None)


@pytest.mark.parametrize(
    ("text", "rule", "line", "column"),
    [
        ('{"a": 1,\n "b": 2,\n "a": 3}', "duplicate-key", 3, 2),
        ('{"a": 01}', "leading-zero", 1, 7),
        ('{"a": NaN}', "json-syntax", 1, 7),
        ('{"a": -Infinity}', "json-syntax", 1, 7),
        ('{"a": 1e999}', "not-finite", 1, 7),
        ('{"a": 1,}', "json-syntax", 1, 9),
        ("{'a': 1}", "json-syntax", 1, 2),
        ('{"a": 1 // no\n}', "json-syntax", 1, 9),
        ('{"a": "open}', "json-syntax", 1, 7),
        ('{"a": 1} x', "json-syntax", 1, 10),
        ('{"a"', "json-syntax", 1, 5),
        ("[1\n 2]", "json-syntax", 2, 2),
        ("[" * 200, "too-deep", 1, 101),
        ("9" * 5000, "number-too-long", 1, 1),
    ],
)
def test_what_is_no_strict_json_is_named_with_its_place(text: str, rule: str, line: int, column: int) -> None:
    with pytest.raises(InputError) as caught:
        read_json(text, "f.json")
    problem = caught.value.diagnostics[-1]
    assert (problem.rule, problem.line, problem.column) == (rule, line, column)


def test_json_lines_report_every_bad_line_and_pass_over_blank_ones() -> None:
    with pytest.raises(InputError) as caught:
        read_json_lines('{"a": 1}\n\n{"a": }\n{"a": 1, "a": 2}\n', "f.jsonl")
    assert [(problem.line, problem.rule) for problem in caught.value.diagnostics] == [
        (3, "json-syntax"),
        (4, "duplicate-key"),
    ]


def test_line_separators_inside_a_text_end_no_line() -> None:
    assert plain(read_json_lines('{"a": "x\u2028y"}\r\n{"a": "z"}')) == [{"a": "x\u2028y"}, {"a": "z"}]
