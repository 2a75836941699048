"""An agent that cancels the task it runs in, now or later, does that to its own trial and to nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable
from typing import Any

import pytest

from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.environment.workspace import FileFixture
from seatrial.graders import graders_for
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings


class Kept(dict[str, TrialRecord]):
    """A sink: records by case."""

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        assert record.case_id not in self
        self[record.case_id] = record
        return record


def run(agent: Callable[..., Any], *tasks: str, concurrency: int = 1, more: Any = ()) -> Kept:
    """A trial a task; an answer that is the task passes."""
    cases = [Case.model_validate({"id": task, "input": task, "expected": {"answer": task}}) for task in tasks]
    planned = [
        PlannedCase(case, case.digest, (*graders_for(case), *more), 1, FileFixture(FixtureSpec(), case=case))
        for case in cases
    ]
    kept = Kept()
    LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), concurrency).run(FixedTrials(planned), kept)
    assert set(kept) == set(tasks)
    return kept


def passed(kept: Kept) -> set[str]:
    return {name for name, record in kept.items() if record.status is TrialStatus.PASSED}


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_timer_that_an_agent_forgets_cancels_no_other_trial(concurrency: int) -> None:
    timers: list[asyncio.Task[Any]] = []

    async def agent(task: str) -> str:
        if task == "forgets":
            timers.append(asyncio.current_task())  # type: ignore[arg-type]
        elif timers:
            timers[0].cancel()
            await asyncio.sleep(0)
        return task

    names = ("forgets", "b", "c", "d")
    assert passed(run(agent, *names, concurrency=concurrency)) == set(names)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_agent_that_cancels_itself_has_raised_and_the_others_go_on(concurrency: int) -> None:
    async def agent(task: str) -> str:
        if task == "self":
            asyncio.current_task().cancel()  # type: ignore[union-attr]
            await asyncio.sleep(0)
        return task

    kept = run(agent, "a", "self", "b", concurrency=concurrency)
    assert passed(kept) == {"a", "b"}
    assert kept["self"].stop_reason is StopReason.AGENT_ERROR
    assert "CancelledError" in kept["self"].detail


def test_a_cancellation_that_an_agent_leaves_pending_or_swallows_changes_nothing() -> None:
    async def agent(task: str) -> str:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        if task == "swallows":
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        return task

    assert passed(run(agent, "pending", "swallows", "pending-too")) == {"pending", "swallows", "pending-too"}


def test_an_error_that_only_looks_like_a_cancellation_is_the_agents() -> None:
    async def agent(task: str) -> str:
        raise asyncio.CancelledError("no")

    kept = run(agent, "a", "b")
    assert {record.stop_reason for record in kept.values()} == {StopReason.AGENT_ERROR}


def test_a_cancellation_that_comes_while_the_trial_is_graded_is_the_agents_too() -> None:
    tasks: list[asyncio.Task[Any]] = []

    class Grader:
        name, required, needs_answer, blocking = "late", False, False, False

        async def grade(self, context: GradingContext) -> None:
            if context.case.id == "late":
                tasks[0].cancel()
                await asyncio.sleep(0)

    async def agent(task: str) -> str:
        if task == "late":
            tasks.append(asyncio.current_task())  # type: ignore[arg-type]
        return task

    kept = run(agent, "late", "b", more=(Grader(),))
    assert "b" in passed(kept)


def test_a_time_limit_is_reached_whatever_was_cancelled_before() -> None:
    async def agent(task: str) -> str:
        asyncio.current_task().cancel()  # type: ignore[union-attr]
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.sleep(60)
        return task

    case = Case.model_validate({"id": "a", "input": "a", "limits": {"timeout_s": 0.05}})
    kept = Kept()
    planned = PlannedCase(case, case.digest, (), 1, FileFixture(FixtureSpec(), case=case))
    LocalExecutor(agent_for(agent, AgentSpec()), TrialSettings(), 1).run(FixedTrials([planned]), kept)
    assert kept["a"].stop_reason is StopReason.TIMEOUT


def test_what_an_agent_sets_in_its_context_reaches_no_other_trial() -> None:
    seen: contextvars.ContextVar[str] = contextvars.ContextVar("seen", default="nothing")
    found = []

    async def agent(task: str) -> str:
        found.append(seen.get())
        seen.set(task)
        return task

    run(agent, "a", "b", "c")
    assert found == ["nothing"] * 3


@pytest.mark.parametrize("concurrency", [1, 3])
def test_an_agent_that_stops_the_loop_ends_no_run(concurrency: int) -> None:
    async def agent(task: str) -> str:
        if task == "stops":
            asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return task

    names = ("a", "stops", "b", "c")
    assert passed(run(agent, *names, concurrency=concurrency)) == set(names)


def test_an_agent_that_cancels_every_task_of_the_loop_ends_what_is_in_flight_and_no_more() -> None:
    async def agent(task: str) -> str:
        if task == "all":
            for each in asyncio.all_tasks():
                if each is not asyncio.current_task():
                    each.cancel()
        else:
            await asyncio.sleep(0.01)
        return task

    kept = run(agent, "a", "b", "all", *(f"later-{n}" for n in range(6)), concurrency=3)
    assert {"all", *(f"later-{n}" for n in range(1, 6))} <= passed(kept)
    assert {kept[name].stop_reason for name in ("a", "b")} == {StopReason.AGENT_ERROR}
