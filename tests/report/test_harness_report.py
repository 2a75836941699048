from __future__ import annotations

from seatrial.report.harness_report import harness_lines
from seatrial.verdict.harness_results import HarnessResult


def test_lines_read_like_a_test_report():
    results = [
        HarnessResult(name="median", passed=True, seconds=0.012, detail="3.5"),
        HarnessResult(name="category", passed=True, seconds=0.0),
        HarnessResult(name="deadline", passed=True),
        HarnessResult(name="empty input", passed=False, seconds=0.001, detail="raised ValueError: no numbers"),
    ]
    assert harness_lines(results) == [
        "3/4 passed",
        "[PASS] median (0.01 s) - 3.5",
        "[PASS] category (0.00 s)",
        "[PASS] deadline",
        "[FAIL] empty input (0.00 s) - raised ValueError: no numbers",
    ]


def test_a_check_that_broke_is_counted_apart():
    results = [HarnessResult(name="a", passed=None, detail="the check raised KeyError: 'x'")]
    assert harness_lines(results) == ["0/1 passed, 1 invalid", "[INVALID] a - the check raised KeyError: 'x'"]


def test_names_and_details_are_literal_and_on_one_line():
    (_, line) = harness_lines([HarnessResult(name="a\x1b[2J", passed=False, detail="two\nlines")])
    assert line == "[FAIL] a\\x1b[2J - two\\nlines"
