from __future__ import annotations

import io
import json
import unicodedata
from datetime import date

import pytest

from made import case, failing, grade, passing, run, tally
from seatrial.core.trial import Tokens
from seatrial.report.baseline_view import baseline_diff_data, print_baseline, print_baseline_diff
from seatrial.report.comparison_data import comparison_data
from seatrial.report.terminal import console, print_comparison
from seatrial.verdict.baseline import baseline_of
from seatrial.verdict.baseline_diff import run_diff
from seatrial.verdict.comparison import Comparison, compare
from seatrial.verdict.metrics import case_results
from seatrial.verdict.sides import side_of_run
from traces import tool_call, trace_of

HOSTILE = "[red]\x1b[2J\u202ex\n"
CASES = [case("refund", suite="regression", risk="critical"), case("status", suite="smoke")]


def trials(tool: str, make=passing):
    recall = {f"required_tool_recall/{tool}": tally(1, 1)}
    fields = {"latency_ms": 20.0, "cost_usd": 0.25, "tokens": Tokens(input=9, output=3), "handoffs": (("desk", tool),)}
    return [
        make(
            "refund",
            tools={tool: 2},
            steps=3,
            grades=(grade("answer", _verdict(make), "why", tallies=recall),),
            **fields,
        ),
        passing("status", steps=1, **fields),
    ]


def _verdict(make) -> str:
    return "pass" if make is passing else "fail"


def side(tool: str, make=passing, label: str = ""):
    trace = trace_of(tool_call(tool, {"id": 1}))
    return side_of_run(run(build_id=tool), CASES, trials(tool, make), label, trace_of=lambda record: trace)


def broken() -> Comparison:
    return compare(side("pay"), side("refuse", failing))


def shown(show, width: int = 100) -> str:
    raw = io.BytesIO()
    target = console(io.TextIOWrapper(raw, encoding="utf-8", write_through=True, newline=""))
    target.width = width
    show(target)
    return raw.getvalue().decode()


def test_a_broken_case_is_shown_with_both_trajectories_and_all_figures_side_by_side():
    text = shown(lambda c: print_comparison(c, broken()))
    assert "they part at step 1: refuse in place of pay" in text
    rows = {" ".join(line.split()) for line in text.splitlines()}
    assert rows >= {
        "regression 1/1 100 % 0/1 0 % -100.0 points",
        "pay 1.00 → 0.00 -1 1/1 → · ·",
        "desk → pay 1.00 → 0.00 -1",
        "mean latency 20 ms 20 ms 0",
    }
    for title in ("Suites", "Tools", "Hand-offs", "Figures"):
        assert f"\n{title}" in text
    assert text.rstrip().splitlines()[-1] == "FAILED  1 broke · 1 same"


def test_cases_without_a_change_are_counted_and_named_on_demand():
    cases = [case(f"c{n}") for n in range(9)]
    found = compare(*(side_of_run(run(), cases, [passing(one.id) for one in cases]) for _ in "ab"))
    assert "c3" not in shown(lambda c: print_comparison(c, found))
    assert "and 9 cases without a change" in shown(lambda c: print_comparison(c, found))
    assert "c3" in shown(lambda c: print_comparison(c, found, verbosity=1))


def test_nothing_in_common_shows_no_figures():
    found = compare(side_of_run(run(), [case("a")], [passing("a")]), side_of_run(run(), [case("b")], [passing("b")]))
    text = shown(lambda c: print_comparison(c, found))
    assert "Suites" not in text
    assert text.rstrip().endswith("INCOMPLETE  1 removed · 1 new · no case in common")


def test_the_document_holds_cases_with_their_divergence_and_the_figures():
    data = json.loads(json.dumps(comparison_data(broken())))
    assert data["verdict"] == "failed"
    refund = data["cases"][0]
    assert (refund["id"], refund["change"], refund["grounds"]) == ("refund", "broke", "critical")
    assert refund["baseline"]["passes"] == 1
    assert refund["divergence"] == {
        "step": 1,
        "difference": "other",
        "baseline": {"call": "pay", "arguments": {"id": 1}},
        "candidate": {"call": "refuse", "arguments": {"id": 1}},
        "trial": "trial 1",
    }
    assert data["cases"][1]["divergence"] is None
    assert [suite["delta"] for suite in data["figures"]["suites"]] == [-1.0, 0.0, -0.5]
    assert {measure["name"] for measure in data["figures"]["measures"]} >= {"latency_ms", "cost_usd", "input_tokens"}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_bl_100_tools_agents_and_labels_are_shown_literally(width):
    found = compare(side(HOSTILE, label=HOSTILE), side(f"{HOSTILE}2", failing, label=HOSTILE))
    text = shown(lambda c: print_comparison(c, found), width)
    assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} <= {"\n"}


# --- baselines -------------------------------------------------------------------------------------------------------


def approved(**more):
    info = run(build_id="pay", agent={"target": "m:f"})
    fields = {"approver": "Ann", "reason": "first", "fresh": False, "now": "2026-01-31T12:00:00Z"} | more
    trace = trace_of(tool_call("pay", {"id": 1}))
    results = case_results(info, CASES, trials("pay"))
    return baseline_of(results, [info], trace_of=lambda record: trace, **fields)


def test_a_baseline_says_who_approved_what_and_until_when():
    found = approved(expires=date(2026, 7, 1))
    text = shown(lambda c: print_baseline(c, found, today=date(2026, 7, 2), verbosity=1))
    assert "by Ann · 2026-01-31T12:00:00Z · until 2026-07-01 · EXPIRED" in text
    assert "not fresh" in text
    assert "pay(id=1)" in text
    assert "EXPIRED" not in shown(lambda c: print_baseline(c, found))


def test_a_baseline_beside_a_run_names_settings_cases_and_other_steps():
    info = run(build_id="refuse", agent={"target": "m:g"})
    diff = run_diff(approved(), info, side("refuse"))
    text = shown(lambda c: print_baseline_diff(c, diff))
    assert "agent.target  m:f" in text
    assert "Passed as before, by other steps" in text
    assert "refuse in place of pay" in text
    assert text.rstrip().splitlines()[-1] == "2 same · 2 by other steps · 2 other settings"
    assert baseline_diff_data(diff)["cases"] == []
    worse = run_diff(approved(), info, side("refuse", failing))
    assert baseline_diff_data(worse)["cases"] == [
        {"id": "refund", "change": "broke", "before": {"passes": 1, "valid": 1}, "after": {"passes": 0, "valid": 1}}
    ]


def test_bl_100_a_baselines_words_are_shown_literally():
    found = approved(approver=HOSTILE, reason=HOSTILE)
    diff = run_diff(found, run(build_id=HOSTILE), side("pay"))
    for text in (shown(lambda c: print_baseline(c, found)), shown(lambda c: print_baseline_diff(c, diff))):
        assert {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs")} <= {"\n"}
