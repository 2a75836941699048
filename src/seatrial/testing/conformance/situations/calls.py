"""Tool calls: in sequence, in parallel, and those that go wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seatrial.core.trace import CallState, Observable
from seatrial.testing.conformance import tools
from seatrial.testing.conformance.expected import Call, EndsInOrder, Expected, Facts, Ledger, ModelCalled, Plan, Said
from seatrial.testing.conformance.script import Ask, Line
from seatrial.testing.conformance.signals import Signal
from seatrial.testing.conformance.situations.shared import ORDER, after_one_call, asks, every_trial, one_agent

__all__ = [
    "invalid_arguments",
    "malformed_arguments",
    "parallel_blocking_calls",
    "parallel_calls",
    "raising_tool",
    "two_calls",
    "unknown_tool",
]

ABOUT = frozenset({Observable.TOOL_CALLS})


def two_calls(facts: Facts) -> Plan:
    """Two calls one after the other: names, arguments without defaults, results as data, who asked for what."""
    ledger = Ledger()
    expected = Expected(
        outputs=("It is fair.",),
        model_calls=(ModelCalled(), ModelCalled(), ModelCalled()),
        tool_calls=(
            Call("look_up_order", ORDER, {"order_id": "O-1", "status": "delivered"}, call_id="call-1"),
            Call("compare_prices", {"amount": 750}, "750 EUR is fair", call_id="call-2", step=2),
        ),
        said=(Said("Let me look."), Said("It is fair.")),
    )
    script = one_agent(
        asks(Ask("look_up_order", ORDER, "call-1"), text="Let me look."),
        asks(Ask("compare_prices", {"amount": 750}, "call-2")),
        Line("It is fair."),
        tools=(tools.look_up_order(ledger), tools.compare_prices(ledger)),
    )
    bodies = (("look_up_order", ORDER), ("compare_prices", {"amount": 750}))
    return Plan(script, every_trial(expected), about=ABOUT, ledger=ledger, bodies=bodies)


def parallel_calls(facts: Facts) -> Plan:
    """The first call ends last: results stand with their own calls, ends in the order in which they happened."""
    return _parallel(tools.weigh)


def parallel_blocking_calls(facts: Facts) -> Plan:
    """The same with tools that block their thread."""
    return _parallel(tools.weigh_blocking)


def _parallel(weigh: Callable[[Ledger, Signal, Signal], Callable[..., Any]]) -> Plan:
    ledger, begun = Ledger(), Signal()
    ends = EndsInOrder(({"parcel": "light"}, {"parcel": "heavy"}))
    parcels = ("heavy", "light")
    expected = Expected(
        outputs=("Both weigh the same.",),
        model_calls=(ModelCalled(), ModelCalled()),
        tool_calls=tuple(
            Call("weigh", {"parcel": one}, f"the {one} one weighs 1 kg", call_id=f"call-{one}") for one in parcels
        ),
        overlapping=True,
        said=(Said("Both weigh the same."),),
    )
    script = one_agent(
        asks(*(Ask("weigh", {"parcel": one}, f"call-{one}") for one in parcels)),
        Line("Both weigh the same."),
        tools=(weigh(ledger, begun, ends.first_ended),),
    )
    bodies = tuple(("weigh", {"parcel": one}) for one in parcels)
    return Plan(
        script, every_trial(expected), about=ABOUT, ledger=ledger, bodies=bodies, ends=ends, over=ends.first_ended
    )


def raising_tool(facts: Facts) -> Plan:
    """A tool that raises has failed, with its error; the run goes on or ends as the framework has it."""
    goes_on = facts.ways.raising_tool == "told"
    error = "the order book is closed"
    call = Call("look_up_order", ORDER, state=CallState.FAILED, error=error, told=goes_on, call_id="call-1")
    return _going_wrong(call, error, tools.raising, goes_on=goes_on, bodies=(("look_up_order", ORDER),))


def unknown_tool(facts: Facts) -> Plan:
    """A call of a tool that does not exist is on record, by name, as that."""
    goes_on = facts.ways.unknown_tool == "told"
    call = Call("open_safe", ORDER, state=CallState.UNKNOWN_TOOL, told=goes_on, call_id="call-1")
    return _going_wrong(call, "", tools.look_up_order, goes_on=goes_on)


def invalid_arguments(facts: Facts) -> Plan:
    """A call that lacks a needed argument never reaches its tool."""
    goes_on = facts.ways.invalid_arguments == "told"
    arguments = {"parcel_id": "P-1"}
    call = Call("look_up_order", arguments, state=CallState.INVALID_ARGUMENTS, told=goes_on, call_id="call-1")
    return _going_wrong(call, "", tools.look_up_order, goes_on=goes_on)


def malformed_arguments(facts: Facts) -> Plan:
    """A call whose arguments are no JSON object is kept as it came."""
    after, text = facts.ways.malformed_arguments, '{"order_id": "O-1"'
    state = CallState.INVALID_ARGUMENTS
    call = Call("look_up_order", text, state=state, told=after == "told", malformed=True, call_id="call-1")
    if after != "answers":
        return _going_wrong(call, "", tools.look_up_order, goes_on=after == "told")
    ledger = Ledger()
    said = "Let me look."
    expected = Expected(outputs=(said,), model_calls=(ModelCalled(),), tool_calls=(call,), said=(Said(said),))
    script = one_agent(asks(Ask(call.name, text, "call-1"), text=said), tools=(tools.look_up_order(ledger),))
    return Plan(script, every_trial(expected), about=ABOUT, ledger=ledger)


def _going_wrong(
    call: Call,
    error: str,
    tool: Callable[[Ledger], Callable[..., Any]],
    *,
    goes_on: bool,
    bodies: tuple[tuple[str, Mapping[str, Any]], ...] = (),
) -> Plan:
    ledger = Ledger()
    script = one_agent(
        asks(Ask(call.name, call.arguments, "call-1")), Line("That did not work."), tools=(tool(ledger),)
    )
    expected = after_one_call(call, "That did not work.", goes_on=goes_on, error=error)
    return Plan(script, every_trial(expected), about=ABOUT, ledger=ledger, bodies=bodies)
