"""Watchdog, retries, waiting and resuming meet in the workers of a run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import pytest

from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import Earlier, PlannedCase
from seatrial.core.project import AgentSpec, RateLimit, RatesSpec
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.pace import Rates
from seatrial.environment.trial import current_trial
from seatrial.environment.workspace import FileFixture
from seatrial.runner.budget import Budget, WithinBudget
from seatrial.runner.curtailment import CurtailedTrials
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.remaining import earlier
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings


class Kept:
    def __init__(self) -> None:
        self.records: list[TrialRecord] = []

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


def planned(case_id: str, trials: int = 1, **fields: Any) -> PlannedCase:
    case = Case(id=case_id, input=case_id, **fields)
    return PlannedCase(case, "", (), trials, FileFixture(FixtureSpec(), case=case))


def executor(agent: Any, concurrency: int, **settings: Any) -> LocalExecutor:
    async def no_pause(seconds: float) -> None:
        return

    return LocalExecutor(
        agent_for(agent, AgentSpec()), TrialSettings(**settings), concurrency, sleep=no_pause, grace_s=0.2
    )


QUICK: Mapping[str, Any] = {"limits": {"timeout_s": 0.2}}


async def blocks_or_waits(task: str) -> str:
    """`stuck` blocks the loop; `bystander` is in flight meanwhile, the first time."""
    if task == "stuck":
        await asyncio.sleep(0.01)
        time.sleep(4)
    elif task == "bystander" and not seen:
        seen.append(task)
        await asyncio.sleep(60)
    return task


seen: list[str] = []


@pytest.fixture(autouse=True)
def _unseen() -> None:
    seen.clear()


@pytest.mark.slow
def test_a_broken_off_attempt_is_marked_paid_for_and_made_again() -> None:
    sink = Kept()
    cases = [planned("stuck", **QUICK), planned("bystander")]
    guard = WithinBudget(FixedTrials(cases), sink, Budget(time_s=60))
    executor(blocks_or_waits, 2).run(guard, guard)
    found = [(record.case_id, record.attempt, record.broken_off, str(record.status)) for record in sink.records]
    assert sorted(found) == [
        ("bystander", 1, True, "invalid"),
        ("bystander", 2, False, "ungraded"),
        ("stuck", 1, False, "failed"),
    ]


@pytest.mark.slow
def test_workers_that_wait_for_a_trial_go_on_in_the_fresh_loop() -> None:
    """Three workers wait in the loop that gets blocked; what comes up later is still done."""
    sink = Kept()
    cases = [planned("stuck", **QUICK), planned("quick", trials=4, thresholds={"trials": 4})]
    executor(blocks_or_waits, 5).run(CurtailedTrials(cases), sink)
    done = sorted((record.case_id, record.trial_index) for record in sink.records if not record.broken_off)
    assert done == [*(("quick", number) for number in range(1, 5)), ("stuck", 1)]
    ends = {str(record.stop_reason) for record in sink.records if record.case_id == "quick" and not record.broken_off}
    assert ends == {"answered"}


@pytest.mark.slow
def test_waiting_for_a_turn_on_the_loop_itself_is_not_blocking_it() -> None:
    """The second call waits a second, on the loop, under a limit of 0.2 s and a grace of 0.2 s."""

    async def asks(task: str) -> str:
        trial = current_trial()
        trial.wait_for_model("m")
        trial.wait_for_model("m")
        return task

    sink = Kept()
    rates = Rates(RatesSpec(models={"m": RateLimit(requests_per_minute=60)}))
    executor(asks, 1, rates=rates).run(FixedTrials([planned("patient", **QUICK)]), sink)
    assert [str(record.stop_reason) for record in sink.records] == ["answered"]


def test_numbers_and_retries_go_on_from_what_is_on_record() -> None:
    def unreachable(task: str) -> str:
        raise ConnectionError("reset")

    sink = Kept()
    case = planned("c", retries={"attempts": 3, "on": ["ConnectionError"]})
    before = Earlier(attempts={("c", 1): 2}, broken_off={("c", 1): 1})
    executor(unreachable, 1).start(FixedTrials([case]), sink, before).wait()
    assert [record.attempt for record in sink.records] == [3, 4]


def test_a_trial_whose_last_attempt_was_broken_off_has_more() -> None:
    sink = Kept()
    executor(str.upper, 1).run(FixedTrials([planned("c")]), sink)
    off = sink.records[0].model_copy(update={"broken_off": True})
    assert earlier([planned("c")], [off]) == Earlier(attempts={("c", 1): 1}, broken_off={("c", 1): 1})
