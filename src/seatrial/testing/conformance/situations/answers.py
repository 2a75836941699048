"""Answers: alone, streamed, and what they cost."""

from __future__ import annotations

from seatrial.core.trace import Observable, Usage
from seatrial.testing.conformance.expected import USAGE, Call, Expected, Facts, Ledger, ModelCalled, Plan, Said
from seatrial.testing.conformance.script import Ask, Line
from seatrial.testing.conformance.situations.shared import ORDER, every_trial, one_agent
from seatrial.testing.conformance.tools import look_up_order

__all__ = ["answer_only", "streaming", "usage"]


def answer_only(facts: Facts) -> Plan:
    """The agent answers without any tool."""
    expected = Expected(outputs=("Hello.",), model_calls=(ModelCalled(),), said=(Said("Hello."),))
    return Plan(
        one_agent(Line("Hello."), tools=(look_up_order(Ledger()),)),
        every_trial(expected),
        about=frozenset({Observable.OUTPUT}),
    )


def streaming(facts: Facts) -> Plan:
    """Streamed replies say everything once: calls, texts and tokens."""
    ledger = Ledger()
    answer = "Your order O-1 has been delivered."
    call = Call("look_up_order", ORDER, {"order_id": "O-1", "status": "delivered"}, call_id="call-1")
    expected = Expected(
        outputs=(answer,),
        model_calls=(ModelCalled(usage=Usage(input=30, output=8)), ModelCalled(usage=Usage(input=50, output=12))),
        tool_calls=(call,),
        said=(Said(answer),),
    )
    lines = (
        Line(calls=(Ask("look_up_order", ORDER, "call-1"),), usage=Usage(input=30, output=8)),
        Line(answer, usage=Usage(input=50, output=12)),
    )
    return Plan(
        one_agent(*lines, tools=(look_up_order(ledger),), streaming=True),
        every_trial(expected),
        about=frozenset({Observable.OUTPUT}),
        ledger=ledger,
        bodies=(("look_up_order", ORDER),),
    )


def usage(facts: Facts) -> Plan:
    """Each kind of token once; a reply of which the provider said nothing is unknown, not free."""
    ledger = Ledger()
    whole = Usage(input=120, output=40, cached=64, cache_write=16, reasoning=24)
    used: tuple[Usage | None, ...] = (whole, None, USAGE)
    call_ids = ("call-1", "call-2")
    lines = [Line(calls=(Ask("look_up_order", ORDER, call_ids[step]),), usage=used[step]) for step in (0, 1)]
    result = {"order_id": "O-1", "status": "delivered"}
    calls = [Call("look_up_order", ORDER, result, call_id=call_ids[step], step=step + 1) for step in (0, 1)]
    expected = Expected(
        outputs=("Done.",),
        model_calls=tuple(ModelCalled(usage=one) for one in used),
        tool_calls=tuple(calls),
        said=(Said("Done."),),
    )
    return Plan(
        one_agent(*lines, Line("Done.", usage=USAGE), tools=(look_up_order(ledger),)),
        every_trial(expected),
        about=frozenset({Observable.USAGE}),
        ledger=ledger,
        bodies=(("look_up_order", ORDER),) * 2,
    )
