"""Deferred tools of Pydantic AI agents: approvals by the fixture's script, calls that are executed elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, RunContext
from pydantic_ai import Tool as AgentTool
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset

from graphs import Driven, drive
from seatrial.core.trace import StopReason
from seatrial.testing.pydantic_ai import ScriptedModel, say

PAID: list[float] = []


def pay(amount: float, memo: str = "none") -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount:g}"


def careful(ctx: RunContext[Any], amount: float) -> str:
    """Pay; large amounts only when approved."""
    if amount > 5 and not ctx.tool_call_approved:
        raise ApprovalRequired()
    return pay(amount)


def note(text: str) -> str:
    """Write something down."""
    return text


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def desk(*calls: Any, output_type: Any = (str, DeferredToolRequests), **settings: Any) -> Agent[Any, Any]:
    tools = [AgentTool(pay, requires_approval=True), careful, note]
    model = ScriptedModel([say(calls=calls), say("done")])
    return Agent(model, name="desk", tools=tools, output_type=list(output_type), **settings)


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
    assert driven.call.step == driven.model_calls[0].number


def test_a_denied_call_is_refused_and_its_body_never_ran() -> None:
    driven = drive(desk(("pay", {"amount": 9}, "c1")), approvals=[rule("denied")])
    assert driven.states == [("pay", "refused")]
    assert driven.call.told == "The tool call was denied."
    assert (driven.output, PAID, driven.trace.stop_reason) == ("done", [], StopReason.ANSWERED)


def test_an_unanswered_call_ends_the_turn_and_all_questions_are_on_record() -> None:
    calls = [("pay", {"amount": 9}, "c1"), ("careful", {"amount": 8}, "c2"), ("note", {"text": "x"}, "c3")]
    driven = drive(desk(*calls), approvals=[rule("granted", "careful")])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert sorted(approved(driven), key=str) == [
        ("careful", {"amount": 8}, "granted"),
        ("pay", {"amount": 9}, "unanswered"),
    ]
    states = dict(driven.states)
    assert (states["pay"], states["note"]) == ("refused", "executed")
    assert states["careful"] == "unknown"
    assert PAID == []


@pytest.mark.parametrize(("decision", "state"), [("granted", "executed"), ("denied", "refused")])
def test_a_body_that_asks_itself_is_one_call(decision: str, state: str) -> None:
    driven = drive(desk(("careful", {"amount": 9}, "c1")), approvals=[rule(decision, "careful")])
    assert driven.states == [("careful", state)]
    assert driven.call.attempt == 1
    assert [event.number for event in driven.trace.events] == list(range(1, len(driven.trace.events) + 1))
    assert ([9] if decision == "granted" else []) == PAID


def test_an_agent_that_cannot_wait_for_approval_fails_as_it_would_in_production() -> None:
    driven = drive(desk(("pay", {"amount": 9}, "c1"), output_type=(str,)), approvals=[rule("granted")])
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert driven.trace.error is not None
    assert "DeferredToolRequests" in driven.trace.error.message
    assert PAID == []


def external(answering: bool, **fixture: Any) -> Driven:
    weather = ToolDefinition(name="weather", parameters_json_schema={"type": "object", "properties": {"at": {}}})
    agent = desk(("weather", {"at": "sea"}, "c1"), toolsets=[ExternalToolset([weather])])
    stand_in = {"tools": {"weather": [{"when": {"at": "sea"}, "returns": "calm"}]}} if answering else {}
    return drive(agent, **stand_in, **fixture)


def test_a_call_that_is_executed_elsewhere_is_answered_by_its_stand_in() -> None:
    driven = external(answering=True)
    assert (driven.call.result, driven.call.told, driven.call.stand_in) == ("calm", None, True)
    assert driven.output == "done"


def test_a_fault_elsewhere_is_told_as_a_failure() -> None:
    driven = external(answering=True, faults=[{"tool": "weather", "error": "timeout"}])
    assert driven.states == [("weather", "failed")]
    assert "TimeoutError" in str(driven.call.told)
    assert driven.output == "done"


def test_a_call_that_nobody_executes_ends_the_turn() -> None:
    driven = external(answering=False)
    assert driven.states == [("weather", "unknown")]
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL


def test_a_deferred_call_of_a_body_is_answered_by_its_stand_in_at_once() -> None:
    def later() -> str:
        """Leave it to others."""
        raise CallDeferred()

    agent = Agent(
        ScriptedModel([say(calls=[("later", {})]), say("done")]),
        tools=[later],
        output_type=[str, DeferredToolRequests],
    )
    assert drive(agent, tools={"later": [{"returns": "now"}]}).call.result == "now"


# --- agents within agents


def delegating(output_type: Any = (str, DeferredToolRequests)) -> Agent[Any, Any]:
    below = desk(("pay", {"amount": 9}, "c1"), output_type=output_type)
    above = Agent(ScriptedModel([say(calls=[("ask", {}, "c1")]), say("all done")]), name="above")

    @above.tool_plain
    async def ask() -> str:
        """Let the desk do it."""
        output = (await below.run("pay")).output
        return output if isinstance(output, str) else "it waits"

    return above


@pytest.mark.parametrize(
    ("decision", "state", "said"),
    [("granted", "executed", "done"), ("denied", "refused", "done"), ("unanswered", "refused", "it waits")],
)
def test_an_agent_within_another_is_answered_while_it_runs(decision: str, state: str, said: str) -> None:
    driven = drive(delegating(), approvals=[rule(decision)])
    assert approved(driven) == [("pay", {"amount": 9}, decision)]
    assert driven.approvals[0].agent == "desk"
    assert sorted((call.name, call.state.value) for call in driven.calls) == [("ask", "executed"), ("pay", state)]
    assert next(call.result for call in driven.calls if call.name == "ask") == said
    assert (driven.output, PAID) == ("all done", [9] if decision == "granted" else [])


def test_an_edited_call_within_another_agent_runs_as_edited() -> None:
    driven = drive(delegating(), approvals=[rule("edited", arguments={"amount": 5})])
    pay_call = next(call for call in driven.calls if call.name == "pay")
    assert (pay_call.arguments, pay_call.asked, PAID) == ({"amount": 5}, {"amount": 9}, [5])


def test_one_that_cannot_wait_fails_within_another_too() -> None:
    driven = drive(delegating(output_type=(str,)), approvals=[rule("granted")])
    assert driven.trace.error is not None
    assert "DeferredToolRequests" in driven.trace.error.message
    assert PAID == []
