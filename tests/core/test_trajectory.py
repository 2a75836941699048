from __future__ import annotations

from seatrial.core.grade import Tally
from seatrial.core.trajectory import handoff_loops, trace_tallies
from seatrial.environment.recorder import Recorder
from traces import finished, record, tool_call, trace_of


def went(*pairs: str, between: int | None = None, turns: bool = False) -> Recorder:
    """Hand-offs such as `a>b`, with a tool call before the one at `between`."""
    recorder = Recorder()
    for at, pair in enumerate(pairs):
        if between == at:
            record(recorder, tool_call("look"))
        recorder.turn = at + 1 if turns else 1
        source, _, target = pair.partition(">")
        recorder.handoff(source, target)
    return recorder


def test_going_back_to_the_delegating_agent_is_no_loop() -> None:
    assert handoff_loops(finished(went("a>b", "b>a"))) == ()


def test_the_same_pair_again_is_a_loop_unless_something_happened_between() -> None:
    assert handoff_loops(finished(went("a>b", "b>a", "a>b"))) == (3,)
    assert handoff_loops(finished(went("a>b", "b>a", "a>b", between=2))) == ()
    assert handoff_loops(finished(went("a>b", "b>a", "a>b", turns=True))) == ()


def test_a_circle_of_unreturned_delegations_is_a_loop() -> None:
    assert handoff_loops(finished(went("a>b", "b>c", "c>a"))) == (3,)
    assert handoff_loops(finished(went("a>b", "b>c", "c>b", "b>a"))) == ()
    assert handoff_loops(finished(went("a>a"))) == (1,)


def test_without_an_order_between_calls_and_handoffs_only_circles_are_loops() -> None:
    recorder = went("a>b", "b>a", "a>b", between=0)
    assert handoff_loops(finished(recorder, ordered=False)) == ()


def test_a_trace_tallies_rejected_calls_loops_and_safety_events() -> None:
    recorder = went("a>b", "b>a", "a>b")
    record(recorder, tool_call("pay", "no json", state="invalid_arguments"))
    record(recorder, tool_call("pay", {"amount": 1}))
    recorder.safety("cross_tenant_access")
    assert trace_tallies(finished(recorder)) == {
        "invalid_argument_rate": Tally(hit=1, of=2),
        "loop_rate": Tally(hit=1, of=1),
        "safety/cross_tenant_access": Tally(hit=1, of=1),
    }
    assert trace_tallies(trace_of()) == {}
