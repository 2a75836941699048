from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from made import case, failing, grade, invalid, passing, run, tally
from seatrial.core.trial import Tokens
from seatrial.verdict.comparison import compare
from seatrial.verdict.side_by_side import SideBySide, side_by_side
from seatrial.verdict.sides import side_of_run
from seatrial.verdict.totals import Sum, Tallied, Totals, Way, together, totals_of


def compared(before, after, cases=None) -> SideBySide:
    cases = cases or [case("a", 2, suite="s"), case("b", suite="t"), case("only_before"), case("only_after")]
    sides = [[c for c in cases if c.id != gone] for gone in ("only_after", "only_before")]
    return side_by_side(compare(*(side_of_run(run(), s, t) for s, t in zip(sides, (before, after), strict=True))))


def test_only_cases_in_common_with_a_valid_trial_on_both_sides_count():
    found = compared(
        [passing("a", 1, latency_ms=10.0), passing("b", latency_ms=20.0), passing("only_before", latency_ms=9e9)],
        [failing("a", 1, latency_ms=30.0), invalid("b"), passing("only_after", latency_ms=9e9)],
    )
    assert [(row.suite, row.cases, row.delta) for row in found.suites] == [("s", 1, -1.0)]
    latency = next(measure for measure in found.measures if measure.name == "latency_ms")
    assert (latency.cases, latency.baseline.value, latency.candidate.value, latency.delta) == (1, 10.0, 30.0, 20.0)


def test_means_are_over_cases_so_that_more_trials_of_one_case_move_nothing():
    base = [passing("a", 1, steps=1), passing("a", 2, steps=1), passing("b", steps=9)]
    found = compared(base, [passing("a", 1, steps=1), passing("b", steps=9)])
    steps = next(measure for measure in found.measures if measure.name == "steps")
    assert (steps.baseline.value, steps.candidate.value) == (5.0, 5.0)
    assert (steps.baseline.counted, steps.candidate.counted) == (3, 2)


def test_a_figure_that_one_side_lacks_is_unknown_and_has_no_difference():
    found = compared([passing("b", cost_usd=0.5, tokens=Tokens(input=4))], [passing("b", tokens=Tokens(input=6))])
    cost, tokens = (next(m for m in found.measures if m.name == name) for name in ("cost_usd", "input_tokens"))
    assert (cost.cases, cost.baseline.value, cost.candidate.value, cost.delta) == (0, None, None, None)
    assert (cost.baseline.counted, cost.candidate.counted) == (1, 0)
    assert tokens.delta == 2


def test_steps_that_are_tool_calls_stand_apart_from_model_calls():
    found = compared([passing("b", steps=2)], [passing("b", steps=2, steps_are_tool_calls=True)])
    assert [(m.name, m.delta) for m in found.measures] == [("steps", None), ("tool_call_steps", None)]


def test_tools_and_hand_offs_stand_side_by_side_with_their_counts():
    recall = {"required_tool_recall/pay": tally(1, 1)}
    lost = {"required_tool_recall/pay": tally(0, 1), "tool_precision/look": tally(0, 1)}
    found = compared(
        [passing("b", tools={"pay": 1}, handoffs=(("x", "y"),), grades=(grade("required_tools", tallies=recall),))],
        [failing("b", tools={"look": 2}, grades=(grade("required_tools", "fail", tallies=lost),))],
    )
    look, pay = found.tools
    assert (look.tool, look.calls, look.precision, look.recall) == ("look", (0, 2), (None, Tallied(0, 1)), (None, None))
    assert (pay.tool, pay.calls, pay.recall) == ("pay", (1, 0), (Tallied(1, 1), Tallied(0, 1)))
    assert [(row.source, row.target, row.count) for row in found.handoffs] == [("x", "y", (1, 0))]


def test_several_suites_have_a_sum_and_all_passes_are_kept():
    found = compared([passing("a", 1), passing("b")], [failing("a", 1), passing("b")])
    assert [(row.suite, row.candidate.passes, row.candidate.valid) for row in found.suites] == [
        ("s", 0, 1),
        ("t", 1, 1),
        ("", 1, 2),
    ]


records = st.lists(
    st.builds(
        passing,
        st.just("a"),
        steps=st.none() | st.integers(0, 9),
        tools=st.dictionaries(st.sampled_from("xyz"), st.integers(1, 5)),
        handoffs=st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("xy")), max_size=3).map(tuple),
        tallies=st.dictionaries(st.sampled_from("mno"), st.builds(tally, st.integers(0, 5), st.integers(0, 5))),
    ),
    max_size=5,
)


@given(records, records)
def test_totals_of_two_cases_together_are_those_of_all_their_trials(one, two):
    assert together([totals_of(one), totals_of(two)]) == totals_of(one + two)


def test_invalid_trials_and_unknown_figures_are_in_no_total():
    found = totals_of(
        [passing("a", steps=3), passing("a", 2), invalid("a", 3), failing("a", 4, handoffs=(("x", "y"),))]
    )
    assert found == Totals(sums={"steps": Sum(3, 1)}, handoffs=(Way("x", "y", 1),))
