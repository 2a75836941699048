"""The fixture at the tool's boundary: it answers in a tool's place, and has a tool fail."""

from __future__ import annotations

from seatrial.core.trace import CallState, Observable
from seatrial.testing.conformance.expected import Call, Facts, Ledger, Plan
from seatrial.testing.conformance.script import Ask, Line
from seatrial.testing.conformance.situations.shared import ORDER, after_one_call, asks, every_trial, one_agent
from seatrial.testing.conformance.tools import look_up_order

__all__ = ["injected_fault", "stand_in"]

ABOUT = frozenset({Observable.TOOL_CALLS})


def stand_in(facts: Facts) -> Plan:
    """The stand-in's answer is the result; the tool's own body does not run."""
    result = {"order_id": "O-1", "status": "lost"}
    rules = [{"when": {"order_id": "O-1"}, "returns": result}, {"otherwise": True, "returns": "wrong order"}]
    call = Call("look_up_order", ORDER, result, stand_in=True, call_id="call-1")
    ledger = Ledger()
    script = one_agent(asks(Ask("look_up_order", ORDER, "call-1")), Line("It is lost."), tools=(look_up_order(ledger),))
    expected = after_one_call(call, "It is lost.", goes_on=True)
    return Plan(script, every_trial(expected), about=ABOUT, ledger=ledger, fixture={"tools": {"look_up_order": rules}})


def injected_fault(facts: Facts) -> Plan:
    """The call fails with the fault, before the tool's body, and the fault stands in the trace."""
    goes_on = facts.ways.raising_tool == "told"
    error = "the line is dead"
    call = Call("look_up_order", ORDER, state=CallState.FAILED, error=error, told=goes_on, call_id="call-1")
    ledger = Ledger()
    script = one_agent(asks(Ask("look_up_order", ORDER, "call-1")), Line("Not now."), tools=(look_up_order(ledger),))
    expected = after_one_call(call, "Not now.", goes_on=goes_on, error=error, faults=(("look_up_order", "error"),))
    fault = {"tool": "look_up_order", "on_call": 1, "error": f"ConnectionError: {error}"}
    return Plan(script, every_trial(expected), about=ABOUT, ledger=ledger, fixture={"faults": [fault]})
