"""A call that needs approval, and every answer to that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.core.trace import CallState, Observable, StopReason
from seatrial.testing.conformance.expected import AGENT, Asked, Call, Expected, Facts, Ledger, ModelCalled, Plan, Said
from seatrial.testing.conformance.script import AgentScript, Ask, Line, Script, Tool
from seatrial.testing.conformance.situations.shared import asks, every_trial
from seatrial.testing.conformance.tools import issue_refund

__all__ = ["denied", "edited", "granted", "unanswered"]

ASKED = {"order_id": "O-1", "amount": 750}
ACTION = "issue_refund"
ANSWER = "I have done what I was allowed to."


def granted(facts: Facts) -> Plan:
    """It runs as asked for."""
    call = Call(ACTION, ASKED, "paid 750 for O-1", call_id="call-1")
    return _answered("granted", call, bodies=((ACTION, ASKED),))


def edited(facts: Facts) -> Plan:
    """It runs with what was approved; what was asked for stands beside it."""
    approved = {"order_id": "O-1", "amount": 400}
    call = Call(ACTION, approved, "paid 400 for O-1", asked=ASKED if facts.ways.says_asked else None, call_id="call-1")
    return _answered("edited", call, bodies=((ACTION, approved),), approved=approved)


def denied(facts: Facts) -> Plan:
    """Its body never runs: the call is refused, and the agent is told."""
    return _answered("denied", _refused())


def unanswered(facts: Facts) -> Plan:
    """Its body never runs: the call is refused, and the turn waits, or the agent's own code is told."""
    if facts.ways.unanswered == "told":
        return _answered("unanswered", _refused())
    expected = Expected(
        stop=StopReason.WAITING_APPROVAL,
        model_calls=(ModelCalled(),),
        tool_calls=(_refused(told=False),),
        approvals=(Asked(ACTION, ASKED, "unanswered"),),
    )
    return _plan("unanswered", expected, ())


def _refused(*, told: bool = True) -> Call:
    return Call(ACTION, ASKED, state=CallState.REFUSED, told=told, call_id="call-1")


def _answered(
    decision: str,
    call: Call,
    *,
    bodies: tuple[tuple[str, Mapping[str, Any]], ...] = (),
    approved: Mapping[str, Any] | None = None,
) -> Plan:
    approver = None if decision == "unanswered" else "supervisor"
    expected = Expected(
        outputs=(ANSWER,),
        model_calls=(ModelCalled(), ModelCalled()),
        tool_calls=(call,),
        approvals=(Asked(ACTION, ASKED, decision, approved, approver),),
        said=(Said(ANSWER),),
    )
    return _plan(decision, expected, bodies)


def _plan(decision: str, expected: Expected, bodies: tuple[tuple[str, Mapping[str, Any]], ...]) -> Plan:
    ledger = Ledger()
    tools = (Tool(issue_refund(ledger), needs_approval=True),)
    alice = AgentScript(AGENT, (asks(Ask(ACTION, ASKED, "call-1")), Line(ANSWER)), tools=tools)
    rule = {"action": ACTION, "decision": decision, "by": "supervisor"}
    if decision == "edited":
        rule["arguments"] = {"amount": 400}  # type: ignore[assignment]
    return Plan(
        Script((alice,)),
        every_trial(expected),
        about=frozenset({Observable.APPROVALS}),
        ledger=ledger,
        bodies=bodies,
        fixture={"approvals": [rule]},
    )
