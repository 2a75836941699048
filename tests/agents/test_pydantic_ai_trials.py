"""Trials of Pydantic AI agents: turns, nested agents, hand-offs, limits, isolation, agents behind a function."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, ToolOutput, UsageLimits
from pydantic_ai.capabilities import ProcessEventStream
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart

from graphs import Drive, OneFixture, drive
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case, Limits
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import ModelCallEvent, Observable, StopReason, Usage
from seatrial.core.usage import Price
from seatrial.environment.pace import Rates
from seatrial.environment.trial import current_trial
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing.pydantic_ai import ScriptedModel, say


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def said(messages: list[ModelMessage]) -> list[str]:
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, UserPromptPart)]


def solo(*lines: Any, **settings: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(lines), name="solo", tools=[add], **settings)


# --- turns and trials


def test_trials_of_one_agent_at_once_keep_apart() -> None:
    async def slow_add(a: int) -> int:
        """Add, letting others go first."""
        await asyncio.sleep(0)
        return a + int(current_trial().state["add"])

    def reply(messages: list[ModelMessage]) -> ModelResponse:
        returned = [part for part in messages[-1].parts if part.part_kind == "tool-return"]
        if returned:
            return say(f"{said(messages)} {returned[0].content}")
        return say(calls=[("slow_add", {"a": len(said(messages))}, "c1")])

    agent = Agent(ScriptedModel(reply), name="solo", tools=[slow_add])

    async def all_at_once() -> list[Any]:
        trials = [Drive(agent).arun(f"n{n}", "again", state={"add": 10 * n}) for n in range(20)]
        return await asyncio.gather(*trials)

    for n, driven in enumerate(asyncio.run(all_at_once())):
        assert [call.result for call in driven.calls] == [10 * n + 1, 10 * n + 2]
        assert driven.output == f"['n{n}', 'again'] {10 * n + 2}"


def test_nothing_is_left_on_the_agent() -> None:
    agent = Agent(ScriptedModel([say("one"), say("two")]))
    before = {key: value for key, value in vars(agent).items() if not key.startswith("_cached")}
    drive(agent)
    assert vars(agent) == before
    assert agent.name is None
    assert asyncio.run(agent.run("outside")).output == "two"


def test_the_agent_is_found_by_its_class_and_anything_else_is_refused() -> None:
    assert agent_for(solo(say("x"))).kind == "pydantic_ai"
    with pytest.raises(UsageError, match="object of type ScriptedModel is no Pydantic AI agent"):
        agent_for(ScriptedModel([]), AgentSpec(kind="pydantic_ai"))


def test_what_is_observed_is_what_can_be() -> None:
    observed = drive(solo(say("x"))).trace.observes
    assert observed == {
        Observable.OUTPUT,
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
        Observable.APPROVALS,
    }


def test_a_streaming_model_is_seen_like_any_other() -> None:
    words: list[Any] = []

    async def listen(_: Any, events: Any) -> None:
        async for event in events:
            words.append(event)

    lines = [say(calls=[("add", {"a": 1}, "c1")]), say("it is three")]
    driven = drive(solo(*lines, capabilities=[ProcessEventStream(listen)]))
    assert len(words) > 5
    assert (driven.output, driven.call.result, driven.call.step) == ("it is three", 3, 2)
    assert [call.usage and call.usage.input for call in driven.model_calls] == [10, 10]


# --- agents within agents


def delegating(*lines: Any, **sub: Any) -> Agent[Any, Any]:
    below = Agent(ScriptedModel(lines), name="below", tools=[add], **sub)
    above = Agent(ScriptedModel([say(calls=[("ask", {"q": "x"}, "c1")]), say("done")]), name="above")

    @above.tool
    async def ask(ctx: RunContext[Any], q: str) -> str:
        """Ask below."""
        return str((await below.run(q, usage=ctx.usage)).output)

    return above


def test_a_nested_agents_calls_are_its_own_even_with_the_same_ids() -> None:
    driven = drive(delegating(say(calls=[("add", {"a": 1}, "c1")]), say("three")))
    outer, inner = driven.calls
    assert [(call.name, call.agent, call.attempt) for call in driven.calls] == [
        ("ask", "above", 1),
        ("add", "below", 1),
    ]
    assert (outer.result, outer.told, inner.result, inner.told) == ("three", None, 3, None)
    assert outer.number < inner.number < (inner.ended or 0) < (outer.ended or 0)
    assert [call.agent for call in driven.model_calls] == ["above", "below", "below", "above"]
    assert driven.trace.steps == 4


def test_nested_steps_count_against_the_limit() -> None:
    driven = drive(delegating(*[say(calls=[("add", {"a": 1})])] * 9), steps=4)
    assert driven.trace.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 4
    assert driven.states == [("ask", "failed"), *[("add", "executed")] * 3]


def test_an_output_function_named_for_it_hands_over() -> None:
    expert = Agent(ScriptedModel([say("seven")]), name="expert")

    async def transfer_to_expert(reason: str, order_id: str) -> str:
        """Hand over."""
        return (await expert.run(reason)).output

    asked = ("transfer_to_expert", {"reason": "hard", "order_id": "O-1"})
    output = ToolOutput(transfer_to_expert, name="transfer_to_expert")
    driven = drive(Agent(ScriptedModel([say(calls=[asked])]), name="desk", output_type=[str, output]))
    (handoff,) = driven.handoffs
    assert (handoff.source, handoff.target, handoff.reason) == ("desk", "expert", "hard")
    assert (handoff.context, handoff.completed, handoff.step) == ({"order_id": "O-1"}, True, 2)
    assert (driven.output, driven.calls) == ("seven", [])
    assert handoff.number < driven.model_calls[1].number


def test_a_tool_named_for_it_hands_over_and_one_that_raises_does_not_complete() -> None:
    def transfer_to_expert(reason: str) -> str:
        """Hand over."""
        raise PermissionError("closed")

    model = ScriptedModel([say(calls=[("transfer_to_expert", {"reason": "hard"})])])
    driven = drive(Agent(model, name="desk", tools=[transfer_to_expert]))
    assert [(one.target, one.completed) for one in driven.handoffs] == [("expert", False)]
    assert driven.calls == []
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_handoff_to_nobody_is_refused() -> None:
    model = ScriptedModel([say(calls=[("transfer_to_ghost", {"reason": "hard"})]), say("sorry")])
    driven = drive(Agent(model, name="desk"))
    assert [(one.source, one.target, one.completed) for one in driven.handoffs] == [("desk", "ghost", False)]
    assert (driven.output, driven.calls) == ("sorry", [])


# --- limits


def test_the_frameworks_default_limit_does_not_get_in_the_way() -> None:
    driven = drive(solo(*[say(calls=[("add", {"a": 1})])] * 60, say("ok")), steps=100)
    assert (driven.output, driven.trace.steps) == ("ok", 61)


def test_a_limit_that_the_agent_sets_itself_is_a_hard_stop_too() -> None:
    below = Agent(ScriptedModel([say("x")]))
    above = solo(say(calls=[("ask", {})]))

    @above.tool_plain
    async def ask() -> str:
        """Ask below."""
        return (await below.run("x", usage_limits=UsageLimits(request_limit=0))).output

    assert drive(above).trace.stop_reason is StopReason.MAX_STEPS


def test_a_limit_of_money_ends_the_trial() -> None:
    case = Case(id="case", input="go", limits=Limits(cost_usd=0.00002))
    planned = PlannedCase(case, "", (), 1, OneFixture(case, FixtureSpec()))
    agent = agent_for(solo(*[say(calls=[("add", {"a": 1})])] * 9))
    settings = TrialSettings(prices={"scripted": Price(input=1.0, output=1.0)})
    record, trace = asyncio.run(run_trial(agent, planned, 1, settings))
    assert record.stop_reason is StopReason.BUDGET
    assert [(call.usage or Usage()).input for call in trace.of(ModelCallEvent)] == [10, 10]


def test_models_wait_for_their_turn() -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    spec = RatesSpec.model_validate({"models": {"scripted": {"requests_per_minute": 60}}})
    settings = TrialSettings(rates=Rates(spec, clock=lambda: 0.0, pause=pause))
    agent = agent_for(solo(say(calls=[("add", {"a": 1})]), say(calls=[("add", {"a": 1})]), say("ok")))
    asyncio.run(run_trial(agent, Drive(None).planned("go", (), {}), 1, settings))
    assert waits == [1.0, 2.0]


# --- behind a function


def test_an_agent_behind_a_function_is_seen() -> None:
    agent = delegating(say(calls=[("add", {"a": 1}, "c1")]), say("three"))

    async def answer(task: str) -> str:
        return (await agent.run(task)).output

    driven = drive(answer, tools={"add": [{"returns": 30}]})
    assert [(call.name, call.agent, call.result) for call in driven.calls] == [
        ("ask", "above", "three"),
        ("add", "below", 30),
    ]
    assert driven.trace.steps == 4
    assert {Observable.MODEL_CALLS, Observable.TOOL_CALLS} <= driven.trace.observes


def test_an_agent_behind_a_sync_function_is_seen() -> None:
    agent = solo(say(calls=[("add", {"a": 1})]), say("three"))

    def answer(task: str) -> str:
        try:
            return agent.run_sync(task).output
        finally:
            asyncio.get_event_loop().close()  # `run_sync` leaves the loop that it makes open

    assert drive(answer).states == [("add", "executed")]


def test_outside_a_trial_nobody_watches() -> None:
    agent = solo(say(calls=[("add", {"a": 1})]), say("a"), say(calls=[("add", {"a": 1})]), say("b"))
    driven = drive(agent)
    assert asyncio.run(agent.run("x")).output == "b"
    assert len(driven.calls) == 1


FIRST_CALL = """
import asyncio, sys
sys.path.insert(0, "tests")
from graphs import drive

def answer(task):
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel
    from pydantic_ai.messages import ModelResponse, TextPart

    agent = Agent(FunctionModel(lambda messages, info: ModelResponse(parts=[TextPart("hi")]), model_name="m"))
    return asyncio.run(agent.run(task)).output

assert "pydantic_ai" not in sys.modules
driven = drive(answer)
assert driven.output == "hi", driven
print([call.model for call in driven.model_calls])
"""


@pytest.mark.slow
def test_a_framework_that_is_loaded_in_the_first_call_is_seen_at_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert (done.stdout.strip(), done.returncode) == ("['m']", 0), done.stderr
