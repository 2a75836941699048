"""Runs that end before an answer: at a limit, by an error, out of time. What happened until then is kept."""

from __future__ import annotations

from seatrial.core.trace import CallState, Observable, StopReason
from seatrial.testing.conformance.expected import Call, Expected, Facts, Ledger, ModelCalled, Plan, Said
from seatrial.testing.conformance.script import Ask, Line
from seatrial.testing.conformance.signals import Signal
from seatrial.testing.conformance.situations.shared import ORDER, asks, every_trial, one_agent
from seatrial.testing.conformance.tools import (
    compare_prices,
    look_up_order,
    wait_for_ever,
    wait_for_ever_blocking,
)

__all__ = ["crash", "model_error", "step_limit", "timeout"]

RESULT = {"order_id": "O-1", "status": "delivered"}
LIMIT = 3


def step_limit(facts: Facts) -> Plan:
    """As many model calls as allowed, and no more; where none can be seen, as many tool calls."""
    ledger = Ledger()
    models = facts.observes(Observable.MODEL_CALLS)
    lines = [asks(Ask("look_up_order", ORDER, f"call-{number}")) for number in range(1, 4 * LIMIT)]
    calls = [Call("look_up_order", ORDER, RESULT, call_id=f"call-{step}", step=step) for step in range(1, LIMIT + 1)]
    expected = Expected(
        stop=StopReason.MAX_STEPS, model_calls=(ModelCalled(),) * LIMIT if models else (), tool_calls=tuple(calls)
    )
    return Plan(
        one_agent(*lines, tools=(look_up_order(ledger),)),
        every_trial(expected),
        about=frozenset({Observable.MODEL_CALLS, Observable.TOOL_CALLS}),
        only_if_observed=True,
        ledger=ledger,
        bodies=(("look_up_order", ORDER),) * LIMIT,
        steps=LIMIT,
    )


def model_error(facts: Facts) -> Plan:
    """The error of the model ends the trial and stands at the call that had it."""
    text = "the model is down"
    expected = Expected(stop=StopReason.AGENT_ERROR, error=text, model_calls=(ModelCalled(usage=None, error=text),))
    script = one_agent(Line(error=RuntimeError(text), usage=None), Line("Back again."))
    return Plan(script, every_trial(expected), about=frozenset({Observable.OUTPUT}))


def timeout(facts: Facts) -> Plan:
    """Time is up while a tool runs: the call is on record, and nothing is added to it later."""
    ledger, begun, over = Ledger(), Signal(), Signal()
    waiting = wait_for_ever if facts.ways.async_tools else wait_for_ever_blocking
    call = Call("call_the_depot", ORDER, state=CallState.FAILED, call_id="call-1")
    expected = Expected(stop=StopReason.TIMEOUT, model_calls=(ModelCalled(),), tool_calls=(call,))
    return Plan(
        one_agent(asks(Ask("call_the_depot", ORDER, "call-1")), Line("Nobody."), tools=(waiting(ledger, begun, over),)),
        every_trial(expected),
        about=frozenset({Observable.OUTPUT}),
        ledger=ledger,
        bodies=(("call_the_depot", ORDER),),
        overdue=begun,
        over=over,
    )


def crash(facts: Facts) -> Plan:
    """Two calls, something said, then an error: all of it but the answer is there."""
    ledger = Ledger()
    text = "the agent fell over"
    expected = Expected(
        stop=StopReason.AGENT_ERROR,
        error=text,
        model_calls=(ModelCalled(), ModelCalled(), ModelCalled(usage=None, error=text)),
        tool_calls=(
            Call("look_up_order", ORDER, RESULT, call_id="call-1"),
            Call("compare_prices", {"amount": 750}, "750 EUR is fair", call_id="call-2", step=2),
        ),
        said=(Said("I am looking."),),
    )
    script = one_agent(
        asks(Ask("look_up_order", ORDER, "call-1"), text="I am looking."),
        asks(Ask("compare_prices", {"amount": 750}, "call-2")),
        Line(error=RuntimeError(text), usage=None),
        Line("Back again."),
        tools=(look_up_order(ledger), compare_prices(ledger)),
    )
    bodies = (("look_up_order", ORDER), ("compare_prices", {"amount": 750}))
    about = frozenset({Observable.TOOL_CALLS, Observable.MODEL_CALLS})
    return Plan(script, every_trial(expected), about=about, ledger=ledger, bodies=bodies)
