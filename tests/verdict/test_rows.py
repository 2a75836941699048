from __future__ import annotations

import pytest

from made import broken, case, failing, grade, invalid, passing, raising, record, run, tally, ungradable
from seatrial.core.case import Expected, Turn
from seatrial.verdict.metrics import case_results, kinds_of
from seatrial.verdict.rows import grader_rows, handoff_rows, pass_rate, suite_rows, tally_sums, tool_rows


def results_of(cases, trials, **info):
    return case_results(run(**info), cases, trials)


def test_bl_052_every_mean_carries_its_counts():
    cases = [case(name) for name in "abcd"]
    half = grade("h", "pass", score=0.5)
    trials = [passing("a", grades=(grade("g"), half))]
    trials += [
        record(name, 1, "invalid", invalid_reason="grader", grades=(half,), grader_failures=(broken("g"),))
        for name in "bcd"
    ]
    g, h = grader_rows(results_of(cases, trials), cases)
    assert (g.name, g.mean, g.scored, g.of, g.failures) == ("g", 1.0, 1, 4, 3)
    assert (h.name, h.mean, h.scored, h.of, h.failures) == ("h", 0.5, 4, 4, 0)


def test_bl_054_the_lowest_score_is_that_of_the_good_case():
    cases = [case("lost"), case("good")]
    trials = [ungradable("lost", 1, "g", "h"), passing("good", grades=(grade("g", score=0.8), grade("h")))]
    results = results_of(cases, trials)
    g, _ = grader_rows(results, cases)
    assert (g.minimum, g.mean, g.scored, g.of, g.failures) == (0.8, 0.8, 1, 2, 1)
    rate = pass_rate(results)
    assert (rate.rate, rate.cases, rate.of_cases) == (1.0, 1, 2)


def test_bl_050_the_headline_falls_when_the_agent_raises():
    rate = pass_rate(results_of([case("a"), case("b")], [passing("a"), raising("b")]))
    assert (rate.rate, rate.passes, rate.valid) == (0.5, 1, 2)


def test_a_crash_keeps_its_place_among_the_trials_a_grader_was_due_in():
    cases = [case(name, expected=Expected.model_validate({"answer": "4"})) for name in "abc"]
    (answer,) = grader_rows(results_of(cases, [passing("a"), passing("b"), raising("c")]), cases)
    assert (answer.mean, answer.scored, answer.of) == (1.0, 2, 3)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("response.equals", {"expected": {"response": {"equals": "hi"}}}),
        ("step_efficiency", {"expected": {"max_steps": 3}}),
        ("max_latency_ms", {"thresholds": {"max_latency_ms": 10.0}}),
        ("my_module:polite#2", {"graders": ["my_module:polite"]}),
        ("tone", {"graders": [{"use": "my_module:polite", "name": "tone"}]}),
        ("quality", {"judges": [{"rubric": "quality"}]}),
        ("turn[2].answer", {"turns": [Turn(user="go on", expected=Expected.model_validate({"answer": "4"}))]}),
    ],
)
def test_a_case_asks_for_the_grades_it_writes(name, written):
    asking = [case("asks").model_validate({"id": "asks", **written}), case("other"), case("seen")]
    trials = [raising("asks"), passing("other"), passing("seen", grades=(grade(name),))]
    rows = {row.name: row for row in grader_rows(results_of(asking, trials), asking)}
    assert (rows[name].scored, rows[name].of) == (1, 2)


def test_a_grader_that_only_abstains_has_no_mean():
    cases = [case("a")]
    unseen = record("a", 1, "invalid", invalid_reason="unobserved", grades=(grade("handoff", "abstain"),))
    (row,) = grader_rows(results_of(cases, [unseen]), cases)
    assert (row.mean, row.minimum, row.scored, row.of, row.abstained) == (None, None, 0, 1, 1)


def test_every_case_weighs_the_same_and_the_pooled_rate_stands_beside():
    cases = [case("a", 4), case("b", 1)]
    trials = [passing("a", number) for number in range(1, 5)] + [failing("b")]
    rate = pass_rate(results_of(cases, trials))
    assert (rate.rate, rate.pooled) == (0.5, 0.8)
    assert 0 < rate.low < 0.5 < rate.high < 1


def test_no_valid_trial_gives_no_rate():
    assert pass_rate(results_of([case("a")], [invalid("a")])) is None
    assert pass_rate([]) is None


def test_suites_count_cases_and_trials_in_every_state():
    cases = [case("a", 2, suite="smoke"), case("b", 2, suite="smoke"), case("c", suite="extra")]
    trials = [passing("a"), passing("a", 2), failing("b"), invalid("b", 2)]
    smoke, extra = suite_rows(results_of(cases, trials, gating={"extra": False}))
    assert smoke.cases == {"total": 2, "passed": 1, "failed": 1, "ungraded": 0, "invalid": 0, "not_run": 0}
    assert smoke.trials == {"planned": 4, "run": 4, "passed": 2, "failed": 1, "ungraded": 0, "invalid": 1}
    assert (extra.gate, extra.cases["not_run"], extra.rate) == (False, 1, None)


def test_tools_show_calls_and_how_often_they_were_required_and_right():
    tallies = {"required_tool_recall/look": tally(1, 1), "required_tool_recall/ask": tally(0, 1)}
    trials = [
        passing("a", tools={"look": 2}, grades=(grade("required_tools", "fail", tallies=tallies),)),
        passing("b", tools={"look": 1, "send": 1}),
    ]
    rows = {row.tool: row for row in tool_rows(kinds_of(results_of([case("a"), case("b")], trials)))}
    assert list(rows) == ["ask", "look", "send"]
    assert (rows["look"].calls, rows["look"].trials, rows["look"].of) == (3, 2, 2)
    assert (rows["ask"].calls, rows["ask"].recall.hit, rows["ask"].recall.of) == (0, 0, 1)
    assert rows["send"].recall is None


def test_tallies_of_invalid_trials_are_in_no_sum():
    tallies = {"loop_rate": tally(1, 1)}
    trials = [passing("a", tallies=tallies), invalid("b").model_copy(update={"tallies": tallies})]
    sums = tally_sums(kinds_of(results_of([case("a"), case("b")], trials)))
    assert (sums["loop_rate"].hit, sums["loop_rate"].of, sums["loop_rate"].rate) == (1, 1, 1.0)


def test_handoffs_are_counted_by_way():
    trials = [passing("a", handoffs=(("x", "y"), ("y", "x"), ("x", "y"))), passing("b")]
    rows = handoff_rows(kinds_of(results_of([case("a"), case("b")], trials)))
    assert [(row.source, row.target, row.count, row.trials) for row in rows] == [("x", "y", 2, 1), ("y", "x", 1, 1)]
