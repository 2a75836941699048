"""A table of figures says of each whether it meets its target, beside what others need."""

from __future__ import annotations

import json

import pytest
from benchmarks.page import HEADING, with_results
from benchmarks.profiles import Hot
from benchmarks.table import OURS, Cell, Goal, Row, machine, paired_ratio, row_data, row_problem, table, tally
from hypothesis import given
from hypothesis import strategies as st

FACTS = {
    "when": "2026-01-02T03:04:05+00:00",
    "size": "full",
    "cores": 2,
    "python": "3.11.7",
    "system": "Linux x86_64",
    "load": [1.0, 2.5],
    "seconds": 61,
}
HOT = Hot("seatrial/runner/trial.py:7 run", 0.25, 0.5, "s", 1_000)


def row(*ours: float, at_most: float = 1.0, reason: str = "", **others: Cell) -> Row:
    cells = {OURS: Cell(ours, reason=reason), **{name.replace("_", "-"): cell for name, cell in others.items()}}
    return Row("starting", "s", cells, Goal(at_most))


@pytest.mark.parametrize(
    ("ours", "verdict"), [((0.5, 1.0, 9.0), "met"), ((1.0,), "met"), ((1.001,), "MISSED"), ((), "FAILED")]
)
def test_the_median_decides_and_the_target_itself_is_met(ours: tuple[float, ...], verdict: str) -> None:
    assert row(*ours).verdict == verdict


def test_a_ratio_is_the_median_of_pairs_not_the_ratio_of_medians() -> None:
    assert paired_ratio((1.0, 20.0, 3.0), (1.0, 10.0, 1.0)) == 2.0
    assert paired_ratio((1.0, 8.0), (2.0,)) == 0.5


def test_no_ratio_without_a_pair_or_by_nothing() -> None:
    assert paired_ratio((1.0,), ()) is None
    assert paired_ratio((1.0,), (0.0,)) is None


@given(st.lists(st.floats(0.001, 1e6), min_size=1), st.floats(0.001, 1e3))
def test_a_machine_that_is_slower_for_both_changes_no_ratio(values: list[float], slower: float) -> None:
    fast = paired_ratio(values, values[::-1])
    slow = paired_ratio([value * slower for value in values], [value * slower for value in values[::-1]])
    assert slow == pytest.approx(fast)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (1234.5, "1,234"), (12.34, "12.3"), (1.05, "1.05"), (0.0313, "0.031"), (0.00123, "0.00123")],
)
def test_numbers_keep_what_tells_them_from_their_targets(value: float, text: str) -> None:
    assert Cell((value,)).text() == text


def test_a_row_shows_target_verdict_ratios_and_why_a_figure_is_missing() -> None:
    text = table([row(0.2, floor=Cell((0.1,)), inspect_ai=Cell(reason="not installed (no network)"))])
    head, _, line = text.splitlines()
    assert head.split()[:2] == ["what", OURS]
    assert line.split("  ")[0] == "starting, s"
    for part in ("0.2", "<= 1", "met", "0.1 (2x)", "not installed (no network)"):
        assert part in line


def test_an_own_target_is_marked() -> None:
    assert Goal(0.5, own=True).text() == "<= 0.5*"


def test_targets_that_were_set_here_are_counted_apart() -> None:
    assert tally([("met", False), ("MISSED", False)]) == "1 of 2 targets met."
    verdicts = [("met", False), ("met", True), ("FAILED", True)]
    assert tally(verdicts) == "1 of 1 targets met, and 1 of 2 of those marked *."


def test_a_share_of_the_work_has_a_share_of_the_time_and_the_price_of_a_run() -> None:
    assert Goal.of_share(0.3, 1.0) == Goal(0.3)
    assert Goal.of_share(0.3, 0.5) == Goal(0.15 + 0.03, own=True)
    assert Goal.of_share(15.0, 1.0, own=True) == Goal(15.0, own=True)


def test_a_missed_row_names_what_it_is_made_of() -> None:
    text = row_problem(row(2.0), [HOT])
    assert text.splitlines()[0] == "MISSED starting: 2 s, target <= 1"
    assert text.splitlines()[1].split() == ["25%", "0.500", "s", "1,000", "x", "seatrial/runner/trial.py:7", "run"]


def test_a_row_without_our_figure_says_why() -> None:
    assert row_problem(row(reason="it raised"), []) == "FAILED starting: it raised"


def test_every_value_goes_into_the_data() -> None:
    data = json.loads(json.dumps(row_data(row(2.0, 4.0, floor=Cell((1.0, 1.0))), [HOT])))
    assert data["cells"][OURS] == {"value": 3.0, "values": [2.0, 4.0], "reason": "", "shown": ""}
    assert (data["verdict"], data["ratios"]) == ("MISSED", {"floor": 3.0})
    assert data["profile"][0]["place"] == HOT.place


def test_the_page_gets_the_last_table_and_keeps_what_stands_before() -> None:
    data = {**FACTS, "rows": [row_data(row(2.0, floor=Cell((1.0,))), [HOT]), row_data(row(0.5))]}
    page = with_results(f"# Speed\n\nText.\n\n{HEADING}\n\nold\n", data)
    assert page.startswith("# Speed\n\nText.\n\n## Last measured\n\n1 of 2 targets met.")
    assert "| starting, s | 2 | <= 1 | **MISSED** | 1 (2x) | - | - |" in page
    assert "| 25% | 0.5 s | 1,000 | `seatrial/runner/trial.py:7 run` |" in page
    assert "old" not in page
    assert with_results(page, data) == page


def test_the_page_takes_no_results_of_smaller_sizes() -> None:
    with pytest.raises(ValueError, match="size quick"):
        with_results(f"{HEADING}\n", {**FACTS, "size": "quick", "rows": []})


def test_the_machine_is_told_in_numbers() -> None:
    assert machine(FACTS) == (
        "2026-01-02T03:04:05+00:00, 2 cores, Python 3.11.7, Linux x86_64, load average 1.0 2.5, 61 s in all."
    )


def test_a_machine_that_was_busy_is_said_to_have_been() -> None:
    assert machine({**FACTS, "load": [0.4, 3.1]}).endswith("busy with other things: read the ratios.")
    assert "load average unknown" in machine({**FACTS, "load": []})
