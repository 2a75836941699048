"""The conformance kit's scripts as agents of the OpenAI Agents SDK."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.openai_agents_framework import OpenAIAgentsFramework
from graphs import Driven, drive
from seatrial.core.trace import StopReason, Usage
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, Tool

PAID: list[float] = []


def pay(amount: float) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount:g}"


def played(*agents: AgentScript, given: str = "go", turns: tuple[str, ...] = (), **fixture: Any) -> Driven:
    PAID.clear()
    return drive(OpenAIAgentsFramework().build(Script(agents)), given, *turns, **fixture)


def paying(*lines: Line, needs_approval: bool = False) -> AgentScript:
    return AgentScript("desk", lines, (Tool(pay, needs_approval),))


ASKS = Line(calls=(Ask("pay", {"amount": 9}, "c1"),))


def test_a_call_has_the_scripts_id_and_each_kind_of_token() -> None:
    usage = Usage(input=9, output=8, cached=3, cache_write=2, reasoning=1)
    driven = played(paying(ASKS, Line("done", usage=usage)))
    assert (driven.output, driven.call.call_id, driven.model_calls[1].usage) == ("done", "c1", usage)


@pytest.mark.parametrize(
    ("decision", "state", "paid"),
    [("granted", "executed", [9]), ("denied", "refused", []), ("edited", "executed", [4])],
)
def test_a_tool_that_needs_approval_asks(decision: str, state: str, paid: list[float]) -> None:
    rule = {"action": "pay", "decision": decision, **({"arguments": {"amount": 4}} if decision == "edited" else {})}
    driven = played(paying(ASKS, Line("done"), needs_approval=True), approvals=[rule])
    assert (driven.states, PAID) == ([("pay", state)], paid)
    assert driven.call.arguments == {"amount": (paid or [9])[0]}


def test_nobody_answers() -> None:
    driven = played(paying(ASKS, needs_approval=True))
    assert (driven.trace.stop_reason, PAID) == (StopReason.WAITING_APPROVAL, [])


def test_agents_hand_over_and_are_asked() -> None:
    desk = AgentScript("desk", (Line(handoff="boss", reason="too much"),), handoffs=("boss",))
    boss = AgentScript("boss", (Line(calls=(Ask("clerk", {"input": "9"}, "n1"),)), Line("done")), nested=("clerk",))
    clerk = AgentScript("clerk", (ASKS, Line("paid")), (Tool(pay),))
    driven = played(desk, boss, clerk)
    assert [(one.source, one.target, one.reason, one.context) for one in driven.handoffs] == [
        ("desk", "boss", "too much", {})
    ]
    assert [(call.name, call.agent) for call in driven.calls] == [("clerk", "boss"), ("pay", "clerk")]
    assert driven.output == "done"


def test_a_handoff_to_nobody_is_refused() -> None:
    driven = played(AgentScript("desk", (Line(handoff="eve"), Line("sorry"))))
    assert [(one.target, one.completed) for one in driven.handoffs] == [("eve", False)]
    assert driven.calls == []


def test_a_conversation_hears_every_turn() -> None:
    hears = Line(" / ".join)
    assert played(AgentScript("desk", (hears, hears)), given="one", turns=("two",)).output == "one / two"


def test_malformed_arguments_stay_text() -> None:
    driven = played(paying(Line(calls=(Ask("pay", "{amount", "c1"),)), Line("sorry")))
    assert (driven.states, driven.call.arguments) == ([("pay", "invalid_arguments")], "{amount")
