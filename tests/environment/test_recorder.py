"""The recorder keeps what happened, in order, whoever writes from whichever thread."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import dumps, line_of
from seatrial.core.trace import Approval, CallState, Handoff, ModelCallEvent, Observable, ToolCallEvent, Trace, Usage
from seatrial.environment.failure import TrialOver
from seatrial.environment.recorder import Recorder, StepLimitReached, error_text, read_arguments
from seatrial.environment.spending import CostLimitReached


@pytest.mark.parametrize(
    ("given", "read", "malformed"),
    [
        (None, {}, False),
        ("", {}, False),
        ({}, {}, False),
        ({"a": 1}, {"a": 1}, False),
        ('{"a": 1}', {"a": 1}, False),
        ("[]", "[]", True),
        ("[" * 100_000, "[" * 100_000, True),
        ("{'a': 1}", "{'a': 1}", True),
        ([1], [1], True),
        (5, 5, True),
    ],
)
def test_arguments_are_read_as_mapping_or_json_text(given: object, read: object, malformed: bool) -> None:
    assert read_arguments(given) == (read, malformed)


def test_events_are_numbered_as_they_begin_and_end_in_any_order() -> None:
    recorder = Recorder()
    first = recorder.begin_tool_call("first")
    second = recorder.begin_tool_call("second")
    recorder.end_tool_call(second, result=2)
    third = recorder.begin_tool_call("third")
    recorder.end_tool_call(first, result=1)
    recorder.end_tool_call(third, result=3)
    one, two, three = recorder.freeze()
    assert [event.number for event in (one, two, three)] == [1, 2, 3]
    assert two.ended <= three.number
    assert one.ended > three.number
    assert [event.result for event in (one, two, three)] == [1, 2, 3]


def test_what_one_trial_came_to_is_no_other_trials() -> None:
    recorder, other = Recorder(step_limit=2), Recorder(step_limit=2)
    recorder.turn = 2
    recorder.end_tool_call(recorder.begin_tool_call("transfer_to_boss", {"reason": "limit"}), result="ok")
    recorder.report_turn((), (HandoffEvent("agent", "boss"), ToolCall("look"), ToolCall("look")))
    with pytest.raises(StepLimitReached):
        recorder.begin_tool_call("look")
    recorder.lacks(Observable.APPROVALS, "nobody asks")
    recorder.estimate(0.5)
    recorder.spending.limit_usd = 0.1
    recorder.end()
    assert (recorder.active_agent, recorder.limit_reached, recorder.spending.over) == ("boss", True, True)
    assert (other.turn, other.active_agent, other.limit_reached, other.ordered) == (1, None, False, True)
    assert (other.observes, other.unobserved, other.spending.estimates, other.spending.over) == (set(), {}, {}, False)
    other.begin_tool_call("look")
    other.end_tool_call(other.begin_tool_call("look"))
    assert [event.number for event in other.freeze()] == [1, 2]


def test_calls_are_built_as_validation_builds_them() -> None:
    recorder = Recorder()
    recorder.report(ToolCall("a", {"n": 1}, result="r", call_id="1", agent="x"))
    recorder.report(ToolCall("b", "no json", error=ValueError("v"), call_id="1"))
    recorder.end_tool_call(recorder.begin_tool_call("c", asked={"n": 2}, step=1), result={1}, told="t", duration_ms=2)
    recorder.amend(recorder.begin_tool_call("d"), state="failed", duration_ms=3)
    events = recorder.freeze()
    assert [type(event).model_validate(vars(event), strict=True) for event in events] == list(events)
    assert [event.state for event in events] == ["executed", "failed", "executed", "failed"]
    assert [(event.number, event.ended) for event in events] == [(1, 2), (2, 3), (3, 4), (4, None)]
    assert [event.attempt for event in events] == [1, 2, 1, 1]


class Kind(StrEnum):
    A = "a"


odd = st.sampled_from([None, "x", "\ud800", 3, 2.5, ["a"], object(), Kind.A, ValueError("no"), {"a": 1}])


@given(odd, odd, odd, odd, odd)
def test_whatever_an_adapter_takes_for_a_name_or_an_id_reads_back(
    name: Any, agent: Any, call_id: Any, value: Any, more: Any
) -> None:
    recorder = Recorder()
    recorder.message(name, value, agent=agent)
    recorder.end_model_call(recorder.begin_model_call(name, agent=agent), model=more, error=value)
    call = recorder.begin_tool_call(name, value, call_id=call_id, agent=agent, asked=more)
    recorder.end_tool_call(call, result=value, error=more, told=name)
    recorder.end_tool_call(recorder.begin_tool_call("transfer_to_x", value, agent=agent), result=value)
    recorder.handoff(name, more, reason=value)
    recorder.approval(name, value, "edited", approved_arguments=more, approver=more, call_id=call_id, agent=agent)
    recorder.retrieval(value, [more], agent=agent)
    recorder.guardrail(name, more, value, agent=agent)
    recorder.safety(name, value, agent=agent)
    recorder.error(ValueError(value), agent=agent)
    events = recorder.freeze()
    assert recorder.problems == []
    stored = json.loads(line_of(Trace(events=events)))
    assert Trace.model_validate(stored).events == tuple(events)


def test_an_event_that_cannot_be_made_is_told_and_the_others_are_kept() -> None:
    recorder = Recorder()
    recorder.end_tool_call(recorder.begin_tool_call("search"))
    recorder.approval("pay", {}, "maybe")
    recorder.amend(recorder.begin_tool_call("pay"), attempt="often")
    first, second, third = recorder.freeze()
    assert (first.kind, second.kind, third.kind) == ("tool_call", "error", "error")
    assert [event.number for event in (first, second, third)] == [1, 2, 3]
    assert [problem.partition(": Input")[0] for problem in recorder.problems] == [
        "event 2 (approval) cannot be kept (decision",
        "event 3 (tool_call) cannot be kept (attempt",
    ]


def test_what_was_amended_is_checked_also_where_events_before_it_were_withdrawn() -> None:
    recorder = Recorder()
    gone, broken, kept = (recorder.begin_tool_call(name) for name in ("look", "pay", "search"))
    recorder.end_tool_call(kept)
    for number in (gone, broken):
        recorder.amend(number, attempt="often")
    recorder.withdraw(gone)
    assert [(event.number, event.kind) for event in recorder.freeze()] == [(1, "error"), (2, "tool_call")]
    assert len(recorder.problems) == 1


def test_what_is_learnt_late_and_raises_is_told_and_loses_nothing() -> None:
    def learn() -> None:
        raise KeyError("no span")

    recorder = Recorder()
    recorder.begin_model_call("m")
    recorder.on_freeze = learn
    assert [event.kind for event in recorder.freeze()] == ["model_call"]
    assert recorder.problems == ["what the agent left cannot be read: KeyError: 'no span'"]


def test_a_call_that_never_ended_has_failed() -> None:
    recorder = Recorder()
    recorder.begin_tool_call("search")
    (event,) = recorder.freeze()
    assert (event.state, event.error, event.ended) == (CallState.FAILED, "never ended", None)


def test_what_the_agent_changes_later_does_not_change_the_trace() -> None:
    recorder = Recorder()
    arguments, result = {"ids": [1]}, {"found": []}
    number = recorder.begin_tool_call("search", arguments)
    recorder.end_tool_call(number, result=result)
    arguments["ids"].append(2)
    result["found"].append(3)
    (event,) = recorder.freeze()
    assert event.arguments == {"ids": [1]}
    assert event.result == {"found": []}


def test_what_was_asked_and_told_stand_only_where_they_differ() -> None:
    recorder = Recorder()
    number = recorder.begin_tool_call("pay", {"amount": 5}, asked={"amount": 5})
    recorder.end_tool_call(number, result="paid", told="paid")
    number = recorder.begin_tool_call("pay", {"amount": 5}, asked={"amount": 500})
    recorder.end_tool_call(number, result="paid", told="ok")
    same, edited = recorder.freeze()
    assert (same.asked, same.told) == (None, None)
    assert (edited.asked, edited.told) == ({"amount": 500}, "ok")


def test_tries_of_one_call_id_are_counted() -> None:
    recorder = Recorder()
    for call_id in ("a", "a", "b", None, None):
        recorder.end_tool_call(recorder.begin_tool_call("search", call_id=call_id))
    assert [event.attempt for event in recorder.freeze()] == [1, 2, 1, 1, 1]


def test_the_step_limit_counts_model_calls_where_there_are_any() -> None:
    recorder = Recorder(step_limit=2)
    recorder.begin_model_call("m")
    for _ in range(5):
        recorder.begin_tool_call("search")
    recorder.begin_model_call("m")
    with pytest.raises(StepLimitReached):
        recorder.begin_model_call("m")
    assert recorder.limit_reached


def test_the_step_limit_counts_tool_calls_where_no_model_call_was_seen() -> None:
    recorder = Recorder(step_limit=2)
    recorder.begin_tool_call("search")
    recorder.begin_tool_call("search")
    with pytest.raises(StepLimitReached):
        recorder.begin_tool_call("search")
    assert len(recorder.freeze()) == 2


def test_an_agents_own_except_does_not_swallow_the_hard_stop() -> None:
    assert not issubclass(StepLimitReached, Exception)
    assert not issubclass(TrialOver, Exception)


def test_exactly_as_many_steps_as_allowed_begin_under_threads() -> None:
    recorder = Recorder(step_limit=50)
    barrier = threading.Barrier(20)

    def work() -> int:
        barrier.wait()
        begun = 0
        for _ in range(10):
            try:
                recorder.end_tool_call(recorder.begin_tool_call("search"))
            except StepLimitReached:
                continue
            begun += 1
        return begun

    with ThreadPoolExecutor(20) as pool:
        begun = sum(future.result() for future in [pool.submit(work) for _ in range(20)])
    events = recorder.freeze()
    assert begun == len(events) == 50
    assert [event.number for event in events] == list(range(1, 51))
    assert [event.at_ms for event in events] == sorted(event.at_ms for event in events)


def test_nothing_begins_after_the_trial() -> None:
    recorder = Recorder()
    number = recorder.begin_tool_call("slow")
    recorder.end()
    recorder.end_tool_call(number, result="late")
    with pytest.raises(TrialOver):
        recorder.begin_tool_call("search")
    with pytest.raises(TrialOver):
        recorder.begin_model_call()


def test_reports_keep_every_field() -> None:
    recorder = Recorder()
    recorder.report(ToolCall("search", '{"q": 1}', result=[1], call_id="c1", agent="a"))
    recorder.report(HandoffEvent("a", "b", reason="why", context={"id": 1}))
    recorder.report(ModelCall("m", input=3, output=2, cached=1, cost_usd=0.5, error="late"))
    call, handoff, model = recorder.freeze()
    assert isinstance(call, ToolCallEvent)
    assert (call.arguments, call.result, call.call_id, call.agent) == ({"q": 1}, [1], "c1", "a")
    assert call.duration_ms is None, "a reported call's duration is unknown, not 0"
    assert isinstance(handoff, Handoff)
    assert (handoff.source, handoff.target, handoff.reason, handoff.context) == ("a", "b", "why", {"id": 1})
    assert isinstance(model, ModelCallEvent)
    assert (model.model, model.usage, model.cost_usd) == ("m", Usage(input=3, output=2, cached=1), 0.5)
    assert (model.latency_ms, model.error, model.agent) == (None, "late", "b")
    assert recorder.active_agent == "b"
    assert recorder.observes == {
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
        Observable.MODEL_CALLS,
        Observable.USAGE,
    }


def test_a_report_with_an_error_has_failed_unless_it_says_otherwise() -> None:
    recorder = Recorder()
    recorder.report(ToolCall("a", error=ValueError("bad")))
    recorder.report(ToolCall("b", error="refused by policy", state="refused"))
    recorder.report(ToolCall("c", state="unknown"))
    failed, refused, unknown = recorder.freeze()
    assert (failed.state, failed.error) == (CallState.FAILED, "ValueError: bad")
    assert (refused.state, refused.error) == (CallState.REFUSED, "refused by policy")
    assert unknown.state is CallState.UNKNOWN


@pytest.mark.parametrize(
    ("item", "message"),
    [
        (ToolCall("a", state="excuted"), "ToolCall.state cannot be 'excuted'; did you mean 'executed'?"),
        (ToolCall(7), "ToolCall.name must be text, not 7 (int)"),
        (HandoffEvent("a", None), "HandoffEvent.target must be text, not None (NoneType)"),
        (HandoffEvent("a", "b", context="order 5"), "HandoffEvent.context must be a mapping or None, not str"),
        (ModelCall("m", input="12"), "ModelCall.input must be a whole number or None, not '12' (str)"),
        (ModelCall("m", output=-1), "ModelCall.output must be 0 or more, not -1"),
        (ModelCall("m", output=float("inf")), "ModelCall.output must be a whole number or None, not inf (float)"),
        (ModelCall("m", cost_usd=float("nan")), "ModelCall.cost_usd must be a finite number of 0 or more, not nan"),
        (
            ModelCall("m", cost_usd=10**5000),
            "ModelCall.cost_usd must be a number of at most 308 digits, not one of more",
        ),
        ({"name": "a"}, "an event is a ToolCall, HandoffEvent or ModelCall, not dict"),
    ],
)
def test_a_report_that_cannot_be_kept_is_named_and_leaves_nothing(item: object, message: str) -> None:
    recorder = Recorder()
    with pytest.raises((TypeError, ValueError)) as raised:
        recorder.report(item)
    assert str(raised.value) == message
    assert recorder.freeze() == ()


def test_a_turn_reported_without_common_order_is_unordered() -> None:
    recorder = Recorder()
    recorder.report_turn([], [ToolCall("a"), HandoffEvent("x", "y")])
    assert not recorder.ordered


def test_a_turn_with_one_kind_only_is_ordered() -> None:
    recorder = Recorder()
    recorder.report_turn([], [ModelCall("m"), ToolCall("a"), ToolCall("b")])
    assert recorder.ordered


def test_events_give_the_common_order_and_count_once() -> None:
    recorder = Recorder()
    events = [ToolCall("a", {"n": 1}), HandoffEvent("x", "y"), ToolCall("a", {"n": 1})]
    recorder.report_turn(events, [events[0], events[2], events[1], ModelCall("m")])
    assert recorder.ordered
    assert [event.kind for event in recorder.freeze()] == ["tool_call", "handoff", "tool_call", "model_call"]


def test_what_the_trial_recorded_itself_is_not_recorded_twice() -> None:
    recorder = Recorder()
    recorder.end_tool_call(recorder.begin_tool_call("a", {"n": 1}), result="live")
    recorder.report_turn([], [ToolCall("a", {"n": 1}, result="told"), ToolCall("a", {"n": 1}), ToolCall("b")])
    calls = recorder.freeze()
    assert [(call.name, call.result) for call in calls] == [("a", "live"), ("a", None), ("b", None)]


def test_the_same_call_in_a_later_turn_is_another_one() -> None:
    recorder = Recorder()
    recorder.report_turn([], [ToolCall("a")])
    recorder.turn = 2
    recorder.report_turn([], [ToolCall("a")])
    assert [call.turn for call in recorder.freeze()] == [1, 2]


def test_a_turn_begins_with_what_the_user_says_and_holds_what_follows() -> None:
    recorder = Recorder()
    recorder.begin_turn(1, "hello")
    recorder.begin_turn(2, {"amount": 5})
    recorder.report_turn([], [ToolCall("a")])
    said, asked, call = recorder.freeze()
    assert [(said.turn, said.role, said.content), (asked.turn, asked.role, asked.content), call.turn] == [
        (1, "user", "hello"),
        (2, "user", {"amount": 5}),
        2,
    ]


def test_no_turn_begins_when_the_trial_may_spend_no_more() -> None:
    recorder = Recorder()
    recorder.spending.limit_usd = 0.01
    recorder.estimate(0.02)
    with pytest.raises(CostLimitReached):
        recorder.begin_turn(2, "and now?")
    assert (recorder.turn, recorder.freeze()) == (1, ())


def test_events_that_belong_before_recorded_ones_leave_the_order_unknown() -> None:
    recorder = Recorder()
    recorder.end_tool_call(recorder.begin_tool_call("b"))
    recorder.report_turn([HandoffEvent("x", "y"), ToolCall("b")], [])
    assert not recorder.ordered


def test_a_denied_approval_that_left_no_call_is_a_refused_call() -> None:
    recorder = Recorder()
    recorder.turn = 2
    recorder.approval("pay", {"amount": 5}, "denied", agent="a")
    recorder.approval("pay", {"amount": 5}, "unanswered")
    recorder.approval("pay", {"amount": 7}, "granted")
    *approvals, refused = recorder.freeze()
    assert all(isinstance(event, Approval) for event in approvals)
    assert (refused.number, refused.name, refused.arguments) == (4, "pay", {"amount": 5})
    assert (refused.state, refused.error, refused.turn, refused.agent) == (
        CallState.REFUSED,
        "approval denied",
        2,
        "a",
    )


def test_a_denied_approval_of_a_recorded_call_adds_none() -> None:
    recorder = Recorder()
    recorder.approval("pay", {"amount": 5}, "denied")
    recorder.end_tool_call(recorder.begin_tool_call("pay", {"amount": 5}))
    number = recorder.begin_tool_call("checkout")
    recorder.approval("ship", {}, "denied")
    recorder.end_tool_call(number)
    recorder.approval("call", {}, "denied", call_id="c")
    recorder.end_tool_call(recorder.begin_tool_call("other_name", call_id="c"))
    assert [event.name for event in recorder.freeze() if isinstance(event, ToolCallEvent)] == [
        "pay",
        "checkout",
        "other_name",
    ]


def test_errors_have_a_text_whatever_their_own_says() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no")

    assert error_text(Hostile()) == "Hostile (its text raised RuntimeError)"
    assert error_text(ValueError("bad")) == "ValueError: bad"
    assert error_text("plain") == "plain"


def test_odd_text_is_kept() -> None:
    recorder = Recorder()
    recorder.end_tool_call(recorder.begin_tool_call("search", {"q": "\ud835 ok"}), error=ValueError("\ud835"))
    recorder.message("assistant", "a\u0000b")
    call, message = recorder.freeze()
    assert (call.arguments, call.error) == ({"q": "\ud835 ok"}, "ValueError: \ud835")
    assert message.content == "a\u0000b"


_CHANGES = st.lists(
    st.sampled_from(["message", "model", "tool", "raise", "refuse", "handoff", "withdraw", "told", "open", "approve"])
)


@given(_CHANGES)
def test_a_recorder_elsewhere_that_applies_every_change_has_the_same_events(changes: list[str]) -> None:
    here, elsewhere = Recorder(), Recorder()
    here.on_change = lambda change: elsewhere.apply(json.loads(dumps(change)))
    calls: list[int] = []
    for change in changes:
        match change:
            case "message":
                here.message("user", {"$type": "x", "value": "y"})
            case "model":
                number = here.begin_model_call("m")
                here.end_model_call(number, usage=Usage(input=1, output=2), cost_usd=0.5)
            case "handoff":
                here.handoff("a", "b", context={"n": 1})
            case "approve":
                here.approval("pay", {"n": len(calls)}, "denied")
            case "withdraw" | "told" if calls:
                here.withdraw(calls.pop()) if change == "withdraw" else here.tell(calls[-1], "no")
            case _:
                calls.append(here.begin_tool_call("look", {"n": float("nan")}, call_id="1"))
                if change != "open":
                    here.end_tool_call(calls[-1], result=b"x", error=ValueError("e") if change == "raise" else None)
        assert elsewhere.freeze() == here.freeze()
    here.observe(Observable.TOOL_CALLS)
    assert (elsewhere.observes, elsewhere.ordered) == (here.observes, here.ordered)
