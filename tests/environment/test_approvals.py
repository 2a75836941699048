"""Scripted approvals, and what they make of the calls they are about."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.core.trace import Approval, CallState, Observable, ToolCallEvent

RULES = [
    {"action": "pay", "when": {"amount": {"$gt": 500}}, "decision": "denied", "by": "supervisor"},
    {"action": "pay", "when": {"amount": {"$gt": 100}}, "decision": "edited", "arguments": {"amount": 100}, "by": "x"},
    {"action": "pay", "when": {"to": "$input.user"}, "decision": "unanswered"},
    {"action": "pay", "decision": "granted", "by": "clerk"},
]


@pytest.fixture
def trial(make_trial: Any) -> Any:
    return make_trial(approvals=RULES, case_input={"user": "bob"}, identity={"agent": "cashier"})


@pytest.mark.parametrize(
    ("asked", "decision", "arguments", "approver"),
    [
        ({"amount": 501}, "denied", {"amount": 501}, "supervisor"),
        ({"amount": 500, "to": "eve"}, "edited", {"amount": 100, "to": "eve"}, "x"),
        ({"amount": 5, "to": "bob"}, "unanswered", {"amount": 5, "to": "bob"}, None),
        ({"amount": 5}, "granted", {"amount": 5}, "clerk"),
        ('{"amount": 501}', "denied", {"amount": 501}, "supervisor"),
        (None, "granted", {}, "clerk"),
    ],
)
def test_the_first_rule_that_matches_answers(
    trial: Any, asked: Any, decision: str, arguments: Any, approver: str | None
) -> None:
    answer = trial.approve("pay", asked)
    assert (answer.decision, answer.arguments, answer.approver) == (decision, arguments, approver)
    assert answer.allowed is (decision in ("granted", "edited"))
    assert answer.scripted
    approval = next(trial_event for trial_event in trial.recorder.freeze() if isinstance(trial_event, Approval))
    assert (approval.action, approval.decision, approval.approver, approval.agent) == (
        "pay",
        decision,
        approver,
        "cashier",
    )
    assert approval.approved_arguments == (arguments if decision == "edited" else None)
    assert Observable.APPROVALS in trial.recorder.observes


def test_without_a_matching_rule_nobody_answers(trial: Any) -> None:
    answer = trial.approve("delete_account", {"id": 1})
    assert (answer.decision, answer.approver, answer.scripted, answer.allowed) == ("unanswered", None, False, False)


def calls_of(trial: Any) -> list[tuple[str, CallState]]:
    return [(event.name, event.state) for event in trial.recorder.freeze() if isinstance(event, ToolCallEvent)]


def test_a_body_that_raises_after_its_own_denial_is_refused(trial: Any) -> None:
    def pay(amount: int) -> str:
        if not trial.approve("pay", {"amount": amount}).allowed:
            raise PermissionError("not approved")
        return "paid"

    with pytest.raises(PermissionError):
        trial.tool(pay)(501)
    assert trial.tool(pay)(5) == "paid"
    assert calls_of(trial) == [("pay", CallState.REFUSED), ("pay", CallState.EXECUTED)]


def test_a_body_that_returns_after_its_own_denial_has_executed(trial: Any) -> None:
    def pay(amount: int) -> str:
        trial.approve("pay", {"amount": amount})
        return "paid all the same"

    trial.tool(pay)(501)
    assert calls_of(trial) == [("pay", CallState.EXECUTED)]


def test_a_denial_asked_for_before_the_call_is_that_calls_own(trial: Any) -> None:
    def pay(amount: int) -> str:
        raise RuntimeError("no approval on file")

    trial.approve("pay", {"amount": 501})
    tool = trial.tool(pay)
    for amount in (501, 502):
        with pytest.raises(RuntimeError):
            tool(amount)
    assert calls_of(trial) == [("pay", CallState.REFUSED), ("pay", CallState.FAILED)]
    assert trial.stopped("pay", {"amount": 501})
    assert not trial.stopped("pay", {"amount": 502})


def test_an_edited_approval_is_that_of_the_edited_call(trial: Any) -> None:
    answer = trial.approve("pay", {"amount": 500})
    assert not trial.stopped("pay", answer.arguments)


def test_a_body_that_gets_an_edited_answer_for_its_own_call_runs_with_that(trial: Any) -> None:
    def pay(amount: int) -> str:
        return f"paid {trial.approve('pay', {'amount': amount}).arguments['amount']}"

    assert trial.tool(pay)(500) == "paid 100"
    (call,) = (event for event in trial.recorder.freeze() if isinstance(event, ToolCallEvent))
    assert (call.arguments, call.asked, call.state) == ({"amount": 100}, {"amount": 500}, CallState.EXECUTED)


def test_an_edited_answer_for_another_action_changes_no_call(trial: Any) -> None:
    def refund(amount: int) -> str:
        trial.approve("pay", {"amount": amount})
        return "done"

    trial.tool(refund)(500)
    (call,) = (event for event in trial.recorder.freeze() if isinstance(event, ToolCallEvent))
    assert (call.arguments, call.asked) == ({"amount": 500}, None)


def test_a_denial_without_any_call_leaves_a_refused_one(trial: Any) -> None:
    trial.approve("pay", {"amount": 501})
    assert calls_of(trial) == [("pay", CallState.REFUSED)]


async def test_async_bodies_have_their_own_approvals(trial: Any) -> None:
    async def pay(amount: int) -> str:
        if not trial.approve("pay", {"amount": amount}).allowed:
            raise PermissionError("not approved")
        return "paid"

    tool = trial.tool(pay)
    with pytest.raises(PermissionError):
        await tool(501)
    assert await tool(5) == "paid"
    assert calls_of(trial) == [("pay", CallState.REFUSED), ("pay", CallState.EXECUTED)]


def test_call_ids_tell_calls_with_equal_arguments_apart(trial: Any) -> None:
    trial.approve("pay", {"amount": 501}, call_id="a")
    assert trial.stopped("anything", {}, call_id="a")
    assert not trial.stopped("pay", {"amount": 501}, call_id="b")


def test_edited_arguments_are_the_agents_own_copy(trial: Any) -> None:
    trial.approve("pay", {"amount": 500}).arguments["amount"] = 9_999
    assert trial.approve("pay", {"amount": 500}).arguments == {"amount": 100}
