"""Rate limits with a clock of their own: who waits how long, and whose time it is not."""

from __future__ import annotations

import asyncio
import pickle
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial import current_trial
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.pace import Pace, Rates
from seatrial.environment.workspace import FileFixture
from seatrial.runner.trial import TrialSettings, run_trial

SPEC = RatesSpec.model_validate(
    {
        "models": {"m": {"requests_per_minute": 60}},
        "tools": {"search": {"requests_per_minute": 30}},
    }
)


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.waits: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds

    async def pause(self, seconds: float) -> None:
        self.sleep(seconds)

    def rates(self, spec: RatesSpec = SPEC) -> Rates:
        return Rates(spec, clock=lambda: self.now, sleep=self.sleep, pause=self.pause)


def test_calls_are_spaced_evenly_per_model_and_tool() -> None:
    clock = Clock()
    pace = Pace(clock.rates())
    for _ in range(3):
        pace.wait("model", "m")
    pace.wait("tool", "search")
    pace.wait("tool", "search")
    pace.wait("model", "another")
    pace.wait("tool", "m")
    assert clock.waits == [1.0, 1.0, 2.0]


def test_trials_of_a_run_share_its_limits_and_an_idle_minute_saves_nothing_up() -> None:
    clock = Clock()
    rates = clock.rates()
    Pace(rates).wait("model", "m")
    clock.now += 500
    for _ in range(2):
        Pace(rates).wait("model", "m")
    assert clock.waits == [1.0]


@given(st.lists(st.floats(0, 3), min_size=2, max_size=40))
def test_no_minute_holds_more_calls_than_allowed(gaps: list[float]) -> None:
    clock = Clock()
    rates, times = clock.rates(), []
    for gap in gaps:
        clock.now += gap
        times.append(rates.turn("model", "m")[1])
    assert all(later - earlier >= 1 - 1e-9 for earlier, later in pairwise(times))


def test_calls_that_wait_at_the_same_time_count_once() -> None:
    clock = Clock()
    rates = Rates(SPEC, clock=lambda: clock.now, sleep=lambda _: None)
    pace, told = Pace(rates), []
    pace.on_wait = told.append
    for _ in range(4):  # side by side: at 0, 1, 2 and 3 s, all asked for now
        pace.wait("model", "m")
    assert pace.waited_s == pytest.approx(3.0)
    assert told == [1.0, 1.0, 1.0]


def test_limits_reach_another_process_as_limits_of_its_own() -> None:
    assert pickle.loads(pickle.dumps(Rates(SPEC))).limited("model", "m")


def trial(agent: Any, clock: Clock, spec: dict[str, Any] | None = None, **case: Any) -> tuple[TrialRecord, Trace]:
    made = Case(id="c", input="hello", **case)
    fixture = FileFixture(FixtureSpec.model_validate(spec or {}), case=made)
    planned = PlannedCase(made, "", (), 1, fixture)
    settings = TrialSettings(rates=clock.rates())
    return asyncio.run(run_trial(agent_for(agent, AgentSpec()), planned, 1, settings))


STAND_IN = {"tools": {"search": [{"otherwise": True, "returns": "found"}]}}


def test_tools_wait_for_their_turn_and_the_waiting_is_nobodys_time() -> None:
    """The waiting is pretended here, so it must come out of a latency in which it never was: none is left."""

    def agent(task: str) -> str:
        tools = current_trial().tools
        return "".join(tools.search(query=task) for _ in range(3))

    clock = Clock()
    record, trace = trial(agent, clock, STAND_IN)
    assert clock.waits == [2.0, 2.0]
    assert record.output == "found" * 3
    assert record.latency_ms == 0.0
    assert all(call.duration_ms is not None and call.duration_ms < 1000 for call in trace.tool_calls)


def test_own_async_tools_wait_without_holding_up_the_loop() -> None:
    async def search(query: str) -> str:
        return query

    async def agent(task: str) -> str:
        own = current_trial().tool(search)
        return "".join(await asyncio.gather(own(query="a"), own(query="b")))

    clock = Clock()
    record, _ = trial(agent, clock)
    assert (record.output, clock.waits) == ("ab", [2.0])


def test_an_agent_that_calls_its_model_itself_asks_for_its_turn() -> None:
    def agent(task: str) -> str:
        for _ in range(3):
            current_trial().wait_for_model("m")
        return task

    clock = Clock()
    trial(agent, clock)
    assert clock.waits == [1.0, 1.0]


def test_waiting_is_added_to_the_time_limit() -> None:
    """The turn comes later than the time limit; the trial lives on for as long as it had to wait."""

    async def agent(task: str) -> str:
        for _ in range(2):
            await asyncio.to_thread(current_trial().wait_for_model, "m")
        await asyncio.sleep(0.15)
        return task

    clock = Clock()  # pretends to wait a second: so much is added to the limit
    record, _ = trial(agent, clock, limits={"timeout_s": 0.1})
    assert record.stop_reason is StopReason.ANSWERED
