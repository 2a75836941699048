"""Several agents: one that is called as a tool, one that takes over, one that is not there."""

from __future__ import annotations

from seatrial.core.trace import Observable, StopReason
from seatrial.testing.conformance.expected import AGENT, Call, Expected, Facts, Ledger, ModelCalled, Passed, Plan, Said
from seatrial.testing.conformance.script import AgentScript, Ask, Line, Script, Tool
from seatrial.testing.conformance.situations.shared import ORDER, asks, every_trial
from seatrial.testing.conformance.tools import look_up_order

__all__ = ["handoff", "nested_agent", "refused_handoff"]

RESULT = {"order_id": "O-1", "status": "delivered"}
ABOUT = frozenset({Observable.HANDOFFS})


def nested_agent(facts: Facts) -> Plan:
    """bob is called as a tool: his calls are his, his answer is the call's result, and alice goes on."""
    ledger = Ledger()
    task = {facts.ways.nested_argument: "Where is order O-1?"}
    alice = AgentScript(AGENT, (asks(Ask("bob", task, "call-1")), Line("It has arrived.")), nested=("bob",))
    bob = AgentScript(
        "bob", (asks(Ask("look_up_order", ORDER, "call-2")), Line("delivered")), tools=(Tool(look_up_order(ledger)),)
    )
    expected = Expected(
        outputs=("It has arrived.",),
        model_calls=(ModelCalled(), ModelCalled("bob"), ModelCalled("bob"), ModelCalled()),
        tool_calls=(
            Call("bob", task, "delivered", call_id="call-1", until=4),
            Call("look_up_order", ORDER, RESULT, call_id="call-2", agent="bob", step=2),
        ),
        said=(Said("delivered", "bob"), Said("It has arrived.")),
    )
    about = frozenset({Observable.TOOL_CALLS, Observable.MODEL_CALLS})
    return Plan(
        Script((alice, bob)), every_trial(expected), about=about, ledger=ledger, bodies=(("look_up_order", ORDER),)
    )


def handoff(facts: Facts) -> Plan:
    """bob takes over: a hand-off and no tool call; what follows is his."""
    ledger = Ledger()
    passed = Passed("bob", "above my limit", {"order_id": "O-1", "amount": 750})
    line = Line(handoff=passed.target, reason=passed.reason, context=passed.context)
    summary = Line("bob has looked at it.")
    returns = facts.ways.handoff_returns
    alice = AgentScript(AGENT, (line, summary) if returns else (line,), handoffs=("bob",))
    bob = AgentScript(
        "bob",
        (asks(Ask("look_up_order", ORDER, "call-1")), Line("It is on its way.")),
        tools=(Tool(look_up_order(ledger)),),
    )
    back = (Said(str(summary.text)),) if returns else ()
    expected = Expected(
        outputs=(str(summary.text) if returns else "It is on its way.",),
        model_calls=(ModelCalled(), ModelCalled("bob"), ModelCalled("bob"), *(ModelCalled() for _ in back)),
        tool_calls=(Call("look_up_order", ORDER, RESULT, call_id="call-1", agent="bob", step=2),),
        handoffs=(passed,),
        said=(Said("It is on its way.", "bob"), *back),
    )
    return Plan(
        Script((alice, bob)), every_trial(expected), about=ABOUT, ledger=ledger, bodies=(("look_up_order", ORDER),)
    )


def refused_handoff(facts: Facts) -> Plan:
    """Nobody is called carol: the hand-off is on record as not completed, and it is no tool call."""
    passed = Passed("carol", "above my limit", {"order_id": "O-1"}, completed=False)
    line = Line(handoff=passed.target, reason=passed.reason, context=passed.context)
    alice = AgentScript(AGENT, (line, Line("Then I do it myself.")), handoffs=("bob",))
    bob = AgentScript("bob", (Line("I was not asked."),))
    if facts.ways.refused_handoff == "told":
        expected = Expected(
            outputs=("Then I do it myself.",),
            model_calls=(ModelCalled(), ModelCalled()),
            handoffs=(passed,),
            said=(Said("Then I do it myself."),),
        )
    else:
        expected = Expected(stop=StopReason.AGENT_ERROR, model_calls=(ModelCalled(),), handoffs=(passed,))
    return Plan(Script((alice, bob)), every_trial(expected), about=ABOUT)
