"""One trial: whose fault a failure is decides what it becomes, and nothing that was seen is lost."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from seatrial import AgentRun, ModelCall, ToolCall, current_trial
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus
from seatrial.core.usage import Price
from seatrial.environment.failure import TrialOver
from seatrial.environment.workspace import FileFixture
from seatrial.graders import graders_for
from seatrial.runner.trial import TrialSettings, run_trial, seed_of


@dataclass(frozen=True)
class Says:
    """A grader that does what it is told."""

    result: Callable[[GradingContext], Any]
    name: str = "says"
    required: bool = True
    needs_answer: bool = False
    blocking: bool = False

    def grade(self, context: GradingContext) -> Any:
        return self.result(context)


def passes(_: GradingContext) -> Grade:
    return Grade(verdict=Verdict.PASS)


def plan(case: Case, spec: FixtureSpec | None = None, graders: tuple[Any, ...] | None = None) -> PlannedCase:
    own = graders_for(case) if graders is None else graders
    fixture = FileFixture(spec or FixtureSpec(), case=case)
    return PlannedCase(case, case.digest, own, trials=1, fixture=fixture)


def trial(
    agent: Any,
    case: Case | None = None,
    *,
    spec: FixtureSpec | None = None,
    graders: tuple[Any, ...] | None = None,
    **settings: Any,
) -> tuple[TrialRecord, Trace]:
    case = case or Case(id="c", input="hello")
    work = run_trial(agent_for(agent, AgentSpec()), plan(case, spec, graders), 1, TrialSettings(**settings))
    return asyncio.run(work)


def test_a_passing_trial_has_its_grades_outcome_and_figures() -> None:
    case = Case(id="c", input="hello", expected={"answer": "world", "outcome": {"n": 1}})

    def agent(task: str) -> str:
        current_trial().state["n"] = 1
        return f"{task} world"

    spec = FixtureSpec.model_validate({"state": {"n": 0}, "outcome": {"n": {"state": "n"}}})
    record, trace = trial(agent, case, spec=spec)
    assert record.status is TrialStatus.PASSED
    assert [(grade.name, grade.verdict) for grade in record.grades] == [("answer", "pass"), ("outcome", "pass")]
    assert record.outcome == {"n": 1}
    assert record.output == trace.output == "hello world"
    assert record.latency_ms is not None
    assert record.seed == seed_of(0, "c", 1)


def test_what_is_built_unchecked_is_what_validation_gives() -> None:
    case = Case(id="c", input="hello", expected={"answer": "yes", "required_tools": ["look"], "max_steps": 3})

    def agent(task: str) -> AgentRun:
        calls = [ToolCall("look", {"n": 1}, result=[1], call_id="1", agent="a"), ToolCall("look", error=KeyError("k"))]
        return AgentRun("yes", tool_calls=calls, usage=[ModelCall("m", 1, 2)], outcome={"n": 1})

    for made in (*trial(agent, case), *trial(lambda task: "no", case)):
        assert type(made).model_validate(vars(made), strict=True) == made
        assert type(made).model_validate_json(made.model_dump_json()) == made


def test_bl_062_what_the_agent_raises_is_a_failed_trial_with_the_first_error_shown() -> None:
    def agent(task: str) -> str:
        raise RuntimeError("token expired")

    record, trace = trial(agent, Case(id="c", input="x", expected={"answer": "y", "max_steps": 3}))
    assert (record.status, record.stop_reason) == (TrialStatus.FAILED, StopReason.AGENT_ERROR)
    assert record.detail == "raised RuntimeError: token expired"
    assert record.error is not None
    assert "in agent" in record.error.traceback
    assert "run_trial" not in record.error.traceback
    assert "seatrial/runner" not in record.error.traceback
    assert record.grade("answer") is None
    assert "NoneType" not in record.model_dump_json() + trace.model_dump_json()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()])
@pytest.mark.parametrize("is_async", [True, False])
def test_an_agent_may_raise_any_base_exception(error: BaseException, is_async: bool) -> None:
    def agent(task: str) -> str:
        raise error

    async def later(task: str) -> str:
        raise error

    record, _ = trial(later if is_async else agent)
    assert record.stop_reason is StopReason.AGENT_ERROR
    assert record.error is not None
    assert record.error.type.endswith(type(error).__name__)


class Missing(StopIteration):
    """An exception of an agent's own that happens to end iterations."""


STOPS = [StopIteration("no more rows"), StopAsyncIteration("no more rows"), Missing("no more rows")]


def raising_agents(error: BaseException) -> dict[str, Any]:
    """Agents of every kind that raise this."""

    def agent(task: str) -> str:
        raise error

    async def later(task: str) -> str:
        raise error

    async def in_a_loop(task: str) -> str:
        async def rows() -> Any:
            raise error
            yield

        async for row in rows():
            return str(row)
        return ""

    class Invokes:
        def reset(self, fixture: str) -> None:
            pass

        def invoke(self, case: dict[str, Any]) -> str:
            raise error

    def factory(environment: Any) -> Any:
        raise error

    async def late_factory(environment: Any) -> Any:
        return agent

    return {
        "sync": agent,
        "async": later,
        "generator": in_a_loop,
        "invoke": Invokes,
        "factory": factory,
        "late factory": late_factory,
    }


@pytest.mark.parametrize("error", STOPS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("kind", raising_agents(ValueError()))
def test_what_ends_an_iteration_keeps_its_type_and_message(error: BaseException, kind: str) -> None:
    seen: list[BaseException] = []
    record, _ = trial(raising_agents(error)[kind], on_agent_error=seen.append)
    assert record.stop_reason is StopReason.AGENT_ERROR
    assert record.error is not None
    assert record.error.type.rpartition(".")[2] == type(error).__name__
    assert record.error.message == "no more rows"
    assert "coroutine raised" not in record.error.traceback
    assert seen == [error]


def test_a_runtime_error_of_the_agents_own_is_not_taken_apart() -> None:
    def agent(task: str) -> str:
        raise RuntimeError("the generator is broken") from StopIteration("x")

    record, _ = trial(agent)
    assert record.detail == "raised RuntimeError: the generator is broken"


def test_a_hostile_exception_text_does_not_hide_the_failure() -> None:
    class Hostile(Exception):
        def __str__(self) -> str:
            raise ValueError

    def agent(task: str) -> str:
        raise Hostile

    record, _ = trial(agent)
    assert record.status is TrialStatus.FAILED
    assert "Hostile" in record.detail


@pytest.mark.parametrize("is_async", [True, False])
def test_the_time_limit_ends_the_trial_and_keeps_what_was_recorded(is_async: bool) -> None:
    forever = threading.Event()

    def record_one() -> None:
        current_trial().record(ToolCall("look", {"n": 1}))

    def agent(task: str) -> str:
        record_one()
        forever.wait()
        return "late"

    async def later(task: str) -> str:
        record_one()
        await asyncio.Event().wait()
        return "late"

    case = Case(id="c", input="x", limits={"timeout_s": 0.05})
    record, trace = trial(later if is_async else agent, case)
    forever.set()
    assert (record.status, record.stop_reason) == (TrialStatus.FAILED, StopReason.TIMEOUT)
    assert record.detail == "timeout: the limit of 0.05 s was reached"
    assert [call.name for call in trace.tool_calls] == ["look"]


def test_a_timeout_error_of_the_agents_own_is_the_agents_error() -> None:
    async def agent(task: str) -> str:
        raise TimeoutError("upstream")

    record, _ = trial(agent)
    assert record.stop_reason is StopReason.AGENT_ERROR


def test_the_step_limit_holds_though_the_agent_swallows_exceptions() -> None:
    def agent(task: str) -> str:
        while True:
            try:
                current_trial().record(ModelCall("m", 1, 1))
            except Exception:
                continue

    record, _ = trial(agent, Case(id="c", input="x", limits={"steps": 4}))
    assert record.stop_reason is StopReason.MAX_STEPS
    assert record.steps == 4
    assert record.status is TrialStatus.FAILED


def test_a_fixture_that_cannot_be_set_up_makes_the_trial_invalid_and_the_agent_is_not_called() -> None:
    called = []
    spec = FixtureSpec.model_validate({"database": {"sqlite": "missing.sql"}})
    record, _ = trial(called.append, spec=spec, graders=(Says(passes),))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.FIXTURE)
    assert "missing.sql" in record.detail
    assert called == []
    assert record.grades == ()


def test_an_outcome_that_cannot_be_read_makes_the_trial_invalid_unless_it_failed_anyway() -> None:
    spec = FixtureSpec.model_validate({"outcome": {"n": {"function": "no_such_module:f"}}})
    record, _ = trial(lambda task: task, spec=spec, graders=(Says(passes),))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.FIXTURE)

    def raising(task: str) -> str:
        raise ValueError

    assert trial(raising, spec=spec)[0].status is TrialStatus.FAILED


def test_a_grader_that_breaks_is_its_own_failure_and_stops_no_other() -> None:
    def breaks(_: GradingContext) -> Grade:
        raise KeyError("x")

    record, _ = trial(str.upper, graders=(Says(breaks, "first"), Says(passes, "second")))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.GRADER)
    assert [(item.name, item.error) for item in record.grader_failures] == [("first", "KeyError")]
    assert [grade.name for grade in record.grades] == ["second"]


ANYTHING = [
    SystemExit(3),
    KeyboardInterrupt(),
    GeneratorExit(),
    asyncio.CancelledError(),
    StopIteration("none left"),
    TrialOver("late"),
    BaseException("anything"),
]


@pytest.mark.parametrize("error", ANYTHING, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("how", ["sync", "blocking", "async"])
def test_a_grader_may_raise_any_base_exception(error: BaseException, how: str) -> None:
    def breaks(_: GradingContext) -> Grade:
        raise error

    async def later(_: GradingContext) -> Grade:
        raise error

    broken = Says(later if how == "async" else breaks, "first", blocking=how == "blocking")
    record, _ = trial(str.upper, graders=(broken, Says(passes, "second")))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.GRADER)
    assert [(item.name, item.error, item.message) for item in record.grader_failures] == [
        ("first", type(error).__name__, str(error))
    ]
    assert [grade.name for grade in record.grades] == ["second"]


def test_a_cancellation_of_the_trial_passes_through_a_grader() -> None:
    async def cancelled_while_grading() -> None:
        reached, case = asyncio.Event(), Case(id="c", input="hello")

        async def waits(_: GradingContext) -> Grade:
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

        planned = plan(case, graders=(Says(waits),))
        task = asyncio.create_task(run_trial(agent_for(str.upper, AgentSpec()), planned, 1, TrialSettings()))
        await reached.wait()
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled_while_grading())


@pytest.mark.parametrize("error", [*ANYTHING, ValueError("broke")], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["fixture", "clean-up", "outcome", "observer"])
def test_a_fixture_may_raise_any_base_exception(error: BaseException, where: str, tmp_path: Path) -> None:
    FIXTURES["error"] = error
    (tmp_path / "f.py").write_text(FIXTURE_FILE.replace("WHERE", repr(where)))
    spec = FixtureSpec(function="f.py:f", folder=str(tmp_path))
    record, _ = trial(str.upper, spec=spec, graders=(Says(passes),))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.FIXTURE)
    assert type(error).__name__ in record.detail
    assert str(error) in record.detail


FIXTURES: dict[str, BaseException] = {}
FIXTURE_FILE = f"""
import sys
def f(environment):
    error = sys.modules[{__name__!r}].FIXTURES["error"]
    def raises(_):
        raise error
    if WHERE == "fixture":
        raise error
    if WHERE == "outcome":
        environment.outcome = raises
    if WHERE == "observer":
        environment.outcome = {{"n": raises}}
    yield
    if WHERE == "clean-up":
        raise error
"""


class BrokenUser:
    def __init__(self, case: Case, *, asynchronous: bool) -> None:
        self.reply = self.later if asynchronous else self.now

    def now(self, answers: list[str]) -> str:
        raise FIXTURES["error"]

    async def later(self, answers: list[str]) -> str:
        raise FIXTURES["error"]


def sync_user(case: Case) -> BrokenUser:
    return BrokenUser(case, asynchronous=False)


def async_user(case: Case) -> BrokenUser:
    return BrokenUser(case, asynchronous=True)


def no_user(case: Case) -> BrokenUser:
    raise FIXTURES["error"]


@pytest.mark.parametrize("error", [*ANYTHING, ValueError("broke")], ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("user", ["sync_user", "async_user", "no_user"])
def test_a_simulated_user_that_breaks_is_no_failure_of_the_agents(
    error: BaseException, user: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    FIXTURES["error"] = error
    monkeypatch.setitem(sys.modules, "users_of_this_test", sys.modules[__name__])
    case = Case(id="c", input="go", user={"use": f"users_of_this_test:{user}"})
    record, _ = trial(str.upper, case, graders=(Says(passes),))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.FIXTURE)
    assert record.detail.startswith(f"fixture: the simulated user: {type(error).__name__}")


def test_a_failed_required_grade_outweighs_a_broken_grader() -> None:
    def breaks(_: GradingContext) -> Grade:
        raise KeyError("x")

    def fails(_: GradingContext) -> Grade:
        return Grade(verdict=Verdict.FAIL)

    assert trial(str.upper, graders=(Says(breaks), Says(fails, "no")))[0].status is TrialStatus.FAILED


def test_advisory_grades_decide_nothing() -> None:
    def fails(_: GradingContext) -> Grade:
        return Grade(verdict=Verdict.FAIL)

    record, _ = trial(str.upper, graders=(Says(fails, required=False),))
    assert record.status is TrialStatus.UNGRADED
    assert record.grades[0].required is False


def test_an_abstention_makes_the_trial_invalid_as_unobserved() -> None:
    case = Case(id="c", input="x", expected={"required_tools": ["look"]})
    record, _ = trial(str.upper, case)
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.UNOBSERVED)


def test_async_and_blocking_graders_are_waited_for() -> None:
    async def later(_: GradingContext) -> Grade:
        await asyncio.sleep(0)
        return Grade(verdict=Verdict.PASS)

    loop_thread: list[int] = []

    def where(_: GradingContext) -> Grade:
        loop_thread.append(threading.get_ident())
        return Grade(verdict=Verdict.PASS)

    record, _ = trial(str.upper, graders=(Says(later), Says(where, "own", blocking=True)))
    assert record.status is TrialStatus.PASSED
    assert loop_thread != [threading.get_ident()]


def test_three_turns_reach_the_same_agent_and_each_has_its_own_answer() -> None:
    class Counts:
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def reset(self, fixture: str) -> None:
            self.fixture = fixture

        def invoke(self, case: dict[str, Any]) -> AgentRun:
            self.heard.append((case["turn"], case["input"]["message"], case["input"]["user"]))
            return AgentRun(final_output=f"{len(self.heard)}: {case['input']['message']}")

    case = Case(
        id="c",
        input={"message": "one", "user": "u"},
        turns=[{"user": "two", "expected": {"answer": "2: two"}}, {"user": "three"}],
        expected={"answer": "3: three"},
    )
    record, trace = trial(Counts, case)
    assert record.status is TrialStatus.PASSED, record.grades
    assert trace.outputs == ("1: one", "2: two", "3: three")
    assert [grade.name for grade in record.grades] == ["answer", "turn[2].answer"]
    assert [event.turn for event in trace.events] == [1, 2, 3]


def test_a_scripted_simulated_user_answers_until_no_rule_matches() -> None:
    case = Case(
        id="c",
        input="I want a refund",
        user={
            "scripted": [{"when": {"$contains": "order"}, "say": "O-1"}, {"when": {"$contains": "sure"}, "say": "yes"}]
        },
    )
    answers = iter(["Which order?", "Are you sure?", "Done."])
    heard: list[str] = []

    def agent(task: str) -> str:
        heard.append(task)
        return next(answers)

    _, trace = trial(agent, case)
    assert heard == ["I want a refund", "O-1", "yes"]
    assert trace.output == "Done."


def test_a_conversation_stops_at_the_simulated_users_last_turn() -> None:
    case = Case(id="c", input="go", user={"scripted": [{"say": "again"}], "max_turns": 3})
    assert len(trial(str.upper, case)[1].outputs) == 3


def test_cost_is_known_only_when_every_model_call_has_a_price() -> None:
    def priced(task: str) -> AgentRun:
        return AgentRun("x", usage=[{"model": "m", "input": 1_000_000, "output": 0}])

    def unpriced(task: str) -> AgentRun:
        return AgentRun("x", usage=[{"model": "other", "input": 1, "output": 1}])

    prices = {"m": Price(input=2.5, output=10)}
    assert trial(priced, prices=prices)[0].cost_usd == 2.5
    assert trial(unpriced, prices=prices)[0].cost_usd is None
    assert trial(str.upper, prices=prices)[0].cost_usd is None


def test_what_the_agent_estimates_wins_over_the_price_table() -> None:
    def agent(task: str) -> AgentRun:
        return AgentRun("x", usage=[{"model": "m", "input": 1, "output": 1}], estimated_cost_usd=0.5)

    assert trial(agent, prices={"m": Price(input=1, output=1)})[0].cost_usd == 0.5


def test_a_trial_started_between_its_beginning_and_its_end_to_the_millisecond() -> None:
    for _ in range(3):
        before = datetime.now(UTC)
        started = datetime.fromisoformat(trial(str.upper)[0].started)
        assert before.replace(microsecond=before.microsecond // 1000 * 1000) <= started <= datetime.now(UTC)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_fork_of_an_agent_that_never_waits_does_not_go_on_with_the_trial() -> None:
    ours = os.getpid()

    async def forks(task: str) -> str:
        child = os.fork()
        return "in the fork" if child == 0 else f"the fork ended with {os.waitpid(child, 0)[1]}"

    record, _ = trial(forks)
    if os.getpid() != ours:
        os._exit(1)
    assert record.output == "the fork ended with 0"


def test_seeds_differ_between_trials_and_cases_and_repeat_for_the_same() -> None:
    assert seed_of(1, "a", 1) == seed_of(1, "a", 1)
    assert len({seed_of(1, "a", 1), seed_of(1, "a", 2), seed_of(1, "b", 1), seed_of(2, "a", 1)}) == 4


def test_an_event_that_cannot_be_kept_makes_its_trial_invalid_and_ends_nothing() -> None:
    def agent(task: str) -> str:
        current_trial().recorder.approval("pay", {}, "maybe")
        return task

    record, trace = trial(agent, Case(id="c", input="hello", expected={"answer": "hello"}))
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.HARNESS)
    assert record.detail.startswith("trace: event 2 (approval) cannot be kept (decision: Input should be ")
    assert [event.kind for event in trace.events] == ["message", "error"]
