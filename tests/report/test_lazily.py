"""Rows that are made as they are looked at are written as if they had been there all along."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from seatrial.report.files import json_parts, json_text
from seatrial.report.lazily import Lazily, whole

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(), PLAIN, max_size=3), max_size=70)


def lazily(rows: list[dict[str, Any]], made: list[int] | None = None) -> Lazily:
    def make(place: int) -> dict[str, Any]:
        if made is not None:
            made.append(place)
        return rows[place]

    return Lazily(range(len(rows)), make)


@given(ROWS, st.dictionaries(st.text(), PLAIN, max_size=3), st.booleans())
def test_the_text_is_that_of_the_data_with_all_its_rows(rows: list[Any], beside: dict[str, Any], last: bool) -> None:
    inner = {**beside, "rows": lazily(rows)} if last else {"rows": lazily(rows), **beside}
    data = {
        "cases": Lazily([inner, {"flat": 1}, inner], lambda row: row),
        "times": {"trials": lazily(rows)},
        "n": 1,
    }
    assert json_text(data) == json_text(whole(data))
    assert json.loads(json_text(data)) == whole(data)


def test_rows_are_made_as_they_are_written_and_not_kept() -> None:
    made: list[int] = []
    parts = json_parts({"rows": lazily([{"n": n} for n in range(1_000)], made)})
    assert made == []
    next(part for part in parts if '"n": 100' in part)
    assert 100 <= len(made) < 200


def test_a_row_is_had_by_its_number_and_several_by_a_slice() -> None:
    rows = lazily([{"n": n} for n in range(3)])
    assert (len(rows), rows[1], rows[-2:]) == (3, {"n": 1}, [{"n": 1}, {"n": 2}])
