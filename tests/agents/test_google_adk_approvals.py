"""Confirmations of Google ADK agents, answered by the fixture's script."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from graphs import Driven, drive
from seatrial.core.trace import StopReason
from seatrial.testing.google_adk import ScriptedLlm, say

PAID: list[float] = []


def pay(amount: float) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount:g}"


def careful(amount: float, tool_context: ToolContext) -> str:
    """Pay what was confirmed."""
    if tool_context.tool_confirmation is None:
        tool_context.request_confirmation(hint="really?", payload={"amount": amount})
        return "waiting"
    if not tool_context.tool_confirmation.confirmed:
        return "not paid"
    return pay((tool_context.tool_confirmation.payload or {"amount": amount})["amount"])


def note(text: str) -> str:
    """Write something down."""
    return text


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def desk(*calls: Any) -> LlmAgent:
    tools = [FunctionTool(pay, require_confirmation=True), careful, note]
    return LlmAgent(name="desk", model=ScriptedLlm(script=[say(calls=calls), say("done")]), tools=tools)


def rule(decision: str, action: str = "pay", **more: Any) -> dict[str, Any]:
    return {"action": action, "decision": decision, "by": "supervisor", **more}


def approved(driven: Driven) -> list[tuple[str, Any, str]]:
    return [(one.action, one.arguments, one.decision) for one in driven.approvals]


def test_a_granted_call_runs_after_its_approval() -> None:
    driven = drive(desk(("pay", {"amount": 9}, "c1")), approvals=[rule("granted")])
    (approval,) = driven.approvals
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    assert (approval.approver, approval.call_id, approval.agent) == ("supervisor", "c1", "desk")
    assert (approval.ended or 99) <= driven.call.number
    assert (driven.output, driven.states, PAID) == ("done", [("pay", "executed")], [9])
    assert (driven.call.step, driven.call.attempt) == (driven.model_calls[0].number, 1)


def test_a_denied_call_is_refused_and_its_body_never_ran() -> None:
    driven = drive(desk(("pay", {"amount": 9}, "c1")), approvals=[rule("denied")])
    assert driven.states == [("pay", "refused")]
    assert driven.call.told == {"error": "This tool call is rejected."}
    assert (driven.output, PAID, driven.trace.stop_reason) == ("done", [], StopReason.ANSWERED)


def test_an_unanswered_call_ends_the_turn_and_all_questions_are_on_record() -> None:
    calls = [("pay", {"amount": 9}, "c1"), ("careful", {"amount": 8}, "c2"), ("note", {"text": "x"}, "c3")]
    driven = drive(desk(*calls), approvals=[rule("granted", "careful")])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert approved(driven) == [("pay", {"amount": 9}, "unanswered"), ("careful", {"amount": 8}, "granted")]
    assert dict(driven.states) == {"pay": "refused", "note": "executed", "careful": "unknown"}
    assert PAID == []


def test_several_confirmations_are_answered_at_once() -> None:
    calls = [("pay", {"amount": 9}, "c1"), ("pay", {"amount": 700}, "c2"), ("note", {"text": "x"}, "c3")]
    rules = [rule("denied", when={"amount": {"$gt": 500}}), rule("granted")]
    driven = drive(desk(*calls), approvals=rules)
    states = {call.call_id: call.state.value for call in driven.calls}
    assert states == {"c1": "executed", "c2": "refused", "c3": "executed"}
    assert (PAID, driven.output, driven.trace.steps) == ([9], "done", 2)


@pytest.mark.parametrize(("decision", "paid"), [("granted", [9]), ("denied", []), ("edited", [5])])
def test_a_body_that_asks_itself_is_one_call(decision: str, paid: list[float]) -> None:
    edited = {"arguments": {"amount": 5}} if decision == "edited" else {}
    driven = drive(desk(("careful", {"amount": 9}, "c1")), approvals=[rule(decision, "careful", **edited)])
    assert driven.states == [("careful", "executed")]
    assert driven.call.attempt == 1
    assert driven.call.result == ("not paid" if decision == "denied" else f"paid {paid[0]:g}")
    assert [event.number for event in driven.trace.events] == list(range(1, len(driven.trace.events) + 1))
    assert paid == PAID


def test_the_framework_has_no_way_to_edit_and_the_trace_shows_it() -> None:
    driven = drive(desk(("pay", {"amount": 9}, "c1")), approvals=[rule("edited", arguments={"amount": 5})])
    assert driven.approvals[0].approved_arguments == {"amount": 5}
    assert driven.call.arguments == {"amount": 9}
