"""Agents that are plain Python: what they are called with, and what becomes of what they return."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from seatrial.agents.detect import agent_for
from seatrial.agents.function import FunctionAgent
from seatrial.agents.hidden import listen
from seatrial.core.agent_run import AgentRun, HandoffEvent, ModelCall, ToolCall
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import Answer, PlannedCase, Session, TurnInput
from seatrial.core.trace import Observable, SafetyEvent
from seatrial.core.trial import InvalidReason, TrialStatus
from seatrial.environment.failure import FixtureError
from seatrial.environment.trial import TrialEnvironment, current_trial
from seatrial.environment.workspace import FileFixture
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial


@pytest.fixture
def trial() -> Iterator[TrialEnvironment]:
    made = TrialEnvironment(Case(id="a-case"), FixtureSpec(name="orders", identity={"agent": "desk"}))
    with made.activate():
        yield made
    made.clean_up()


def turn(value: Any = "hello", number: int = 1) -> TurnInput:
    return TurnInput(case_id="a-case", input=value, number=number, fixture="orders")


async def answered(session: Session, given: TurnInput) -> Answer:
    """As the runner does it: blocking sessions in a thread, awaitables awaited."""
    answer = await asyncio.to_thread(session.invoke, given) if session.blocking else session.invoke(given)
    return await answer if inspect.isawaitable(answer) else answer


async def one(target: Any, trial: TrialEnvironment, value: Any = "hello") -> Answer:
    session = agent_for(target).open(trial)
    try:
        return await answered(session, turn(value))
    finally:
        session.close()


def shout(task: str) -> str:
    return task.upper()


async def shout_later(task: str) -> str:
    await asyncio.sleep(0)
    return task.upper()


class Shouter:
    def __call__(self, task: str) -> str:
        return task.upper()

    async def later(self, task: str) -> str:
        return task.upper()


def unannounced(task: str) -> Any:
    return shout_later(task)


@pytest.mark.parametrize(
    ("target", "blocking"),
    [
        (shout, True),
        (shout_later, False),
        (Shouter(), True),
        (Shouter().later, False),
        (functools.partial(shout), True),
        (unannounced, True),
        (str.upper, True),
        (lambda task: task.upper(), True),
    ],
)
async def test_every_kind_of_function_answers(target: Any, blocking: bool, trial: TrialEnvironment) -> None:
    session = FunctionAgent(target).open(trial)
    assert session.blocking is blocking
    assert (await answered(session, turn())).output == "HELLO"
    assert trial.recorder.observes == {Observable.OUTPUT}


@pytest.mark.parametrize("output", [None, 5, {"answer": 3.0}, ["a"], object()])
async def test_what_it_returns_is_the_final_output_itself(output: Any, trial: TrialEnvironment) -> None:
    assert (await one(lambda task: output, trial)).output is output


def test_what_is_looked_for_once_a_process_is_no_part_of_an_agents_time(trial: TrialEnvironment) -> None:
    listen.cache_clear()
    FunctionAgent(shout).open(trial)
    assert listen.cache_info().currsize == 1


async def test_the_input_is_the_agents_own_copy(trial: TrialEnvironment) -> None:
    def greedy(task: dict[str, Any]) -> int:
        task["items"].append(1)
        return len(task["items"])

    given = {"message": "hi", "items": []}
    assert [(await one(greedy, trial, given)).output for _ in range(2)] == [1, 1]
    assert given["items"] == []


async def test_three_turns_call_the_same_object(trial: TrialEnvironment) -> None:
    class Counting:
        def __init__(self) -> None:
            self.heard: list[Any] = []

        def __call__(self, task: Any) -> str:
            self.heard.append(task)
            return f"{len(self.heard)}: {task}"

    session = agent_for(Counting).open(trial)
    answers = [(await answered(session, turn(text, place + 1))).output for place, text in enumerate("abc")]
    assert answers == ["1: a", "2: b", "3: c"]


async def test_what_it_raises_passes_through(trial: TrialEnvironment) -> None:
    def broken(task: str) -> str:
        raise RuntimeError("token expired")

    with pytest.raises(RuntimeError, match="token expired"):
        await one(broken, trial)


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_returned_generator_is_an_error(kind: str, trial: TrialEnvironment) -> None:
    def pieces() -> Iterator[str]:
        yield "a"

    async def later() -> Any:
        yield "a"

    with pytest.raises(TypeError, match="returned a generator; return the finished answer"):
        await one(lambda task: pieces() if kind == "sync" else later(), trial)


def generator_agent(task: str) -> Iterator[str]:
    yield task


async def async_generator_agent(task: str) -> Any:
    yield task


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (generator_agent, "generator_agent is a generator function"),
        (async_generator_agent, "async_generator_agent is a generator function"),
        (lambda a, b: None, r"\(a, b\) cannot be called with one positional argument, the input"),
        (lambda *, task: None, "cannot be called with one positional argument"),
    ],
)
def test_a_function_that_cannot_be_an_agent_is_refused_at_once(target: Callable[..., Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        FunctionAgent(target)


# --- through the trial -----------------------------------------------------------------------------------------------


async def test_an_agent_that_uses_the_trial_is_observed(trial: TrialEnvironment) -> None:
    def agent(task: str) -> str:
        return str(current_trial().identity["agent"])

    assert (await one(agent, trial)).output == "desk"
    assert {Observable.TOOL_CALLS, Observable.HANDOFFS, Observable.APPROVALS} <= trial.recorder.observes


async def test_a_plain_function_has_its_tool_calls_not_observed(trial: TrialEnvironment) -> None:
    await one(shout, trial)
    assert Observable.TOOL_CALLS not in trial.recorder.observes


async def test_events_recorded_before_an_exception_are_kept(trial: TrialEnvironment) -> None:
    def agent(task: str) -> str:
        current_trial().record(ToolCall("search", {"q": task}))
        raise RuntimeError("later")

    with pytest.raises(RuntimeError):
        await one(agent, trial)
    assert [call.name for call in trial.recorder.freeze()] == ["search"]


# --- AgentRun -------------------------------------------------------------------------------------------------------


async def test_an_agent_run_reports_the_whole_turn(trial: TrialEnvironment) -> None:
    run = AgentRun(
        "done",
        tool_calls=[ToolCall("search", {"q": 1}, result="found", call_id="c")],
        outcome={"status": "open"},
        safety_events=["jailbreak", {"event": "secret_exposure", "evidence": {"where": "log"}}],
        usage=[{"model": "m", "input": 5, "output": 2, "cached": 1}, ModelCall("m", input=1, output=1)],
        latency_ms=12,
        estimated_cost_usd=0.5,
    )
    answer = await one(lambda task: run, trial)
    assert (answer.output, answer.outcome, answer.latency_ms, answer.cost_usd) == (
        "done",
        {"status": "open"},
        12.0,
        0.5,
    )
    events = trial.recorder.freeze()
    assert [event.kind for event in events] == ["model_call", "model_call", "tool_call", "safety", "safety"]
    assert events[0].usage.cached == 1
    safety = [event for event in events if isinstance(event, SafetyEvent)]
    assert [(event.event, event.evidence, event.source) for event in safety] == [
        ("jailbreak", None, "agent"),
        ("secret_exposure", {"where": "log"}, "agent"),
    ]
    assert trial.recorder.observes == {
        Observable.OUTPUT,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.SAFETY,
        Observable.OUTCOME,
        Observable.MODEL_CALLS,
        Observable.USAGE,
    }


async def test_an_agent_run_without_usage_or_outcome_claims_neither(trial: TrialEnvironment) -> None:
    answer = await one(lambda task: AgentRun("done"), trial)
    assert (answer.latency_ms, answer.cost_usd, answer.outcome) == (None, None, {})
    assert trial.recorder.observes == {
        Observable.OUTPUT,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.SAFETY,
    }


@pytest.mark.parametrize("given", ["lists", "events"])
async def test_the_order_of_calls_and_handoffs_is_known_from_events_only(given: str, trial: TrialEnvironment) -> None:
    call, handoff = ToolCall("a"), HandoffEvent("x", "y")
    more = {"events": [handoff, call]} if given == "events" else {}
    await one(lambda task: AgentRun("done", [call], [handoff], **more), trial)
    assert trial.recorder.ordered is (given == "events")
    assert len(trial.recorder.freeze()) == 2
    if given == "events":
        assert [event.kind for event in trial.recorder.freeze()] == ["handoff", "tool_call"]


async def test_calls_that_the_trial_recorded_are_not_reported_twice(trial: TrialEnvironment) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    def agent(task: str) -> AgentRun:
        tool = current_trial().tool(add)
        return AgentRun(tool(1, b=2), tool_calls=[ToolCall("add", {"a": 1, "b": 2}), ToolCall("unseen")])

    assert (await one(agent, trial)).output == 3
    assert [(call.name, call.result) for call in trial.recorder.freeze()] == [("add", 3), ("unseen", None)]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tool_calls": ["search"]}, "AgentRun.tool_calls[0] must be a ToolCall, not str"),
        ({"tool_calls": {"name": "search"}}, "AgentRun.tool_calls must be a list, not dict"),
        ({"tool_calls": None}, "AgentRun.tool_calls must be a list, not NoneType"),
        ({"handoffs": [ToolCall("a")]}, "AgentRun.handoffs[0] must be a HandoffEvent, not ToolCall"),
        (
            {"events": [AgentRun("x")]},
            "AgentRun.events[0] must be a ToolCall or HandoffEvent or ModelCall, not AgentRun",
        ),
        ({"outcome": ["x"]}, "AgentRun.outcome must be a mapping, not list"),
        ({"usage": [{"inputs": 5}]}, "AgentRun.usage[0] has the unknown key 'inputs'; did you mean 'input'?"),
        ({"usage": ["gpt"]}, "AgentRun.usage[0] must be a mapping or a ModelCall, not str"),
        ({"usage": [{"input": "5"}]}, "ModelCall.input must be a whole number or None, not '5' (str)"),
        ({"safety_events": [5]}, "AgentRun.safety_events[0] must be a name or a mapping {event, evidence}, not 5"),
        ({"latency_ms": "5"}, "AgentRun.latency_ms must be a number or None, not '5' (str)"),
        ({"latency_ms": -1}, "AgentRun.latency_ms must be a finite number of 0 or more, not -1"),
        ({"estimated_cost_usd": float("nan")}, "AgentRun.estimated_cost_usd must be a finite number of 0 or more"),
        ({"tool_calls": [ToolCall("a", state="done")]}, "ToolCall.state cannot be 'done'"),
    ],
)
async def test_a_field_of_the_wrong_kind_is_named(fields: Any, message: str, trial: TrialEnvironment) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        await one(lambda task: AgentRun("done", **fields), trial)
    assert message in str(raised.value)
    assert trial.recorder.freeze() == ()


# --- reset and invoke -----------------------------------------------------------------------------------------------


class Smallest:
    """The smallest adapter: a class with reset and invoke."""

    made = 0

    def __init__(self) -> None:
        type(self).made += 1
        self.log: list[Any] = []

    def reset(self, fixture: str) -> None:
        self.log.append(fixture)

    def invoke(self, case: dict[str, Any]) -> AgentRun:
        self.log.append(case)
        return AgentRun(list(self.log))


async def test_a_class_is_made_once_a_trial_reset_once_and_invoked_each_turn(trial: TrialEnvironment) -> None:
    before = Smallest.made
    session = agent_for(Smallest).open(trial)
    await answered(session, turn({"message": "a"}))
    answer = await answered(session, turn({"message": "b"}, 2))
    assert Smallest.made == before + 1
    assert answer.output == [
        "orders",
        {"id": "a-case", "input": {"message": "a"}, "turn": 1, "fixture": "orders"},
        {"id": "a-case", "input": {"message": "b"}, "turn": 2, "fixture": "orders"},
    ]


async def test_reset_gets_empty_text_without_a_fixture() -> None:
    bare = TrialEnvironment(Case(id="a"))
    session = agent_for(Smallest).open(bare)
    assert (await answered(session, turn())).output[0] == ""
    bare.clean_up()


class AsyncSmallest(Smallest):
    async def reset(self, fixture: str) -> None:
        await asyncio.sleep(0)
        self.log.append(f"later {fixture}")

    async def invoke(self, case: dict[str, Any]) -> AgentRun:
        return super().invoke(case)


async def test_reset_and_invoke_may_be_async(trial: TrialEnvironment) -> None:
    session = agent_for(AsyncSmallest).open(trial)
    assert not session.blocking
    first = await answered(session, turn())
    assert first.output[0] == "later orders"
    assert len((await answered(session, turn("b", 2))).output) == 3


async def test_an_async_reset_that_is_never_needed_leaves_no_warning(trial: TrialEnvironment) -> None:
    agent_for(AsyncSmallest).open(trial).close()


async def test_an_instance_serves_as_it_is(trial: TrialEnvironment) -> None:
    class Plain:
        def invoke(self, case: dict[str, Any]) -> str:
            return f"{case['turn']} {case['input']}"

    assert (await one(Plain(), trial)).output == "1 hello"


@pytest.mark.parametrize("base", [Smallest, AsyncSmallest])
async def test_a_reset_that_fails_is_the_surroundings_failure(base: Any, trial: TrialEnvironment) -> None:
    class Sync(Smallest):
        def reset(self, fixture: str) -> None:
            raise ConnectionError("no server")

    class Later(AsyncSmallest):
        async def reset(self, fixture: str) -> None:
            raise ConnectionError("no server")

    with pytest.raises(FixtureError, match="reset: ConnectionError: no server"):
        await one(Sync if base is Smallest else Later, trial)


async def test_a_reset_that_fails_makes_the_trial_invalid() -> None:
    class Broken(Smallest):
        def reset(self, fixture: str) -> None:
            raise ConnectionError("no server")

    case = Case(id="a-case")
    planned = PlannedCase(case, case.digest, (), trials=1, fixture=FileFixture(case=case))
    record, _ = await run_trial(agent_for(Broken), planned, 1, TrialSettings())
    assert (record.status, record.invalid_reason) == (TrialStatus.INVALID, InvalidReason.FIXTURE)
    assert record.detail == "fixture: reset: ConnectionError: no server"
