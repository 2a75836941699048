"""The conformance kit's scripts as LlamaIndex agents."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.llamaindex_framework import LlamaIndexFramework, ReActFramework
from graphs import Driven, drive
from seatrial.core.trace import StopReason, Usage
from seatrial.testing.conformance import AgentScript, Ask, Line, Script, Tool

PAID: list[float] = []


def pay(amount: float) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount:g}"


FRAMEWORKS = pytest.mark.parametrize("framework", [LlamaIndexFramework(), ReActFramework()], ids=["function", "react"])


def played(framework: Any, *agents: AgentScript, streaming: bool = False, **fixture: Any) -> Driven:
    PAID.clear()
    return drive(framework.build(Script(agents, streaming=streaming)), **fixture)


def paying(*lines: Line, needs_approval: bool = False, **more: Any) -> AgentScript:
    return AgentScript("desk", lines, (Tool(pay, needs_approval),), **more)


ASKS = Line(calls=(Ask("pay", {"amount": 9}, "c1"),))


@FRAMEWORKS
@pytest.mark.parametrize("streaming", [True, False])
def test_a_call_has_the_scripts_id_and_each_kind_of_token(framework: Any, streaming: bool) -> None:
    usage = Usage(input=9, output=8, cached=3, cache_write=2, reasoning=1)
    driven = played(framework, paying(ASKS, Line("done", usage=usage)), streaming=streaming)
    assert (driven.output, driven.model_calls[1].usage) == ("done", usage)
    assert framework.own_call_ids or driven.call.call_id == "c1"


@FRAMEWORKS
@pytest.mark.parametrize(
    ("decision", "state", "paid"),
    [("granted", "executed", [9]), ("denied", "refused", []), ("edited", "executed", [4])],
)
def test_a_tool_that_needs_approval_asks(framework: Any, decision: str, state: str, paid: list[float]) -> None:
    rule = {"action": "pay", "decision": decision, **({"arguments": {"amount": 4}} if decision == "edited" else {})}
    driven = played(framework, paying(ASKS, Line("done"), needs_approval=True), approvals=[rule])
    assert (driven.states, PAID) == ([("pay", state)], paid)
    assert driven.call.arguments == {"amount": (paid or [9])[0]}


@FRAMEWORKS
def test_nobody_answers(framework: Any) -> None:
    driven = played(framework, paying(ASKS, needs_approval=True))
    assert (driven.trace.stop_reason, PAID) == (StopReason.WAITING_APPROVAL, [])


@FRAMEWORKS
def test_agents_hand_over_and_are_asked(framework: Any) -> None:
    desk = AgentScript("desk", (Line(handoff="boss", reason="too much"),), handoffs=("boss",))
    boss = AgentScript("boss", (Line(calls=(Ask("clerk", {"request": "9"}, "n1"),)), Line("done")), nested=("clerk",))
    clerk = AgentScript("clerk", (ASKS, Line("paid")), (Tool(pay),))
    driven = played(framework, desk, boss, clerk)
    assert [(one.source, one.target, one.reason, one.completed) for one in driven.handoffs] == [
        ("desk", "boss", "too much", True)
    ]
    assert [(call.name, call.agent) for call in driven.calls] == [("clerk", "boss"), ("pay", "clerk")]
    assert driven.output == "done"


@FRAMEWORKS
@pytest.mark.parametrize("handoffs", [(), ("eve",)])
def test_a_handoff_to_nobody_is_refused(framework: Any, handoffs: tuple[str, ...]) -> None:
    driven = played(framework, AgentScript("desk", (Line(handoff="eve"), Line("sorry")), handoffs=handoffs))
    assert [(one.target, one.completed) for one in driven.handoffs] == [("eve", False)]
    assert (driven.output, driven.calls) == ("sorry", [])


def test_malformed_arguments_stay_text() -> None:
    driven = played(LlamaIndexFramework(), paying(Line(calls=(Ask("pay", "{amount", "c1"),)), Line("sorry")))
    assert (driven.states, driven.call.arguments) == ([("pay", "invalid_arguments")], "{amount")
