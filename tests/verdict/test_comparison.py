from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import case, failing, invalid, passing, run
from seatrial.errors import ExitCode
from seatrial.verdict.comparison import Change, compare
from seatrial.verdict.side_by_side import SideBySide, side_by_side
from seatrial.verdict.sides import Side, side_of_run

MAKERS = {"p": passing, "f": failing, "i": invalid}


def side(label: str = "x", *, gate: bool = True, **patterns: str) -> Side:
    """Cases by id with a letter a trial: p passed, f failed, i invalid."""
    cases = [_case(name, pattern) for name, pattern in patterns.items()]
    trials = [
        MAKERS[letter](name, number)
        for name, pattern in patterns.items()
        for number, letter in enumerate(pattern, start=1)
    ]
    return side_of_run(run(gating={"default": gate}), cases, trials, label)


def _case(name: str, pattern: str):
    risk = "critical" if name.startswith("critical") else "medium"
    return case(name, len(pattern), risk=risk, deterministic=name.startswith("fixed_input"))


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("ppp", "fff", Change.BROKE),
        ("ppp", "ppf", Change.BROKE),
        ("ppf", "ppp", Change.FIXED),
        ("pff", "fff", Change.WORSE),
        ("fff", "pff", Change.BETTER),
        ("ppp", "ppp", Change.SAME),
        ("pf", "ppff", Change.SAME),
        ("ppp", "ppi", Change.SAME),  # nothing certain was lost
        ("ppp", "iii", Change.INCOMPLETE),
        ("i", "p", Change.INCOMPLETE),
    ],
)
def test_words_for_what_became_of_a_case(before, after, change):
    (row,) = compare(side(a=before), side(a=after)).cases
    assert row.change is change


def test_new_removed_and_edited_cases_are_listed_apart():
    base, cand = side(gone="p", stays="p"), side(stays="p", fresh="p")
    changes = {row.case_id: row.change for row in compare(base, cand).cases}
    assert changes == {"gone": Change.REMOVED, "stays": Change.SAME, "fresh": Change.NEW}


def test_a_case_with_another_digest_was_edited_and_decides_nothing():
    before = side_of_run(run(), [case("a", input="one")], [passing("a")])
    after = side_of_run(run(), [case("a", input="two")], [failing("a")])
    found = compare(before, after)
    assert found.cases[0].change is Change.EDITED
    assert found.exit_code() is ExitCode.INCOMPLETE  # nothing in common


def test_both_reasons_and_both_sides_trials_are_kept():
    (row,) = compare(side(a="p"), side(a="f")).cases
    assert row.baseline.reason == ""
    assert row.candidate.reason == "answer: expected 4, got 5"
    assert [record.status for record in row.candidate.records] == ["failed"]


@pytest.mark.parametrize(
    ("before", "after", "code", "strict"),
    [
        ({"a": "ppp"}, {"a": "ppp"}, ExitCode.PASS, ExitCode.PASS),
        ({"a": "ppp"}, {"a": "ppf"}, ExitCode.REVIEW, ExitCode.FAILED),
        ({"critical_a": "ppp"}, {"critical_a": "ppf"}, ExitCode.FAILED, ExitCode.FAILED),
        ({"fixed_input_a": "p"}, {"fixed_input_a": "f"}, ExitCode.FAILED, ExitCode.FAILED),
        ({"a": "pff"}, {"a": "fff"}, ExitCode.PASS, ExitCode.PASS),
        ({"a": "fff"}, {"a": "ppp"}, ExitCode.PASS, ExitCode.PASS),
        ({"a": "p", "b": "p"}, {"a": "p", "b": "i"}, ExitCode.INCOMPLETE, ExitCode.INCOMPLETE),
        ({"a": "p", "b": "p"}, {"a": "f", "b": "i"}, ExitCode.INCOMPLETE, ExitCode.FAILED),
        ({"critical_a": "p", "b": "p"}, {"critical_a": "f", "b": "i"}, ExitCode.FAILED, ExitCode.FAILED),
        ({"a": "p"}, {"b": "p"}, ExitCode.INCOMPLETE, ExitCode.INCOMPLETE),
        ({"a": "p"}, {"a": "p", "b": "f"}, ExitCode.PASS, ExitCode.PASS),
        ({"a": "p", "b": "p"}, {"a": "p"}, ExitCode.INCOMPLETE, ExitCode.INCOMPLETE),
        ({"a": "p", "b": "p"}, {"a": "f"}, ExitCode.INCOMPLETE, ExitCode.FAILED),
        ({}, {}, ExitCode.INCOMPLETE, ExitCode.INCOMPLETE),
    ],
)
def test_exit_codes_of_a_comparison(before, after, code, strict):
    found = compare(side(**before), side(**after))
    assert (found.exit_code(), found.exit_code(strict=True)) == (code, strict)


def test_suites_that_do_not_gate_decide_nothing_unless_strict():
    found = compare(side(gate=False, critical_a="p"), side(gate=False, critical_a="f"))
    assert found.cases[0].change is Change.BROKE
    assert (found.exit_code(), found.exit_code(strict=True)) == (ExitCode.PASS, ExitCode.FAILED)
    assert compare(side(gate=False, gone="p", a="p"), side(gate=False, a="p")).exit_code() is ExitCode.PASS


def test_bl_082_sides_of_different_cases_do_not_compare_and_are_named():
    found = compare(side(hard1="f", hard2="f"), side(easy1="p"))
    assert {row.case_id: row.change for row in found.cases} == {
        "hard1": Change.REMOVED,
        "hard2": Change.REMOVED,
        "easy1": Change.NEW,
    }
    assert found.in_common == 0
    assert found.exit_code() is ExitCode.INCOMPLETE
    assert side_by_side(found) == SideBySide((), (), (), ())  # no mean of one set beside a mean of another


def test_an_agent_declared_deterministic_on_both_sides_makes_a_flip_certain():
    sides = [side_of_run(run(agent={"deterministic": True}), [case("a")], [make("a")]) for make in (passing, failing)]
    assert compare(*sides).exit_code() is ExitCode.FAILED
    assert compare(side(a="p"), sides[1]).exit_code() is ExitCode.REVIEW


def test_the_most_urgent_changes_come_first():
    base, cand = side(s="p", f="f", b="p", critical_b="p"), side(s="p", f="p", b="f", critical_b="f")
    assert [row.case_id for row in compare(base, cand).cases] == ["critical_b", "b", "f", "s"]


patterns = st.dictionaries(st.sampled_from("abcdef"), st.text("pfi", min_size=1, max_size=4), max_size=6)


@given(patterns, patterns)
def test_swapping_the_sides_swaps_the_words(before, after):
    swapped = {
        Change.BROKE: Change.FIXED,
        Change.FIXED: Change.BROKE,
        Change.WORSE: Change.BETTER,
        Change.BETTER: Change.WORSE,
        Change.NEW: Change.REMOVED,
        Change.REMOVED: Change.NEW,
    }
    there = {row.case_id: row.change for row in compare(side(**before), side(**after)).cases}
    back = {row.case_id: row.change for row in compare(side(**after), side(**before)).cases}
    assert back == {name: swapped.get(change, change) for name, change in there.items()}


@given(patterns)
def test_a_side_compared_with_itself_never_breaks(sides):
    found = compare(side(**sides), side(**sides))
    assert {row.change for row in found.cases} <= {Change.SAME, Change.INCOMPLETE}
