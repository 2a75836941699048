"""Hard stops of money, and what tokens cost."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seatrial import AgentRun, ModelCall, ToolCall, current_trial
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import StopReason, Trace, Usage
from seatrial.core.trial import InvalidReason, Tokens, TrialRecord, TrialStatus
from seatrial.core.usage import Price, summed
from seatrial.environment.workspace import FileFixture
from seatrial.runner.trial import TrialSettings, run_trial

PRICES = {"m": Price(input=1_000_000, output=0)}
"""A dollar an input token."""


def trial(agent: Any, limit: float | None = None, *, priced_only: bool = False) -> tuple[TrialRecord, Trace]:
    case = Case(id="c", input="hello", limits={} if limit is None else {"cost_usd": limit})
    planned = PlannedCase(case, "", (), 1, FileFixture(FixtureSpec(), case=case))
    settings = TrialSettings(prices=PRICES, priced_only=priced_only)
    return asyncio.run(run_trial(agent_for(agent, AgentSpec()), planned, 1, settings))


def calls_forever(task: str) -> str:
    while True:
        try:
            current_trial().record(ModelCall("m", 1, 0))
        except Exception:
            continue


def test_a_trial_above_its_limit_is_stopped_though_the_agent_swallows_exceptions() -> None:
    record, trace = trial(calls_forever, 3)
    assert (record.status, record.stop_reason) == (TrialStatus.FAILED, StopReason.BUDGET)
    assert record.detail == "budget: the trial went above its limit of 3 USD"
    assert record.cost_usd == 4  # the call that went above it is on record, and no other was made
    assert len(trace.events) == 1 + 4


def test_a_limit_that_is_reached_and_not_exceeded_stops_nothing() -> None:
    def agent(task: str) -> str:
        for _ in range(3):
            current_trial().record(ModelCall("m", 1, 0))
        return task

    assert trial(agent, 3)[0].stop_reason is StopReason.ANSWERED


@pytest.mark.parametrize(
    "answer",
    [
        AgentRun("x", usage=[{"model": "m", "input": 1, "output": 0}] * 5),
        AgentRun("x", estimated_cost_usd=5.0),
        AgentRun("x", tool_calls=[ToolCall("look")] * 3, usage=[{"model": "m", "input": 5, "output": 0}]),
    ],
)
def test_a_cost_reported_afterwards_fails_the_trial_and_is_whole(answer: AgentRun) -> None:
    record, trace = trial(lambda task: answer, 3)
    assert record.stop_reason is StopReason.BUDGET
    assert record.cost_usd == 5
    assert len(trace.tool_calls) == len(answer.tool_calls)


def test_a_model_without_a_price_is_not_called_where_that_is_seen_before() -> None:
    called = []

    def agent(task: str) -> str:
        recorder = current_trial().recorder
        number = recorder.begin_model_call("new-model")  # as an adapter does
        called.append(number)
        return task

    record, _ = trial(agent, priced_only=True)
    assert called == []
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.HARNESS)
    assert record.stop_reason is StopReason.BUDGET
    assert record.detail == "budget: the price of model 'new-model' is unknown"
    assert trial(agent)[0].stop_reason is StopReason.ANSWERED


def test_bl_108_every_token_is_charged_once_at_its_own_rate() -> None:
    price = Price(input=3.00, cached=0.30, cache_write=3.75, output=15.0)
    usage = Usage(input=2000, output=0, cached=500, cache_write=300)
    assert price.of(usage) == pytest.approx(0.004875, abs=1e-15)
    reasoning = Price(input=1.0, output=10.0, reasoning=4.0)
    assert reasoning.of(Usage(input=0, output=1000, reasoning=600)) == pytest.approx((400 * 10 + 600 * 4) / 1e6)


def test_tokens_of_attempts_add_up_and_stay_unknown_where_one_did_not_say() -> None:
    one, two = Tokens(input=100, output=10), Tokens(input=100, output=20, cached=5)
    assert summed([one, two]) == Tokens(input=200, output=30, cached=5)
    assert summed([one, Tokens()]).input is None
