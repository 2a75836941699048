"""Calls that models asked for: whose they are, what ran, and what became of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from seatrial.agents.asked import AskedCall, AskedCalls
from seatrial.core.case import Case
from seatrial.core.trace import Handoff, ToolCallEvent
from seatrial.environment.handing_over import handed_over
from seatrial.environment.trial import TrialEnvironment


@pytest.fixture
def trial() -> Iterator[TrialEnvironment]:
    made = TrialEnvironment(Case(id="a"))
    with made.activate():
        yield made
    made.clean_up()


def calls_of(trial: TrialEnvironment) -> list[ToolCallEvent]:
    return [event for event in trial.recorder.freeze() if isinstance(event, ToolCallEvent)]


async def gives(value: Any) -> Any:
    return value


async def test_only_plain_values_take_the_tools_form(trial: TrialEnvironment) -> None:
    call = AskedCall("pay", '{"amount": "750", "when": "2026-01-01"}', "c1")
    await AskedCalls(trial).run(call, {"amount": 750, "when": object(), "memo": "default"}, lambda: gives("paid"))
    (event,) = calls_of(trial)
    assert event.arguments == {"amount": 750, "when": "2026-01-01"}
    assert event.asked == {"amount": "750", "when": "2026-01-01"}


async def test_a_body_that_waits_has_not_happened_yet(trial: TrialEnvironment) -> None:
    async def waits() -> None:
        raise LookupError

    calls = AskedCalls(trial)
    call = calls.ask(AskedCall("pay", {}, "c1"))
    with pytest.raises(LookupError):
        await calls.run(call, {}, waits, waits=(LookupError,))
    assert calls_of(trial) == []
    assert list(calls.open()) == [call]
    await calls.run(call, {}, lambda: gives("paid"))
    assert [(event.number, event.attempt, event.result) for event in calls_of(trial)] == [(1, 1, "paid")]


def test_what_is_open_at_the_end_never_ran(trial: TrialEnvironment) -> None:
    calls = AskedCalls(trial)
    trial.approve("stopped", {}, call_id="c1")
    calls.ask(AskedCall("stopped", {}, "c1"))
    calls.ask(AskedCall("ghost", {}, "c2", offered=False))
    calls.ask(AskedCall("odd", {"a": 1}, "c3")).rejected = "a is no text"
    calls.ask(AskedCall("broken", "[1", "c4"))
    calls.ask(AskedCall("left", {}, "c5"))
    calls.ask(AskedCall("transfer_to_nobody", {"reason": "x"}, "c6"))
    calls.close()
    calls.close()
    assert [(event.name, event.state.value) for event in calls_of(trial)] == [
        ("stopped", "refused"),
        ("ghost", "unknown_tool"),
        ("odd", "invalid_arguments"),
        ("broken", "invalid_arguments"),
        ("left", "unknown"),
    ]
    handoffs = [event for event in trial.recorder.freeze() if isinstance(event, Handoff)]
    assert [(event.target, event.completed) for event in handoffs] == [("nobody", False)]


def test_an_id_belongs_to_its_owner(trial: TrialEnvironment) -> None:
    calls = AskedCalls(trial)
    outer = calls.ask(AskedCall("a", {}, "c1", owner="outer"))
    inner = calls.ask(AskedCall("b", {}, "c1", owner="inner"))
    assert (calls.by_id("c1", "outer"), calls.by_id("c1", "inner"), calls.by_id("c1")) == (outer, inner, None)
    again = calls.ask(AskedCall("a", {}, "c1", owner="outer"))
    assert calls.by_id("c1", "outer") is again
    assert calls.waiting("c1") is outer


@pytest.mark.parametrize(
    ("name", "arguments", "target"),
    [
        ("transfer_to_billing", {}, "billing"),
        ("transfer_to_agent", {"agent_name": "billing"}, "billing"),
        ("handoff", {"target": "billing"}, "billing"),
        ("handoff", {"to": "billing"}, "billing"),
        ("handoff", {"to_agent": "billing"}, "billing"),
        ("handoff", {"agent": "billing"}, "billing"),
        ("handoff", {}, "unknown"),
        ("pay", {"target": "x"}, None),
    ],
)
def test_whom_a_call_hands_over_to(name: str, arguments: dict[str, Any], target: str | None) -> None:
    assert AskedCall(name, arguments).target == target


def test_a_handoffs_context_is_its_arguments_taken_apart() -> None:
    assert handed_over({"reason": "limit", "order": 1, "context": {"id": 2}}) == ("limit", {"order": 1, "id": 2})
    assert handed_over({"context": "text"}) == (None, {"context": "text"})
