"""Workers that wait for trials, judges that wait for places, attempts that wait for their turn."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from seatrial.agents.detect import agent_for
from seatrial.core.case import Case, Retries
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.workspace import FileFixture
from seatrial.runner.curtailment import CurtailedTrials
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.retrying import LONGEST_S, backoff_s
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings, seed_of
from seatrial.runner.waiting import Places, Turns


class Kept:
    def __init__(self) -> None:
        self.records: list[TrialRecord] = []

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


class Meter:
    """Counts what is active at once, in one loop."""

    active = peak = 0

    async def stay(self) -> None:
        self.active += 1
        self.peak = max(self.peak, self.active)
        for _ in range(5):
            await asyncio.sleep(0)
        self.active -= 1


class Says:
    """A grader that may be a judge."""

    required, needs_answer, blocking = True, True, False

    def __init__(self, meter: Meter, *, judge: bool, name: str = "judge") -> None:
        self.meter, self.judge, self.name = meter, judge, name

    async def grade(self, context: GradingContext) -> Grade:
        await self.meter.stay()
        return Grade(verdict=Verdict.PASS, cost_usd=0.25 if self.judge else None)


def planned(count: int, *graders: Any, trials: int = 1, **case: Any) -> list[PlannedCase]:
    cases = [Case(id=f"c{number}", input=str(number), thresholds={"trials": trials}, **case) for number in range(count)]
    fixtures = [FileFixture(FixtureSpec(), case=item) for item in cases]
    return [
        PlannedCase(item, "", graders, trials, fixture, order=n)
        for n, (item, fixture) in enumerate(zip(cases, fixtures, strict=True))
    ]


async def echo(task: str) -> str:
    await asyncio.sleep(0)
    return task


@pytest.mark.parametrize("places", [1, 3])
def test_no_more_judges_are_asked_at_once_than_allowed_and_other_graders_are_not_held_up(places: int) -> None:
    judges, others = Meter(), Meter()
    cases = planned(40, Says(others, judge=False, name="other"), Says(judges, judge=True))
    sink = Kept()
    settings = TrialSettings(judges=Places(places))
    LocalExecutor(agent_for(echo, AgentSpec()), settings, 20).run(FixedTrials(cases), sink)
    assert len(sink.records) == 40
    assert judges.peak == places
    assert others.peak > places
    assert {record.judge_cost_usd for record in sink.records} == {0.25}


def test_bl_112_a_judge_that_does_not_say_what_it_cost_leaves_the_verdict_alone() -> None:
    class Silent(Says):
        async def grade(self, context: GradingContext) -> Grade:
            return Grade(verdict=Verdict.PASS)

    sink = Kept()
    cases = planned(1, Silent(Meter(), judge=True), Says(Meter(), judge=True, name="second"))
    LocalExecutor(agent_for(echo, AgentSpec()), TrialSettings(), 1).run(FixedTrials(cases), sink)
    assert (str(sink.records[0].status), sink.records[0].judge_cost_usd) == ("passed", None)


async def test_a_place_that_is_waited_for_in_vain_goes_to_the_next() -> None:
    places, order = Places(1), []

    async def hold(name: str) -> None:
        async with places:
            order.append(name)
            await asyncio.sleep(0)

    async with places:
        tasks = [asyncio.create_task(hold(name)) for name in "abc"]
        await asyncio.sleep(0)
        tasks[0].cancel()
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == ["b", "c"]


async def test_cancelling_one_that_was_just_woken_wakes_another() -> None:
    places, order = Places(1), []

    async def hold(name: str) -> None:
        async with places:
            order.append(name)

    await places.__aenter__()
    first, second = asyncio.create_task(hold("a")), asyncio.create_task(hold("b"))
    await asyncio.sleep(0)
    await places.__aexit__(None, None, None)
    first.cancel()
    await asyncio.gather(first, second, return_exceptions=True)
    assert order == ["b"]


def test_limits_reach_another_process_as_limits_of_its_own() -> None:
    assert pickle.loads(pickle.dumps(Places(3))).places == 3


def test_workers_wait_for_trials_that_only_come_when_others_end() -> None:
    """Every trial of one case must pass, so they come one by one, though ten workers stand ready."""
    sink = Kept()
    executor = LocalExecutor(agent_for(echo, AgentSpec()), TrialSettings(), 10)
    executor.run(CurtailedTrials(planned(2, Says(Meter(), judge=False), trials=7)), sink)
    assert sorted(str(record.key) for record in sink.records) == [f"c{n}#{i}" for n in (0, 1) for i in range(1, 8)]


def test_nobody_waits_when_nothing_is_in_flight() -> None:
    turns = Turns(FixedTrials([]))
    assert [turns.ask() for _ in range(5)] == [None] * 5


# --- attempts -------------------------------------------------------------------------------------------------------


def attempts(agent: Any, **retries: Any) -> tuple[list[TrialRecord], list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    sink = Kept()
    executor = LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(seed=7), 1, sleep=sleep)
    executor.run(FixedTrials(planned(1, retries=retries)), sink)
    return sink.records, slept


def unreachable(task: str) -> str:
    raise ConnectionError("reset")


def test_attempts_wait_twice_as_long_each_time_by_the_trials_own_seed() -> None:
    retries = {"attempts": 4, "on": ["ConnectionError"], "backoff_s": 2}
    records, slept = attempts(unreachable, **retries)
    assert [record.attempt for record in records] == [1, 2, 3, 4]
    seed = seed_of(7, "c0", 1)
    assert slept == [backoff_s(Retries(**retries), seed, attempt) for attempt in (1, 2, 3)]
    for waited, longest in zip(slept, (2, 4, 8), strict=True):
        assert longest / 2 <= waited <= longest
    assert attempts(unreachable, **retries)[1] == slept


def test_waiting_between_attempts_is_in_no_latency() -> None:
    records, slept = attempts(unreachable, attempts=2, on=["ConnectionError"], backoff_s=50)
    assert slept[0] >= 25
    assert all(record.latency_ms is not None and record.latency_ms < 25_000 for record in records)


def test_what_is_not_named_is_not_repeated() -> None:
    records, slept = attempts(unreachable, attempts=4, on=["TimeoutError", "timeout"])
    assert (len(records), slept) == (1, [])


def test_pauses_never_grow_beyond_a_minute() -> None:
    assert backoff_s(Retries(attempts=5000), 1, 4999) <= LONGEST_S


def _seeds() -> Iterator[float]:
    return (backoff_s(Retries(), seed, 1) for seed in range(50))


def test_trials_that_failed_together_do_not_come_back_together() -> None:
    assert len(set(_seeds())) == 50
