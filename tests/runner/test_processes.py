"""What a trial's process prints, as it comes in."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.runner.processes import _Prints


def logged(printed: bytes, at: list[int]) -> str:
    """The log of what came in pieces."""

    async def follow() -> str:
        prints = _Prints()
        ends = sorted({0, *(min(each, len(printed)) for each in at), len(printed)})
        for start, end in pairwise(ends):
            prints.data_received(printed[start:end])
        return prints.log.text

    return asyncio.run(follow())


@given(st.text(st.characters() | st.sampled_from("\ud800\udfff"), max_size=8), st.lists(st.integers(0, 20), max_size=4))
def test_any_text_is_logged_as_it_was_printed_in_whatever_pieces_it_comes(text: str, at: list[int]) -> None:
    assert logged(text.encode("utf-8", "surrogatepass"), at) == text


@pytest.mark.parametrize(
    ("printed", "text"), [(b"a\xffb", "a\ufffdb"), (b"\xed\xa0\x80\xed\xa0z", "\ud800\ufffd\ufffdz")]
)
def test_what_is_no_text_is_logged_as_replacement_characters(printed: bytes, text: str) -> None:
    assert logged(printed, []) == text
