from __future__ import annotations

import io
import unicodedata

import pytest
from rich.console import Console

from decisions import HOSTILE, decision, gate, hostile_decision, hostile_summary, typical_summary
from made import case, failing, grade, passing, run, tally
from seatrial.core.decision import UsedException
from seatrial.report.decision_view import print_decision
from seatrial.report.screen import console
from seatrial.report.summary import summary
from seatrial.verdict.comparison import compare
from seatrial.verdict.sides import side_of_run


def shown(found, width: int = 120, encoding: str = "utf-8", **how) -> str:
    raw = io.BytesIO()
    target = console(io.TextIOWrapper(raw, encoding=encoding, write_through=True, newline=""))
    target.width = width
    print_decision(target, found, **how)
    return raw.getvalue().decode(encoding)


BLOCKED = decision(
    "block",
    gate("safety.maximum_critical_failures", "block", 3, counts="3 of 40 trials", reason="3 > 0", cases=("a", "b")),
    gate("regression.minimum_pass_rate", "review", 0.9, 0.98, level="review", reason="below"),
    gate("regression.maximum_drop_from_baseline", "incomplete", None, 0.01, reason="no baseline"),
    gate("tools.minimum_tool_precision", "pass", 1, 0.95, counts="27 of 27"),
    gate("performance.maximum_cost_per_success_usd", "block", 0.3, 0.2, excepted=True, reason="dear"),
    gate("performance.maximum_p95_latency_ms", "pass", 812.3, 12000),
    gate("review.quality_score_drop_exceeds", "pass", None, 0.02, applies=False, reason="no judge"),
    baseline={"build_id": "old", "approver": "Ada", "approved": "2026-01-02T03:04:05Z", "expires": None},
    reasons=("safety.maximum_critical_failures: 3 > 0",),
)


def rows(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines()]


def test_the_builds_come_first():
    lines = shown(BLOCKED).splitlines()
    assert lines[:2] == [
        "candidate  new · run ids run-1",
        "baseline   old · approver Ada · approved 2026-01-02T03:04:05Z",
    ]
    assert shown(decision()).splitlines()[1] == "baseline   none"


def test_every_gate_has_figure_limit_and_verdict():
    found = rows(shown(BLOCKED))
    for row in (
        ["critical_failures", "3", "at", "most", "0", "BLOCK", "3", "of", "40", "trials"],
        ["pass_rate", "90", "%", "at", "least", "98", "%", "REVIEW"],
        ["drop_from_baseline", "–", "at", "most", "1", "point", "INCOMPLETE"],
        ["tool_precision", "100", "%", "at", "least", "95", "%", "pass", "27", "of", "27"],
        ["cost_per_success_usd", "0.3", "USD", "at", "most", "0.2", "USD", "block,", "excepted"],
        ["p95_latency_ms", "812", "ms", "at", "most", "12,000", "ms", "pass"],
        ["quality_score_drop", "–", "at", "most", "2", "points", "does", "not", "apply"],
    ):
        assert row in found


def test_why_tells_the_heaviest_first_and_what_an_exception_covers_last():
    text = shown(BLOCKED)
    told = text[text.index("\nWhy\n") :].splitlines()[2:7]
    assert told == [
        "  safety.maximum_critical_failures  3 > 0",
        "      a, b",
        "  regression.maximum_drop_from_baseline  no baseline",
        "  regression.minimum_pass_rate  below",
        "  performance.maximum_cost_per_success_usd  dear",
    ]


@pytest.mark.parametrize("verdict", ["pass", "block", "review", "incomplete"])
def test_the_verdict_is_the_last_line_with_its_reasons(verdict):
    text = shown(decision(verdict, reasons=("one", "two", "three", "four", "five")))
    assert text.splitlines()[-1] == f"{verdict.upper()}  one · two · three · and 2 more reasons"
    assert shown(decision(verdict, reasons=("one",)), verbosity=-1) == f"{verdict.upper()}  one\n"


def test_without_reasons_the_verdict_counts_the_gates_that_decide():
    assert shown(decision("pass", *BLOCKED.gates[3:])).splitlines()[-1] == "PASS  2 of 2 gates hold"


def test_figures_that_would_read_like_their_limit_get_more_digits():
    close = gate("regression.minimum_pass_rate", "block", 0.979999, 0.98)
    assert ["pass_rate", "97.9999", "%", "at", "least", "98", "%", "BLOCK"] in rows(shown(decision("block", close)))


def test_exceptions_say_whether_they_were_used():
    used = UsedException(target="case a", reason="known", approver="Ada", expires="2027-01-01", used=True)
    void = used.model_copy(update={"target": "gate x.y", "used": False, "note": "expired"})
    text = shown(decision(exceptions=(used, void)))
    assert "used      case a · known · by Ada · until 2027-01-01" in text
    assert "not used  gate x.y · known · by Ada · until 2027-01-01 · expired" in text


def test_new_edited_and_removed_cases_are_named():
    many = tuple(f"n{n}" for n in range(9))
    text = shown(decision(new=many, edited=("e",), removed=("r",)))
    assert "new      n0, n1, n2, n3, n4, n5 and 3 more; -v names all  held to absolute gates only" in text
    assert "removed  r  in the baseline, did not run" in text
    assert "n8" in shown(decision(new=many), verbosity=1)


def both_sides():
    cases = [case("a", 2), case("b", 2, suite="extra"), case("c", suite="extra")]

    def side(*passed: bool, cost: float):
        right = grade("required_tools", tallies={"required_tool_recall": tally(1, 1), "tool_f1": tally(0.5, 1)})
        wrong = grade("required_tools", "fail", tallies={"required_tool_recall": tally(0, 1), "tool_f1": tally(0, 1)})
        safe = grade("permissions", tallies={"critical_violations": tally(0, 1)})
        slots = [("a", 1), ("a", 2), ("b", 1), ("b", 2)]
        return [
            (passing if ok else failing)(name, n, grades=(right if ok else wrong, safe), cost_usd=cost, suite=suite)
            for (name, n), ok, suite in zip(slots, passed, ("default", "default", "extra", "extra"), strict=True)
        ]

    before, after = side(True, True, True, True, cost=0.1), side(True, False, True, True, cost=0.125)
    after.append(passing("c", suite="extra", cost_usd=0.125))
    data = summary(run(), cases, after)
    return data, compare(side_of_run(run(), cases[:2], before), side_of_run(run(), cases, after))


def test_suites_stand_beside_the_baseline_over_the_cases_in_common():
    data, comparison = both_sides()
    found = rows(shown(decision(), summary=data, comparison=comparison))
    assert ["default", "0/1", "50.0", "%", "100", "%", "-50.0", "points"] in found
    assert ["extra", "2/2", "100", "%", "100", "%", "0", "over", "1", "of", "2", "cases"] in found


def test_figures_stand_beside_the_baseline():
    data, comparison = both_sides()
    text = shown(decision(), summary=data, comparison=comparison)
    for told in (
        ["tools", "required", "and", "called", "rightly", "75.0", "%", "100", "%", "-25.0", "points", "3", "of", "4"],
        ["set", "F1", "37.5", "%", "50.0", "%", "-12.5", "points", "over", "4"],
        ["safety", "critical", "violations", "0", "0", "0", "in", "4", "trials"],
        ["cost", "a", "trial", "$0.12", "$0.10", "+$0.025", "5", "of", "5", "trials"],
    ):
        assert told in rows(text)


def test_without_a_comparison_suites_and_figures_stand_alone():
    text = shown(decision(), summary=typical_summary())
    assert "baseline    difference" not in text
    assert ["default", "1/5", "50.0", "%"] in rows(text)
    assert "extra  reported only" in text


@pytest.mark.parametrize("width", [80, 120])
def test_tables_fit_the_screen(width):
    data, comparison = both_sides()
    lines = shown(BLOCKED, width, summary=data, comparison=comparison).splitlines()
    assert max(len(line) for line in lines[:-1]) <= width
    assert any(line.split()[:1] == ["cost_per_success_usd"] for line in lines)
    assert ("counted over" in "\n".join(lines)) == (width == 120)


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_bl_102_data_is_literal_in_a_decision(text, encoding):
    said = shown(hostile_decision(text), encoding=encoding, summary=hostile_summary(text), verbosity=1, width=200)
    assert not {c for c in said if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n"}
    if text.isprintable() and len(text) < 30:
        assert said.count(text) > 10


def test_no_color_is_honoured(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    raw = io.StringIO()
    print_decision(Console(file=raw, force_terminal=True, width=80), BLOCKED)
    assert "\x1b[1;31m" not in raw.getvalue()
    assert "\x1b[31m" not in raw.getvalue()
