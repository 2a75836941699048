"""Scripts played outside the harness reach the trace whole, whoever carries their messages."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.command_framework import Program
from conformance.http_framework import Service
from graphs import Driven, drive
from seatrial.core.trace import StopReason
from seatrial.testing.conformance.script import AgentScript, Ask, Line, Script, Tool

FRAMEWORKS = pytest.mark.parametrize("framework", [Program(), Service()], ids=lambda framework: framework.kind)


def look_up(order: str) -> dict[str, str]:
    """Look an order up."""
    if order == "O-9":
        raise KeyError(order)
    return {"order": order, "status": "sent"}


async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def calling(*asks: Ask, **settings: Any) -> AgentScript:
    tools = (Tool(look_up), Tool(pay, needs_approval=True))
    return AgentScript("alice", (Line(calls=asks), Line("done")), tools=tools, **settings)


def played(framework: Any, *agents: AgentScript, **fixture: Any) -> Driven:
    return drive(framework.build(Script(agents)), identity={"agent": "alice"}, **fixture)


@FRAMEWORKS
def test_parallel_calls_share_their_step_whatever_becomes_of_them(framework: Any) -> None:
    asks = (Ask("look_up", {"order": "O-1"}, "1"), Ask("look_up", {"order": "O-9"}, "2"), Ask("nothing", {}, "3"))
    driven = played(framework, calling(*asks, *(Ask("look_up", text, "4") for text in ("{broken",))))
    assert driven.output == "done"
    assert sorted(driven.states) == [
        ("look_up", "executed"),
        ("look_up", "failed"),
        ("look_up", "invalid_arguments"),
        ("nothing", "unknown_tool"),
    ]
    assert {call.step for call in driven.calls} == {driven.model_calls[0].number}


@FRAMEWORKS
@pytest.mark.parametrize(
    ("decision", "state"), [("granted", "executed"), ("denied", "refused"), ("unanswered", "refused")]
)
def test_approvals_decide(framework: Any, decision: str, state: str) -> None:
    rule = {"action": "pay", "decision": decision, "by": "boss"}
    driven = played(framework, calling(Ask("pay", {"amount": 7}, "1")), approvals=[rule])
    assert driven.states == [("pay", state)]
    waits = decision == "unanswered"
    assert driven.record.stop_reason is (StopReason.WAITING_APPROVAL if waits else StopReason.ANSWERED)


@FRAMEWORKS
def test_whoever_takes_over_has_the_word(framework: Any) -> None:
    alice = AgentScript("alice", (Line(handoff="bob", reason="above"),), handoffs=("bob",))
    bob = AgentScript(
        "bob", (Line(calls=(Ask("look_up", {"order": "O-1"}, "1"),)), Line("sent")), tools=(Tool(look_up),)
    )
    driven = played(framework, alice, bob)
    assert driven.output == "sent"
    assert [(handoff.source, handoff.target, handoff.reason) for handoff in driven.handoffs] == [
        ("alice", "bob", "above")
    ]
    assert [call.agent for call in (*driven.model_calls, *driven.calls)] == ["alice", "bob", "bob", "bob"]


@FRAMEWORKS
def test_a_model_that_fails_ends_the_trial(framework: Any) -> None:
    driven = played(framework, AgentScript("alice", (Line(error=RuntimeError("the model is down"), usage=None),)))
    assert driven.record.stop_reason is StopReason.AGENT_ERROR
    assert driven.record.error is not None
    assert "the model is down" in driven.record.error.message
    assert [call.error for call in driven.model_calls] == ["the model is down"]
