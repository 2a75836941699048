"""What frameworks build from a script does what the script says."""

from __future__ import annotations

from typing import Any

import pytest

from conformance.google_adk_framework import GoogleADKFramework
from conformance.pydantic_ai_framework import PydanticAIFramework
from graphs import drive
from seatrial.core.trace import StopReason, Usage
from seatrial.testing.conformance.script import AgentScript, Ask, Framework, Line, Script, Tool

FRAMEWORKS: list[Any] = [PydanticAIFramework(), GoogleADKFramework()]


def add(a: int, b: int = 0) -> int:
    """Add."""
    return a + b


def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount:g}"


@pytest.fixture(params=FRAMEWORKS, ids=lambda framework: framework.kind)
def framework(request: pytest.FixtureRequest) -> Framework:
    return request.param  # type: ignore[no-any-return]


def desk(*lines: Line, **more: Any) -> AgentScript:
    return AgentScript("desk", lines, **more)


@pytest.mark.parametrize("streaming", [False, True])
def test_calls_ids_usage_and_model(framework: Framework, streaming: bool) -> None:
    usage = Usage(input=20, output=9, cached=4, reasoning=3)
    lines = (
        Line("let me see", calls=(Ask("add", {"a": 1}, "c1"), Ask("add", {"a": 5}, "c2")), usage=usage),
        Line("ok"),
    )
    agent = framework.build(Script((desk(*lines, tools=(Tool(add),), model="gpt-x"),), streaming=streaming))
    driven = drive(agent)
    assert driven.output == "ok"
    assert [(call.call_id, call.result) for call in driven.calls] == [("c1", 1), ("c2", 5)]
    assert [(call.model, call.agent) for call in driven.model_calls] == [("gpt-x", "desk")] * 2
    assert driven.model_calls[0].usage == usage
    assert driven.model_calls[1].usage == Usage(input=10, output=5)


def test_no_usage_is_unknown(framework: Framework) -> None:
    assert drive(framework.build(Script((desk(Line("ok", usage=None)),)))).model_calls[0].usage is None


def test_nested_agents(framework: Framework) -> None:
    below = AgentScript("below", (Line(calls=(Ask("add", {"a": 1}, "c1"),)), Line("one")), tools=(Tool(add),))
    above = desk(Line(calls=(Ask("below", {}, "c1"),)), Line("done"), nested=("below",))
    driven = drive(framework.build(Script((above, below))))
    assert [(call.name, call.agent) for call in driven.calls] == [("below", "desk"), ("add", "below")]
    assert [call.agent for call in driven.model_calls] == ["desk", "below", "below", "desk"]


def test_a_handoff_and_a_refused_one(framework: Framework) -> None:
    expert = AgentScript("expert", (Line(lambda said: f"expert heard {said[-1]}"),))
    taken = drive(framework.build(Script((desk(Line(handoff="expert"), handoffs=("expert",)), expert))), "help")
    assert [(one.source, one.target, one.completed) for one in taken.handoffs] == [("desk", "expert", True)]
    assert (taken.output, taken.calls) == ("expert heard help", [])
    lines = (Line(handoff="ghost"), Line("sorry"))
    refused = drive(framework.build(Script((desk(*lines, handoffs=("expert",)), expert))))
    assert [(one.source, one.target, one.completed) for one in refused.handoffs] == [("desk", "ghost", False)]
    assert refused.calls == []
    if framework.kind == "google_adk":  # it raises instead of telling the model
        assert refused.trace.stop_reason is StopReason.AGENT_ERROR
    else:
        assert refused.output == "sorry"


@pytest.mark.parametrize(
    ("decision", "states", "stopped"),
    [
        ("granted", ["executed"], StopReason.ANSWERED),
        ("denied", ["refused"], StopReason.ANSWERED),
        ("unanswered", ["refused"], StopReason.WAITING_APPROVAL),
    ],
)
def test_approvals(framework: Framework, decision: str, states: list[str], stopped: StopReason) -> None:
    lines = (Line(calls=(Ask("pay", {"amount": 5}, "c1"),)), Line("ok"))
    agent = framework.build(Script((desk(*lines, tools=(Tool(pay, needs_approval=True),)),)))
    driven = drive(agent, approvals=[{"action": "pay", "decision": decision, "by": "boss"}])
    assert [one.decision for one in driven.approvals] == [decision]
    assert ([state for _, state in driven.states], driven.trace.stop_reason) == (states, stopped)


def test_unknown_tools_bad_arguments_and_errors(framework: Framework) -> None:
    calls = (Ask("ghost", {}, "c1"), Ask("add", {"b": 1}, "c2"))
    script = Script((desk(Line(calls=calls), Line("ok"), tools=(Tool(add),)),))
    assert dict(drive(framework.build(script)).states) == {"ghost": "unknown_tool", "add": "invalid_arguments"}
    failing = drive(framework.build(Script((desk(Line(error=RuntimeError("down"))),))))
    assert failing.model_calls[0].error == "RuntimeError: down"
    assert failing.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_conversation_and_its_isolation(framework: Framework) -> None:
    script = Script((desk(*[Line(" ".join)] * 3),))
    agent = framework.build(script)
    for _ in range(2):
        assert drive(agent, "a", "b", "c").trace.outputs == ("a", "a b", "a b c")
