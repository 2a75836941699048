"""Questions of LlamaIndex's tools and workflows to a person: granted, denied, edited, unanswered."""

# No `from __future__ import annotations`: LlamaIndex finds a tool's Context by its annotation, and a text is none.

from typing import Any

import pytest
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import (
    Context,
    HumanResponseEvent,
    InputRequiredEvent,
    StartEvent,
    StopEvent,
    Workflow,
    step,
)

from graphs import Driven, drive
from seatrial.core.trace import StopReason
from seatrial.environment.trial import current_trial
from seatrial.testing.llamaindex import ScriptedLLM, say

PAID: list[float] = []


class Decision(HumanResponseEvent):
    """An answer of the user's own kind."""


async def ask(ctx: Context, action: str, kind: type = HumanResponseEvent, **arguments: Any) -> Any:
    request = InputRequiredEvent(action=action, arguments=arguments, ticket=f"{action}-{arguments}")
    return await ctx.wait_for_event(
        kind, waiter_id=request.ticket, waiter_event=request, requirements={"ticket": request.ticket}
    )


async def pay(ctx: Context, amount: float) -> str:
    """Pay, after having asked."""
    answer = await ask(ctx, "pay", amount=amount)
    if answer.response == "denied":
        return "not paid"
    PAID.append(answer.arguments["amount"])
    return f"paid {answer.arguments['amount']:g}"


async def strict_pay(ctx: Context, amount: float) -> str:
    """Pay, and raise when that was not allowed."""
    if (await ask(ctx, "strict_pay", Decision, amount=amount)).response == "denied":
        raise PermissionError("not allowed")
    return "paid"


async def chat(ctx: Context, topic: str) -> str:
    """Ask whatever."""
    request = InputRequiredEvent(prefix=f"may I talk about {topic}?")
    answer = await ctx.wait_for_event(HumanResponseEvent, waiter_id=topic, waiter_event=request)
    return str(answer.response)


def count(n: int) -> int:
    """Count."""
    return n


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def agent(*calls: Any) -> FunctionAgent:
    llm = ScriptedLLM(script=[say(calls=calls), say("done")])
    return FunctionAgent(name="desk", tools=[pay, strict_pay, chat, count], llm=llm)


def rule(decision: str, action: str = "pay", **more: Any) -> dict[str, Any]:
    return {"action": action, "decision": decision, "by": "supervisor", **more}


def approved(driven: Driven) -> list[tuple[str, Any, str]]:
    return [(one.action, one.arguments, one.decision) for one in driven.approvals]


def test_a_granted_call_is_one_event_after_its_approval() -> None:
    driven = drive(agent(("pay", {"amount": 9}, "c1")), approvals=[rule("granted")])
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    (approval,) = driven.approvals
    assert (approval.call_id, approval.approver, approval.agent) == ("c1", "supervisor", "desk")
    assert approval.ended is not None
    assert approval.ended <= driven.call.number
    assert (driven.states, driven.call.attempt, driven.call.result) == ([("pay", "executed")], 1, "paid 9")
    assert [event.number for event in driven.trace.events] == list(range(1, len(driven.trace.events) + 1))
    assert (driven.output, PAID) == ("done", [9])


def test_a_body_that_returned_after_a_denial_is_executed() -> None:
    driven = drive(agent(("pay", {"amount": 9}, "c1")), approvals=[rule("denied")])
    assert (driven.states, driven.call.result, PAID) == ([("pay", "executed")], "not paid", [])


def test_a_body_that_raised_after_a_denial_is_refused() -> None:
    driven = drive(agent(("strict_pay", {"amount": 9}, "c1")), approvals=[rule("denied", "strict_pay")])
    assert driven.states == [("strict_pay", "refused")]
    assert driven.call.error == "PermissionError: not allowed"


def test_an_answer_has_the_kind_that_the_tool_waits_for() -> None:
    driven = drive(agent(("strict_pay", {"amount": 9}, "c1")), approvals=[rule("granted", "strict_pay")])
    assert driven.states == [("strict_pay", "executed")]


@pytest.mark.parametrize(("scripted", "status"), [(True, "ungraded"), (False, "failed")])
def test_an_unanswered_question_ends_the_turn_as_waiting(scripted: bool, status: str) -> None:
    driven = drive(agent(("pay", {"amount": 9}, "c1")), approvals=[rule("unanswered")] if scripted else [])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert approved(driven) == [("pay", {"amount": 9}, "unanswered")]
    assert (driven.states, driven.record.status, PAID) == ([("pay", "refused")], status, [])


def test_parallel_questions_are_each_answered_and_other_calls_go_on() -> None:
    calls = [("pay", {"amount": 1}, "c1"), ("pay", {"amount": 2}, "c2"), ("count", {"n": 3}, "c3")]
    rules = [rule("denied", when={"amount": 1}), rule("granted")]
    driven = drive(agent(*calls), approvals=rules)
    assert {one.call_id: one.decision for one in driven.approvals} == {"c1": "denied", "c2": "granted"}
    assert {call.call_id: call.result for call in driven.calls} == {"c1": "not paid", "c2": "paid 2", "c3": 3}
    assert PAID == [2]


def test_one_unanswered_among_several_ends_the_turn_when_the_others_are_done() -> None:
    calls = [("pay", {"amount": 1}, "c1"), ("pay", {"amount": 2}, "c2"), ("count", {"n": 3}, "c3")]
    driven = drive(agent(*calls), approvals=[rule("granted", when={"amount": 2})])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert {call.call_id: call.state.value for call in driven.calls} == {
        "c1": "refused",
        "c2": "executed",
        "c3": "executed",
    }


def test_a_question_of_an_unknown_shape_stays_unanswered() -> None:
    driven = drive(agent(("chat", {"topic": "tides"}, "c1")), approvals=[rule("granted", "chat")])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert approved(driven) == [("chat", {"question": {"prefix": "may I talk about tides?"}}, "unanswered")]
    assert driven.states == [("chat", "refused")]


class Asking(Workflow):
    """A workflow of the user's own, whose steps ask."""

    @step
    async def begin(self, ev: StartEvent) -> InputRequiredEvent:
        return InputRequiredEvent(action="send", arguments={"to": ev.to})

    @step
    async def end(self, ev: HumanResponseEvent) -> StopEvent:
        return StopEvent(result=f"{ev.response} by {ev.approver}: {ev.arguments}")


def test_a_step_that_asks_gets_the_answer() -> None:
    driven = drive(Asking(), {"to": "all"}, approvals=[rule("denied", "send")])
    assert driven.output == "denied by supervisor: {'to': 'all'}"


def test_a_step_that_nobody_answers_waits() -> None:
    assert drive(Asking(), {"to": "all"}).trace.stop_reason is StopReason.WAITING_APPROVAL


def test_a_tool_that_asks_through_the_trial_is_linked_to_its_call() -> None:
    def wipe(path: str) -> str:
        """Delete."""
        if not current_trial().approve("wipe", {"path": path}).allowed:
            raise PermissionError("no")
        return "gone"

    llm = ScriptedLLM(script=[say(calls=[("wipe", {"path": "/x"}, "c1")]), say("done")])
    driven = drive(FunctionAgent(tools=[wipe], llm=llm))
    assert driven.approvals[0].call_id == "c1"
    assert driven.states == [("wipe", "refused")]


def test_a_body_that_waited_is_hit_by_a_fault_once() -> None:
    faults = [{"tool": "pay", "on_call": 2, "error": "error"}]
    calls = [("pay", {"amount": 1}, "c1")]
    driven = drive(agent(*calls), approvals=[rule("granted")], faults=faults)
    assert (driven.states, PAID) == ([("pay", "executed")], [1])
