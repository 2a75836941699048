from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from made import failing, grade, invalid, passing
from seatrial.core.trace import Approval, Handoff, Message, ToolCallEvent, Trace
from seatrial.verdict.trajectories import Step, Trajectory, representative, trajectory_of
from traces import tool_call, trace_of


def names(trajectory: Trajectory) -> list[str]:
    return [step.name for step in trajectory.steps]


def test_calls_hand_offs_and_approvals_are_kept_in_order_and_words_are_not():
    events = (
        ToolCallEvent(number=1, name="look", arguments={"id": 1}),
        Message(number=2, role="assistant", content="one moment"),
        Approval(number=3, action="pay", arguments={"amount": 5}, decision="denied"),
        ToolCallEvent(number=4, name="pay", arguments={"amount": 5}, state="refused"),
        Handoff(number=5, source="desk", target="boss", context={"id": 1}, reason="too much"),
    )
    assert [step.model_dump() for step in trajectory_of(Trace(events=events)).steps] == [
        {"call": "look", "arguments": {"id": 1}},
        {"approval": "pay", "arguments": {"amount": 5}, "state": "denied"},
        {"call": "pay", "arguments": {"amount": 5}, "state": "refused"},
        {"handoff": "boss", "source": "desk", "arguments": {"id": 1}},
    ]


def test_calls_of_one_model_turn_have_no_order_among_themselves():
    one = trace_of(tool_call("a", step=1), tool_call("b", step=1), tool_call("a"))
    two = trace_of(tool_call("b", step=1), tool_call("a", step=1), tool_call("a"))
    assert trajectory_of(one) == trajectory_of(two)
    assert trajectory_of(trace_of(tool_call("b"), tool_call("a"))) != trajectory_of(
        trace_of(tool_call("a"), tool_call("b"))
    )


def test_no_arguments_and_empty_ones_are_the_same():
    assert trajectory_of(trace_of(tool_call("a", {}))) == trajectory_of(trace_of(tool_call("a")))


def test_where_the_order_is_unknown_calls_stand_first():
    events = (Handoff(number=1, source="x", target="y"), ToolCallEvent(number=2, name="a"))
    found = trajectory_of(Trace(events=events, ordered=False))
    assert (names(found), found.ordered) == (["a", "y"], False)


def test_the_representative_trial_is_the_first_passing_one_with_the_usual_calls():
    traces = [trace_of(*(tool_call(name, {"trial": at}) for name in calls)) for at, calls in enumerate("abbab", 1)]
    trials = [passing("c", 1), failing("c", 2), passing("c", 3), passing("c", 4), invalid("c", 5)]
    found = representative(trials, lambda record: traces[record.trial_index - 1])
    assert [(step.name, step.arguments) for step in found.steps] == [("a", {"trial": 1})]


def test_where_nothing_passed_it_is_of_the_failed_ones_with_their_reasons():
    trials = [failing("c", 1, "got 5", grades=(grade("answer", "fail", "got 5"), grade("tone"))), invalid("c", 2)]
    found = representative(trials, lambda record: trace_of(tool_call("a")))
    assert (names(found), found.reasons) == (["a"], {"answer": "got 5"})
    assert representative([invalid("c")], lambda record: trace_of()) is None


@given(
    st.builds(
        Step,
        kind=st.sampled_from(["call", "handoff", "approval"]),
        name=st.text(),
        source=st.none() | st.text(),
        arguments=st.none() | st.dictionaries(st.text(), st.integers() | st.text()),
        state=st.text(),
        turn=st.integers(1, 9),
    )
)
def test_any_step_survives_json(step):
    assert Step.model_validate_json(step.model_dump_json()) == step
