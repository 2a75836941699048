"""Model calls of graphs and of LangChain inside functions: held back by rate limits, refused without a price."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool

from graphs import Drive, Driven
from seatrial.agents.detect import agent_for
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason
from seatrial.core.usage import Price
from seatrial.environment.pace import Rates
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing import ScriptedChatModel, say


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now, self.waits, self.paused = 0.0, [], []

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)

    async def pause(self, seconds: float) -> None:
        self.now += seconds
        self.paused.append(seconds)

    def rates(self, **limits: Any) -> Rates:
        spec = RatesSpec.model_validate(limits)
        return Rates(spec, clock=lambda: self.now, sleep=self.sleep, pause=self.pause)


@tool
def look(key: str) -> str:
    """Look."""
    return f"{key} is here"


@tool
async def alook(key: str) -> str:
    """Look, async only."""
    await asyncio.sleep(0)
    return f"{key} is here"


def looking(name: str) -> ScriptedChatModel:
    def play(messages: list[Any]) -> Any:
        tools = sum(message.type == "tool" for message in messages)
        return say("done") if tools == 2 else say(calls=[(name, {"key": f"k{tools}"})])

    return ScriptedChatModel(script=play)


def graph(kind: str) -> Any:
    return create_agent(looking("look"), [look]) if kind == "sync" else create_agent(looking("alook"), [alook])


def name_of_the_model() -> str:
    driven = Drive(graph("sync")).run()
    name = driven.model_calls[0].model
    assert name is not None
    return name


def drive(target: Any, **settings: Any) -> Driven:
    planned = Drive(target).planned("go", (), {})
    record, trace = asyncio.run(run_trial(agent_for(target, AgentSpec()), planned, 1, TrialSettings(**settings)))
    return Driven(record, trace)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_model_calls_of_a_graph_wait_for_their_turn(kind: str) -> None:
    clock = Clock()
    rates = clock.rates(models={name_of_the_model(): {"requests_per_minute": 30}})
    driven = drive(graph(kind), rates=rates)
    assert driven.output == "done"
    assert (clock.waits, clock.paused) == (([2.0, 2.0], []) if kind == "sync" else ([], [2.0, 2.0]))
    assert driven.record.latency_ms == 0.0  # all of it was waiting, by the pretended clock
    assert all(call.latency_ms is not None and call.latency_ms < 1000 for call in driven.model_calls)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_tools_of_a_graph_wait_for_their_turn(kind: str) -> None:
    clock = Clock()
    name = "look" if kind == "sync" else "alook"
    driven = drive(graph(kind), rates=clock.rates(tools={name: {"requests_per_minute": 60}}))
    assert driven.output == "done"
    assert [call.name for call in driven.calls] == [name, name]
    assert (clock.waits or clock.paused) == [1.0]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_model_calls_inside_a_function_wait_for_their_turn(kind: str) -> None:
    model = ScriptedChatModel(script=lambda messages: say("hello"))

    def agent(task: str) -> str:
        return "".join(str(model.invoke(task).text) for _ in range(2))

    async def later(task: str) -> str:
        return "".join([str((await model.ainvoke(task)).text) for _ in range(2)])

    clock = Clock()
    rates = clock.rates(models={name_of_the_model(): {"requests_per_minute": 60}})
    driven = drive(agent if kind == "sync" else later, rates=rates)
    assert driven.output == "hellohello"
    assert (clock.waits, clock.paused) == (([1.0], []) if kind == "sync" else ([], [1.0]))


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_graph_calls_no_model_without_a_price(kind: str) -> None:
    called = []

    def play(messages: list[Any]) -> Any:
        called.append(messages)
        return say("hello")

    target = create_agent(ScriptedChatModel(script=play), [look if kind == "sync" else alook])
    driven = drive(target, priced_only=True)
    assert called == []
    assert driven.record.stop_reason is StopReason.BUDGET
    assert driven.record.invalid_reason is InvalidReason.HARNESS
    prices = {name_of_the_model(): Price(input=1, output=1)}
    assert drive(target, priced_only=True, prices=prices).output == "hello"


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_graph_is_stopped_at_its_limit_of_money(kind: str) -> None:
    target = graph(kind)
    planned = Drive(target).planned("go", (), {})
    limits = planned.case.limits.model_copy(update={"cost_usd": 0.000_012})
    planned = replace(planned, case=planned.case.model_copy(update={"limits": limits}))
    prices = {name_of_the_model(): Price(input=1, output=0)}  # ten tokens a call
    record, _ = asyncio.run(run_trial(agent_for(target, AgentSpec()), planned, 1, TrialSettings(prices=prices)))
    assert record.stop_reason is StopReason.BUDGET
    assert record.cost_usd == pytest.approx(0.00002)
