"""File names made from ids: different ids never share one, on any disk."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seatrial.core.ids import CASE_ID, file_name, normalised_id, problem_with_id, readable

any_text = st.text(st.characters())
near = st.text(st.sampled_from("aA./%:é \ud835con12"), max_size=12)


def impostor(risky: str) -> str:
    """An id spelt like the file name of a risky one, if the digest stood right behind a plain name."""
    digest = hashlib.sha256(risky.encode()).hexdigest()
    return f"{risky}%{digest}"


@given(any_text | near, any_text | near)
@example("41.", impostor("41."))
@example("A" * 300, "A" * 301)
@example("con", "CON")
@example("", "%")
def test_different_ids_have_different_file_names(one: str, other: str) -> None:
    if one != other:
        assert file_name(one).casefold() != file_name(other).casefold()


plain = st.text(st.sampled_from("abcxyz019_-"), min_size=1, max_size=20)


@given(any_text | near, plain)
def test_only_names_with_a_digest_hold_two_percent_signs(identifier: str, harmless: str) -> None:
    with_digest = file_name(f"{identifier}.")
    assert with_digest.startswith("%%")
    assert with_digest.count("%%") == 2
    assert "%%" not in file_name(f"x{harmless}{identifier[:8]}%%x")


@given(any_text)
def test_a_file_name_is_safe_everywhere(identifier: str) -> None:
    name = file_name(identifier)
    assert name
    assert len(name.encode()) <= 200
    assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789_.-%")
    assert not name.startswith(".")
    assert not name.endswith((".", " "))
    assert name.partition(".")[0] not in ("con", "prn", "aux", "nul", "com1", "lpt9")


def test_bl_106_ids_that_end_alike_have_their_own_files() -> None:
    names = {file_name(identifier).casefold() for identifier in ("x/one", "y/one", "one", "ONE")}
    assert len(names) == 4


@pytest.mark.parametrize("case_id", ["a", "refund_requires_supervisor_001", "x/one", "A-1.b", "a" * 128])
def test_ordinary_ids_are_fine(case_id: str) -> None:
    assert problem_with_id(case_id) is None


@pytest.mark.parametrize(
    "case_id", ["", ".", "..", "a//b", "a/../b", "a/./b", "a/", "/a", "-a", "a b", "é", "a\n", "a" * 129, "a[b=1]"]
)
def test_ids_that_could_mislead_are_refused_with_a_reason(case_id: str) -> None:
    assert problem_with_id(case_id)


@given(st.from_regex(CASE_ID, fullmatch=True))
def test_an_id_that_is_fine_is_its_own_normal_form(case_id: str) -> None:
    assert normalised_id(case_id) == case_id


def test_look_alikes_are_one_id() -> None:
    assert normalised_id(" \uff41 ") == normalised_id("a")
    assert normalised_id("e\u0301") == normalised_id("\u00e9")


@given(any_text)
def test_readable_text_stands_on_one_line_without_control_characters(text: str) -> None:
    shown = readable(text)
    assert shown.isprintable() or shown == ""
    shown.encode("utf-8")
