from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import case, failing, passing, run
from seatrial.errors import StorageError
from seatrial.report import trace_diff as module
from seatrial.report.literal import literal
from seatrial.report.screen import Screen, console
from seatrial.report.trace_diff import align, changed_arguments, trace_diff
from seatrial.report.trace_diff_view import divergence_text, print_trace_diff
from seatrial.verdict.comparison import compare
from seatrial.verdict.sides import Side, side_of_run
from seatrial.verdict.trajectories import Step, Trajectory
from traces import tool_call, trace_of


def call(name: str, state: str = "", **arguments) -> Step:
    return Step(kind="call", name=name, arguments=arguments or None, state=state)


def handoff(target: str) -> Step:
    return Step(kind="handoff", name=target, source="desk")


def aligned(before: list[Step], after: list[Step]):
    return align(Trajectory(steps=tuple(before)), Trajectory(steps=tuple(after)))


def shape(diff) -> list[str]:
    return [str(pair.difference) for pair in diff.pairs]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("look verify pay", "look verify pay", "none none none"),
        ("look verify pay", "look pay", "none left_out none"),
        ("look pay", "look verify pay", "none added none"),
        ("look verify pay", "look cancel pay", "none other none"),
        ("look verify pay", "pay", "left_out left_out none"),
        ("a b", "b c", "left_out none added"),
        ("", "a", "added"),
        ("", "", ""),
    ],
)
def test_steps_are_paired_so_that_as_little_as_possible_differs(before, after, expected):
    found = aligned([call(name) for name in before.split()], [call(name) for name in after.split()])
    assert shape(found) == expected.split()


def test_the_same_call_differs_in_its_arguments_or_in_what_became_of_it():
    found = aligned([call("pay", id=1), call("pay", id=2)], [call("pay", id=1, n=2), call("pay", "failed", id=2)])
    assert shape(found) == ["arguments", "state"]
    assert changed_arguments(found.pairs[0]) == [("n", (), (2,))]
    assert found.first == 0


def test_hand_offs_approvals_and_turns_tell_steps_apart():
    again = Step(kind="call", name="pay", turn=2)
    asked = Step(kind="approval", name="pay", state="granted")
    assert shape(aligned([call("boss")], [handoff("boss")])) == ["other"]
    assert shape(aligned([call("pay")], [again])) == ["other"]
    assert shape(aligned([asked], [asked.model_copy(update={"state": "denied"})])) == ["state"]


def test_where_the_order_is_unknown_on_a_side_it_is_no_difference():
    mixed = Trajectory(steps=(handoff("boss"), call("pay")))
    apart = Trajectory(steps=(call("pay"), handoff("boss")), ordered=False)
    assert align(mixed, apart).first is None


def test_steps_that_were_not_kept_are_no_difference():
    kept = Trajectory(steps=(call("a"), call("b")), more=3)
    found = align(kept, Trajectory(steps=tuple(call(name) for name in "abcd")))
    assert (found.first, found.more) == (None, (3, 2))


steps = st.lists(
    st.sampled_from([call("a"), call("b"), call("a", n=1), call("a", "failed"), handoff("a"), handoff("b")]), max_size=7
)


@given(steps)
def test_equal_trajectories_have_no_divergence(same):
    found = aligned(same, list(same))
    assert found.first is None
    assert [pair.baseline for pair in found.pairs] == same


@given(steps, steps)
def test_every_step_stands_once_in_its_order_on_its_side(before, after):
    found = aligned(before, after)
    assert [pair.baseline for pair in found.pairs if pair.baseline is not None] == before
    assert [pair.candidate for pair in found.pairs if pair.candidate is not None] == after
    assert (found.first is None) == (before == after)


@given(steps, steps)
def test_swapping_the_sides_keeps_the_place_where_they_part(before, after):
    assert aligned(before, after).first == aligned(after, before).first


def test_very_long_trajectories_are_paired_by_place_beyond_their_equal_beginning(monkeypatch):
    monkeypatch.setattr(module, "_MOST_CELLS", 3)
    found = aligned([call(name) for name in "xabc"], [call(name) for name in "xbcd"])
    assert shape(found) == ["none", "other", "other", "other"]


# --- which trials ----------------------------------------------------------------------------------------------------


def side(trials, traces) -> Side:
    return side_of_run(run(), [case("a", len(trials))], trials, trace_of=lambda record: traces[record.trial_index - 1])


def test_the_candidates_first_failed_trial_stands_beside_the_baselines_usual_one():
    base = side([passing("a", 1), passing("a", 2), passing("a", 3)], [trace_of(tool_call(name)) for name in "xyy"])
    cand = side([passing("a", 1), failing("a", 2)], [trace_of(tool_call(name)) for name in "yz"])
    found = trace_diff(compare(base, cand).cases[0])
    assert [(pair.baseline.name, pair.candidate.name) for pair in found.pairs] == [("y", "z")]
    assert found.candidate_trial == "trial 2"


def test_without_traces_there_is_nothing_to_align():
    def gone(record):
        raise StorageError("no trace")

    with_traces = side([passing("a")], [trace_of(tool_call("x"))])
    for other in (
        side_of_run(run(), [case("a")], [failing("a")]),
        side_of_run(run(), [case("a")], [failing("a")], trace_of=gone),
    ):
        assert trace_diff(compare(with_traces, other).cases[0]) is None
        assert trace_diff(compare(other, with_traces).cases[0]) is None


# --- on the terminal -------------------------------------------------------------------------------------------------


def shown(diff, width: int = 100, **options) -> str:
    raw = io.BytesIO()
    target = console(io.TextIOWrapper(raw, encoding="utf-8", write_through=True, newline=""))
    target.width = width
    print_trace_diff(Screen(target), diff, **options)
    return raw.getvalue().decode()


def sentence(before: list[Step], after: list[Step]) -> str:
    return divergence_text(Screen(console(io.StringIO())), aligned(before, after)).plain


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ([call("pay")], [], "they part at step 1: the candidate leaves out pay"),
        ([], [handoff("boss")], "they part at step 1: the candidate adds the hand-off to boss"),
        ([handoff("boss")], [call("pay")], "they part at step 1: pay in place of the hand-off to boss"),
        ([call("pay", n=1)], [call("pay", n=2)], "they part at step 1: pay: n 1 → 2"),
        ([call("pay", n=1)], [call("pay")], "they part at step 1: pay: n 1 → none"),
        ([call("pay")], [call("pay", "failed")], "they part at step 1: pay: executed → failed"),
        ([], [], "both did the same (no call and no hand-off); they differ in what was said or came of it"),
    ],
)
def test_where_they_part_is_told_in_a_sentence(before, after, said):
    assert sentence(before, after) == said


def test_both_sides_stand_beside_each_other_around_the_place_where_they_part():
    same = [call(f"equal_{n}") for n in range(9)]
    rest = [call(f"rest_{n}") for n in range(20)]
    text = shown(aligned([*same, call("verify", id=1), *rest], [*same, *rest]))
    assert "… 7 equal steps" in text
    assert re.search(r"10  -  verify\(id=1\) +–", text)
    assert "more steps; -v shows all" in text
    assert "equal_0" in shown(aligned([*same, call("x")], same), everything=True)


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("hostile", ["[bold red]x[/]", "\x1b[2J", "\u202egnp", "a\r\nb"])
def test_bl_100_steps_are_shown_literally(hostile, width):
    step = Step(kind="handoff", name=hostile, source=hostile, arguments={hostile: hostile}, state=hostile)
    text = shown(aligned([step, call("x")], [call(hostile, hostile, **{hostile: hostile}), call("y")]), width)
    assert "".join(text.split("\n")).isprintable()
    if width == 120:
        assert literal(hostile) in text
