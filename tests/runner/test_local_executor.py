"""Trials in flight: never more than allowed, in file order with one worker, retried only for what is named."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import pytest

from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.workspace import FileFixture
from seatrial.errors import StorageError
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings


class Kept:
    def __init__(self) -> None:
        self.records: list[TrialRecord] = []

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


class Meter:
    """Counts what is active at once."""

    def __init__(self) -> None:
        self.lock, self.active, self.peak = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self.lock:
            self.active += 1
            self.peak = max(self.peak, self.active)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.active -= 1


def planned(count: int, *, trials: int = 1, grader: Any = None, **case: Any) -> list[PlannedCase]:
    cases = [Case(id=f"c{n}", input=str(n), **case) for n in range(count)]
    return [
        PlannedCase(
            item, item.digest, (grader,) if grader else (), trials, FileFixture(FixtureSpec(), case=item), order=n
        )
        for n, item in enumerate(cases)
    ]


def run(agent: Any, cases: list[PlannedCase], concurrency: int = 10) -> list[TrialRecord]:
    sink = Kept()
    LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), concurrency).run(FixedTrials(cases), sink)
    return sink.records


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("whose", ["agent", "grader"])
def test_a_task_that_raises_system_exit_ends_its_trial_and_no_other(error: type[BaseException], whose: str) -> None:
    async def stop() -> None:
        raise error

    async def in_a_task() -> None:
        await asyncio.gather(asyncio.create_task(stop()), asyncio.sleep(0))

    async def agent(task: str) -> str:
        if whose == "agent" and task == "1":
            await in_a_task()
        return task

    class Judge:
        name, required, needs_answer, blocking = "judge", True, True, False

        async def grade(self, context: GradingContext) -> Grade:
            if whose == "grader" and context.case.input == "1":
                await in_a_task()
            return Grade(verdict=Verdict.PASS)

    records = {record.case_id: record for record in run(agent, planned(5, grader=Judge()))}
    assert {name: record.status.value for name, record in records.items()} == {
        **dict.fromkeys(("c0", "c2", "c3", "c4"), "passed"),
        "c1": "failed" if whose == "agent" else "invalid",
    }


@pytest.mark.parametrize("cap", [1, 3])
def test_bl_068_no_more_trials_in_flight_than_allowed_counting_agent_and_graders(cap: int) -> None:
    meter = Meter()
    started: list[str] = []

    async def agent(task: str) -> str:
        started.append(task)
        with meter:
            for _ in range(5):
                await asyncio.sleep(0)
        return task

    class Judge:
        name, required, needs_answer, blocking = "judge", True, True, False

        async def grade(self, context: GradingContext) -> Grade:
            with meter:
                for _ in range(5):
                    await asyncio.sleep(0)
            return Grade(verdict=Verdict.PASS)

    records = run(agent, planned(30, grader=Judge()), cap)
    assert len(records) == 30
    assert meter.peak == cap
    assert started == [str(n) for n in range(30)]


def test_blocking_agents_run_side_by_side_in_threads() -> None:
    together = threading.Barrier(4, timeout=20)

    def agent(task: str) -> str:
        together.wait()
        return task

    assert len(run(agent, planned(4), 4)) == 4


def test_first_trials_of_all_cases_come_before_second_ones() -> None:
    order = [record.key for record in run(str.upper, planned(3, trials=2), 1)]
    assert [str(key) for key in order] == ["c0#1", "c1#1", "c2#1", "c0#2", "c1#2", "c2#2"]


def test_a_trial_is_retried_only_for_a_named_fault_and_every_attempt_is_on_record() -> None:
    calls: Counter[str] = Counter()

    def agent(task: str) -> str:
        calls[task] += 1
        if task == "0" and calls[task] < 3:
            raise ConnectionError("reset")
        if task == "1":
            raise ValueError("wrong")
        return task

    records = run(agent, planned(2, retries={"attempts": 5, "on": ["ConnectionError"], "backoff_s": 0}), 1)
    assert calls == {"0": 3, "1": 1}
    assert [(record.case_id, record.attempt) for record in records] == [("c0", 1), ("c0", 2), ("c0", 3), ("c1", 1)]


def test_a_sink_that_cannot_write_ends_the_run_with_its_own_error() -> None:
    class Full:
        def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
            raise StorageError("trials.jsonl: cannot be written (no space left on device)")

    executor = LocalExecutor(agent_for(str.upper, AgentSpec()), TrialSettings(), 3)
    with pytest.raises(StorageError, match="no space left"):
        executor.run(FixedTrials(planned(5)), Full())


def test_what_agents_print_goes_to_their_own_log_and_nowhere_else(capsys: pytest.CaptureFixture[str]) -> None:
    async def agent(task: str) -> str:
        print("I am", task)
        await asyncio.sleep(0)
        print("still", task)
        return task

    logs: dict[str, str] = {}

    class Logs(Kept):
        def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
            logs[record.case_id] = trace.log
            print("from outside")
            return record

    LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), 2).run(FixedTrials(planned(2)), Logs())
    assert logs == {"c0": "I am 0\nstill 0\n", "c1": "I am 1\nstill 1\n"}
    assert capsys.readouterr().out == "from outside\nfrom outside\n"


def test_a_flood_of_prints_is_cut_with_its_size() -> None:
    logs: list[str] = []

    class Logs(Kept):
        def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
            logs.append(trace.log)
            return record

    def agent(task: str) -> str:
        print("x" * 1_000_000, end="")
        return task

    LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), 1).run(FixedTrials(planned(1)), Logs())
    assert logs[0].endswith(f"... {1_000_000 - 65_536} more characters were printed")


async def test_bl_070_works_inside_a_running_loop_and_changes_no_policy() -> None:
    before = asyncio.get_event_loop_policy()
    assert len(run(str.upper, planned(3), 2)) == 3
    assert asyncio.get_event_loop_policy() is before
