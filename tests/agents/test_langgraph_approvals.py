"""Interrupts of graphs as approvals: granted, denied, edited, unanswered, in both shapes."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from graphs import Driven, drive
from seatrial.core.trace import StopReason
from seatrial.environment.trial import current_trial
from seatrial.testing import ScriptedChatModel, say

PAID: list[float] = []


@tool
def pay(amount: float, memo: str = "none") -> dict[str, Any]:
    """Pay."""
    PAID.append(amount)
    return {"paid": amount}


@tool
def careful_pay(amount: float) -> str:
    """Pay, after having asked."""
    answer = interrupt({"action": "careful_pay", "arguments": {"amount": amount}})
    if answer["decision"] == "denied":
        return "not paid"
    PAID.append(answer["arguments"]["amount"])
    return f"paid {answer['arguments']['amount']:g}"


@tool
def strict_pay(amount: float) -> str:
    """Pay, and raise when that was not allowed."""
    if interrupt({"action": "strict_pay", "arguments": {"amount": amount}})["decision"] == "denied":
        raise PermissionError("not allowed")
    return "paid"


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def middleware_agent(*calls: Any, last: str = "done") -> Any:
    guard = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    return create_agent(ScriptedChatModel(script=[say(calls=calls), say(last)]), [pay], middleware=[guard])


def asking_agent(name: str, *calls: Any) -> Any:
    return create_agent(ScriptedChatModel(script=[say(calls=calls), say("done")]), [careful_pay, strict_pay, pay])


def rule(decision: str, action: str = "pay", **more: Any) -> dict[str, Any]:
    return {"action": action, "decision": decision, "by": "supervisor", **more}


def approved(driven: Driven) -> list[tuple[str, Any, str]]:
    return [(one.action, one.arguments, one.decision) for one in driven.approvals]


# --- the human-in-the-loop middleware


def test_a_granted_call_runs_after_its_approval() -> None:
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1")), approvals=[rule("granted")])
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    assert driven.approvals[0].approver == "supervisor"
    assert driven.approvals[0].call_id == driven.call.call_id == "c1"
    assert driven.approvals[0].ended is not None
    assert driven.approvals[0].ended <= driven.call.number
    assert (driven.output, PAID) == ("done", [9])


def test_a_denied_call_is_refused_and_its_body_never_ran() -> None:
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1")), approvals=[rule("denied")])
    assert driven.states == [("pay", "refused")]
    assert approved(driven) == [("pay", {"amount": 9}, "denied")]
    assert (driven.output, PAID) == ("done", [])
    assert driven.trace.stop_reason is StopReason.ANSWERED


def test_an_edited_call_runs_with_the_edited_arguments() -> None:
    edited = rule("edited", arguments={"amount": 5, "memo": "half"})
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1")), approvals=[edited])
    assert driven.call.arguments == {"amount": 5, "memo": "half"}
    assert driven.call.asked == {"amount": 9}
    assert driven.approvals[0].approved_arguments == {"amount": 5, "memo": "half"}
    assert PAID == [5]


def test_an_unanswered_request_ends_the_turn_as_waiting() -> None:
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1")))
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert approved(driven) == [("pay", {"amount": 9}, "unanswered")]
    assert driven.states == [("pay", "refused")]
    assert PAID == []


@pytest.mark.parametrize(("scripted", "status"), [(True, "ungraded"), (False, "failed")])
def test_waiting_fails_the_trial_unless_the_case_scripts_that_nobody_answers(scripted: bool, status: str) -> None:
    rules = [rule("unanswered")] if scripted else []
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1")), approvals=rules)
    assert driven.record.stop_reason is StopReason.WAITING_APPROVAL
    assert driven.record.status == status
    assert bool(driven.record.detail) is not scripted


def test_several_requests_at_once_are_answered_each_by_its_own_rule() -> None:
    rules = [rule("denied", when={"amount": {"$gt": 500}}), rule("granted")]
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1"), ("pay", {"amount": 900}, "c2")), approvals=rules)
    assert approved(driven) == [("pay", {"amount": 9}, "granted"), ("pay", {"amount": 900}, "denied")]
    assert {call.call_id: call.state.value for call in driven.calls} == {"c1": "executed", "c2": "refused"}
    assert PAID == [9]


def test_one_unanswered_among_several_keeps_all_from_running() -> None:
    rules = [rule("granted", when={"amount": {"$lte": 500}})]
    driven = drive(middleware_agent(("pay", {"amount": 9}, "c1"), ("pay", {"amount": 900}, "c2")), approvals=rules)
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert [decision for _, _, decision in approved(driven)] == ["granted", "unanswered"]
    assert PAID == []


# --- interrupt({action, arguments}) in a tool


def test_a_call_that_asks_in_its_body_is_one_event_after_its_approval() -> None:
    graph = asking_agent("careful_pay", ("careful_pay", {"amount": 9}, "c1"))
    driven = drive(graph, approvals=[rule("granted", "careful_pay")])
    assert driven.states == [("careful_pay", "executed")]
    assert driven.call.attempt == 1
    (approval,) = driven.approvals
    assert approval.ended is not None
    assert approval.ended <= driven.call.number
    assert approval.call_id == "c1"
    assert [event.number for event in driven.trace.events] == list(range(1, len(driven.trace.events) + 1))
    assert driven.call.result == "paid 9"


def test_a_body_that_returned_after_a_denial_is_executed() -> None:
    driven = drive(
        asking_agent("careful_pay", ("careful_pay", {"amount": 9}, "c1")), approvals=[rule("denied", "careful_pay")]
    )
    assert driven.states == [("careful_pay", "executed")]
    assert driven.call.result == "not paid"


def test_a_body_that_raised_after_a_denial_is_refused() -> None:
    driven = drive(
        asking_agent("strict_pay", ("strict_pay", {"amount": 9}, "c1")), approvals=[rule("denied", "strict_pay")]
    )
    assert driven.states == [("strict_pay", "refused")]
    assert driven.call.error == "PermissionError: not allowed"


def test_an_edited_answer_reaches_the_body() -> None:
    driven = drive(
        asking_agent("careful_pay", ("careful_pay", {"amount": 9}, "c1")),
        approvals=[rule("edited", "careful_pay", arguments={"amount": 4})],
    )
    assert PAID == [4]
    assert driven.approvals[0].decision == "edited"
    assert (driven.call.arguments, driven.call.asked) == ({"amount": 4}, {"amount": 9})


def test_an_unanswered_question_of_a_body_leaves_its_call_refused() -> None:
    driven = drive(asking_agent("careful_pay", ("careful_pay", {"amount": 9}, "c1")))
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert driven.states == [("careful_pay", "refused")]
    assert PAID == []


def test_parallel_bodies_that_ask_are_each_answered() -> None:
    calls = [("careful_pay", {"amount": 1}, "c1"), ("careful_pay", {"amount": 2}, "c2"), ("pay", {"amount": 3}, "c3")]
    rules = [rule("denied", "careful_pay", when={"amount": 1}), rule("granted", "careful_pay")]
    driven = drive(asking_agent("careful_pay", *calls), approvals=rules)
    assert sorted(driven.states) == [("careful_pay", "executed"), ("careful_pay", "executed"), ("pay", "executed")]
    assert {one.call_id: one.decision for one in driven.approvals} == {"c1": "denied", "c2": "granted"}
    assert 1 not in PAID
    assert 2 in PAID


def test_a_question_of_an_unknown_shape_stays_unanswered() -> None:
    @tool
    def chat(topic: str) -> str:
        """Ask."""
        return str(interrupt(f"may I talk about {topic}?"))

    graph = create_agent(ScriptedChatModel(script=[say(calls=[("chat", {"topic": "tides"}, "c1")])]), [chat])
    driven = drive(graph, approvals=[rule("granted", "chat")])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert driven.approvals[0].decision == "unanswered"
    assert driven.approvals[0].arguments == {"question": "may I talk about tides?"}
    assert driven.states == [("chat", "refused")]


def test_a_node_that_asks_gets_the_answer() -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        answer = interrupt({"action": "send", "arguments": {"to": "all"}})
        return {"messages": [say(f"{answer['decision']} by {answer['approver']}")]}

    graph = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
    assert drive(graph, approvals=[rule("denied", "send")]).output == "denied by supervisor"


def test_a_tool_that_asks_through_the_trial_is_linked_to_its_call() -> None:
    @tool
    def wipe(path: str) -> str:
        """Delete."""
        if not current_trial().approve("wipe", {"path": path}).allowed:
            raise PermissionError("no")
        return "gone"

    graph = create_agent(ScriptedChatModel(script=[say(calls=[("wipe", {"path": "/x"}, "c1")])]), [wipe])
    driven = drive(graph)
    assert driven.approvals[0].call_id == "c1"
    assert driven.states == [("wipe", "refused")]


# --- static stops


def stopping_agent() -> Any:
    model = ScriptedChatModel(script=[say(calls=[("pay", {"amount": 9}, "c1")]), say("done")])
    return create_agent(model, [pay], interrupt_before=["tools"])


def test_a_graph_that_stops_before_its_tools_goes_on_when_the_calls_are_granted() -> None:
    driven = drive(stopping_agent(), approvals=[rule("granted")])
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    assert (driven.states, driven.output) == ([("pay", "executed")], "done")


@pytest.mark.parametrize("rules", [[], [rule("denied")]])
def test_a_graph_that_stops_before_its_tools_waits_otherwise(rules: list[Any]) -> None:
    driven = drive(stopping_agent(), approvals=rules)
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert driven.states == [("pay", "refused")]
    assert PAID == []
