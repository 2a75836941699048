"""An agent that blocks the event loop, or will not stop, is left behind; nothing is lost and nothing counted twice."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, write_project
from seatrial import ToolCall, current_trial
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus
from seatrial.environment.workspace import FileFixture
from seatrial.graders import graders_for
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings
from seatrial.runner.watchdog import LoopThread

pytestmark = pytest.mark.slow


class Kept:
    def __init__(self) -> None:
        self.records: list[TrialRecord] = []
        self.traces: dict[tuple[str, int], Trace] = {}

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        self.traces[record.case_id, record.attempt] = trace
        return record


def planned(*tasks: str, spec: FixtureSpec | None = None, **more: Any) -> list[PlannedCase]:
    """A case a task; those named `block...` have 0.4 s."""
    cases = [
        Case(id=task, input=task, **{"limits": {"timeout_s": 0.4 if task.startswith("block") else 60}} | more)
        for task in tasks
    ]
    return [
        PlannedCase(item, item.digest, graders_for(item), 1, FileFixture(spec or FixtureSpec(), case=item), order=n)
        for n, item in enumerate(cases)
    ]


def run(agent: Callable[..., Any], cases: list[PlannedCase], concurrency: int) -> Kept:
    sink = Kept()
    executor = LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), concurrency, grace_s=0.2)
    executor.run(FixedTrials(cases), sink)
    return sink


class Block:
    """Blocks until the test lets go."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def __call__(self) -> None:
        self.released.wait(30)


@pytest.fixture
def block() -> Any:
    held = Block()
    yield held
    held.released.set()


def test_bl_064_a_blocking_async_agent_ends_as_timeout_and_the_others_run(tmp_path: Path, block: Block) -> None:
    went_on: list[str] = []

    async def agent(task: str) -> str:
        if task == "block":
            current_trial().record(ToolCall("look", {"n": 1}))
            block()
            went_on.append(task)
        return "done"

    write_project(
        tmp_path,
        {
            "seatrial.yaml": "version: 1\nagent: operator:not_\nconcurrency: 1\n",
            "cases/a.yaml": case("a", message="block", answer="done", limits="{timeout_s: 1}"),
            **{f"cases/{n}.yaml": case(n, answer="done") for n in "bcd"},
        },
    )
    run = api.run(tmp_path, agent=agent)
    assert went_on == []  # the run ended before the agent was let go
    assert [(record.case_id, record.stop_reason, record.attempt) for record in run.trials] == [
        ("a", StopReason.TIMEOUT, 1),
        *((n, StopReason.ANSWERED, 1) for n in "bcd"),
    ]
    assert run.trials[0].status is TrialStatus.FAILED
    assert run.trials[0].detail.startswith("timeout: the limit of 1 s was reached while the agent blocked the event")
    assert (run.trials[0].latency_ms or 0) >= 1000
    assert [call.name for call in run.trace(run.trials[0]).tool_calls] == ["look"]


def test_trials_in_flight_beside_the_blocker_are_made_again_and_both_attempts_are_on_record(block: Block) -> None:
    begun: Counter[str] = Counter()
    beside = asyncio.Event()

    async def agent(task: str) -> str:
        begun[task] += 1
        current_trial().record(ToolCall("begin", {"time": begun[task]}))
        if task == "block":
            await beside.wait()
            block()
        if task == "two" and begun[task] == 1:
            beside.set()
        if begun[task] == 1:
            await asyncio.Event().wait()
        return "done"

    spec = FixtureSpec.model_validate({"state": {"left": 1}, "outcome": {"left": {"state": "left"}}})
    cases = planned("one", "block", "two", "three", spec=spec, expected={"answer": "done", "outcome": {"left": 1}})
    begun["three"] = 1
    sink = run(agent, cases, 3)
    ends = {(record.case_id, record.attempt): record for record in sink.records}
    assert len(ends) == len(sink.records)
    assert {key: str(record.status) for key, record in ends.items()} == {
        ("block", 1): "failed",
        ("one", 1): "invalid",
        ("two", 1): "invalid",
        ("one", 2): "passed",
        ("two", 2): "passed",
        ("three", 1): "passed",
    }
    assert ends["one", 1].invalid_reason is InvalidReason.HARNESS
    assert ends["one", 1].detail == "block#1 blocked the event loop that this attempt ran in; it is made again"
    assert [call.arguments for call in sink.traces["one", 1].tool_calls] == [{"time": 1}]
    assert [call.arguments for call in sink.traces["one", 2].tool_calls] == [{"time": 2}]
    assert ends["block", 1].stop_reason is StopReason.TIMEOUT
    assert [grade.name for grade in ends["block", 1].grades] == ["outcome"]


def test_an_attempt_that_was_broken_off_counts_against_no_retry(block: Block) -> None:
    begun: Counter[str] = Counter()
    beside = asyncio.Event()

    async def agent(task: str) -> str:
        begun[task] += 1
        if task == "block":
            await beside.wait()
            block()
        beside.set()
        if begun[task] == 1:
            await asyncio.Event().wait()
        raise ConnectionError(begun[task])

    sink = run(agent, planned("block", "one", retries={"attempts": 2, "on": ["ConnectionError"]}), 2)
    assert [(record.case_id, record.attempt, record.detail[:22]) for record in sink.records if record.attempt > 1] == [
        ("one", 2, "raised ConnectionError"),
        ("one", 3, "raised ConnectionError"),
    ]


def test_what_a_blocker_does_once_it_wakes_is_in_no_record(block: Block) -> None:
    woke = threading.Event()

    async def agent(task: str) -> str:
        if task != "block":
            return "done"
        trial = current_trial()
        trial.record(ToolCall("before"))
        block()
        try:
            trial.record(ToolCall("after"))
        finally:
            woke.set()
        return "late"

    sink = run(agent, planned("block", "one"), 1)
    block.released.set()
    assert woke.wait(10)
    assert [(record.case_id, record.output) for record in sink.records] == [("block", None), ("one", "done")]
    assert [call.name for call in sink.traces["block", 1].tool_calls] == ["before"]


@pytest.mark.parametrize("inside", ["task", "callback"])
def test_a_task_or_callback_of_the_agent_that_blocks_is_the_agents(block: Block, inside: str) -> None:
    async def child() -> None:
        block()

    async def agent(task: str) -> str:
        if task == "block" and inside == "task":
            await asyncio.gather(child())
        elif task == "block":
            asyncio.get_running_loop().call_soon(block)
            await asyncio.Event().wait()
        return "done"

    sink = run(agent, planned("block", "one"), 1)
    assert [(record.case_id, record.stop_reason) for record in sink.records] == [
        ("block", StopReason.TIMEOUT),
        ("one", StopReason.ANSWERED),
    ]


def test_an_agent_that_ignores_being_cancelled_ends_as_timeout_and_disturbs_nobody(block: Block) -> None:
    async def agent(task: str) -> str:
        if task == "one":
            await asyncio.sleep(1.2)
        while task == "block" and not block.released.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return "done"

    sink = run(agent, planned("block", "one", "two"), 2)
    assert sorted((record.case_id, record.attempt, record.stop_reason) for record in sink.records) == [
        ("block", 1, StopReason.TIMEOUT),
        ("one", 1, StopReason.ANSWERED),
        ("two", 1, StopReason.ANSWERED),
    ]
    assert sink.traces["block", 1].stop_reason is StopReason.TIMEOUT


@pytest.mark.parametrize("inside", ["task", "callback"])
def test_an_exit_in_a_task_or_callback_ends_no_other_trial(inside: str) -> None:
    async def child() -> None:
        sys.exit(3)

    async def agent(task: str) -> str:
        if task == "block" and inside == "task":
            await asyncio.create_task(child())
        elif task == "block":
            asyncio.get_running_loop().call_soon(sys.exit, 3)
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return "done"

    sink = run(agent, planned("block", "one"), 2)
    ends = {record.case_id: (record.stop_reason, record.attempt) for record in sink.records}
    expected = StopReason.AGENT_ERROR if inside == "task" else StopReason.TIMEOUT
    assert ends == {"block": (expected, 1), "one": (StopReason.ANSWERED, 1)}


def test_stopping_does_not_wait_for_an_agent_that_blocks(block: Block) -> None:
    blocking = threading.Event()

    async def agent(task: str) -> str:
        blocking.set()
        block()
        return "late"

    sink = Kept()
    executor = LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), 1, grace_s=0.2)
    running = executor.start(FixedTrials(planned("one")), sink)
    assert blocking.wait(10)
    running.stop()
    assert running.done.cancelled()
    assert sink.records == []


def test_instant_trials_cost_the_watchdog_no_thread_and_each_has_one_task_of_its_own() -> None:
    threads, tasks = set(), set()

    async def agent(task: str) -> str:
        threads.add(threading.current_thread().name)
        tasks.add(asyncio.current_task())
        return "done"

    before = set(threading.enumerate())
    sink = run(agent, planned(*(f"c{n}" for n in range(200))), 4)
    assert len(sink.records) == 200
    assert threads == {"seatrial-loop"}
    assert len(tasks) == 200
    assert [thread.name for thread in set(threading.enumerate()) - before if "seatrial" in thread.name] == []


def test_a_loop_tells_whose_code_runs_in_it() -> None:
    inside, go_on = threading.Event(), threading.Event()

    async def work(owner: str) -> None:
        if owner == "b":
            inside.set()
            go_on.wait(10)

    loop = LoopThread(work, ["a", "b"])
    assert inside.wait(10)
    loop.turning()
    assert (loop.turning(), loop.running()) == (False, "b")
    go_on.set()
    loop.ended.result(10)
    assert loop.running() is None
