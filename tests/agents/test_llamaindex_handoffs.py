"""Hand-offs of an AgentWorkflow: completed, refused, several at once; never tool calls."""

from __future__ import annotations

from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent

from graphs import Driven, drive
from seatrial.core.trace import Observable
from seatrial.testing.llamaindex import ScriptedLLM, say


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def member(name: str, *script: Any, kind: type = FunctionAgent, **settings: Any) -> Any:
    return kind(name=name, description=f"is {name}", llm=ScriptedLLM(script=list(script)), **settings)


def team(*agents: Any) -> AgentWorkflow:
    return AgentWorkflow(agents=list(agents), root_agent=agents[0].name)


def to(target: str, call_id: str = "h1", **more: Any) -> Any:
    return ("handoff", {"to_agent": target, "reason": "maths", **more}, call_id)


def told(driven: Driven) -> list[tuple[str, str, bool]]:
    return [(one.source, one.target, one.completed) for one in driven.handoffs]


def test_a_handoff_that_is_not_allowed_is_refused() -> None:
    alice = member("alice", say(calls=[to("carol")]), say("sorry"), can_handoff_to=["bob"])
    driven = drive(team(alice, member("bob"), member("carol")))
    assert told(driven) == [("alice", "carol", False)]


def test_a_handoff_with_other_arguments_is_refused() -> None:
    alice = member("alice", say(calls=[to("bob", "h1", mood="good")]), say("sorry"))
    driven = drive(team(alice, member("bob")))
    assert told(driven) == [("alice", "bob", False)]
    assert driven.calls == []


def test_of_two_handoffs_at_once_the_one_that_goes_on_was_completed() -> None:
    alice = member("alice", say(calls=[to("bob", "h1"), to("carol", "h2")]))
    driven = drive(team(alice, member("bob", say("bob")), member("carol", say("carol"))))
    completed = [target for _, target, done in told(driven) if done]
    assert completed == [driven.model_calls[-1].agent]
    assert len(driven.handoffs) == 2


def test_a_handoff_beside_a_call_shares_its_step() -> None:
    alice = member("alice", say(calls=[("add", {"a": 1, "b": 2}, "c1"), to("bob")]), tools=[add])
    driven = drive(team(alice, member("bob", say("3"))))
    assert driven.call.step == driven.handoffs[0].step == driven.model_calls[0].number
    assert told(driven) == [("alice", "bob", True)]


def test_going_back_and_forth_is_told_in_order() -> None:
    alice = member("alice", say(calls=[to("bob", "h1")]), say("thanks"))
    bob = member("bob", say(calls=[to("alice", "h2")]))
    driven = drive(team(alice, bob))
    assert told(driven) == [("alice", "bob", True), ("bob", "alice", True)]
    assert driven.output == "thanks"


def test_a_react_agent_hands_over_too() -> None:
    text = 'Thought: ask bob\nAction: handoff\nAction Input: {"to_agent": "bob", "reason": "maths"}'
    driven = drive(team(member("alice", say(text), kind=ReActAgent), member("bob", say("3"))))
    assert told(driven) == [("alice", "bob", True)]


def test_one_agent_alone_cannot_hand_over() -> None:
    driven = drive(member("alice", say(calls=[to("bob")]), say("sorry")))
    assert told(driven) == [("alice", "bob", False)]
    assert driven.calls == []


def test_a_tool_that_is_named_as_a_handoff_is_one_with_its_arguments_as_context() -> None:
    def transfer_to_desk(reason: str, context: dict[str, Any]) -> str:
        """Give it to the desk."""
        return "the desk takes over"

    given = {"reason": "above the limit", "context": {"order_id": "O-1"}}
    alice = member("alice", say(calls=[("transfer_to_desk", given, "h1")]), say("done"), tools=[transfer_to_desk])
    driven = drive(alice)
    assert told(driven) == [("alice", "desk", True)]
    assert (driven.handoffs[0].reason, driven.handoffs[0].context) == ("above the limit", {"order_id": "O-1"})
    assert Observable.HANDOFF_CONTEXT in driven.trace.observes
