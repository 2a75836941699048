"""Trials of Google ADK agents: turns, nested agents, hand-offs, limits, isolation, agents behind a function."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import Any

import pytest
from google.adk.agents import LlmAgent, ParallelAgent, SequentialAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import InMemoryRunner
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import START, Workflow
from google.genai import types

from graphs import Drive, OneFixture, drive
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case, Limits
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.core.usage import Price
from seatrial.environment.pace import Rates
from seatrial.environment.trial import current_trial
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing.google_adk import ScriptedLlm, say

DEPRECATED = pytest.mark.filterwarnings("ignore:.*is deprecated in favor of Workflow:DeprecationWarning")


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def said(contents: list[types.Content]) -> list[str]:
    return [part.text for one in contents if one.role == "user" for part in one.parts or () if part.text]


def echo(contents: list[types.Content]) -> LlmResponse:
    return say(" | ".join(said(contents)))


def agent(*lines: Any, name: str = "solo", tools: Any = (add,), **settings: Any) -> LlmAgent:
    script = lines[0] if len(lines) == 1 and callable(lines[0]) else list(lines)
    return LlmAgent(name=name, description=name, model=ScriptedLlm(script=script), tools=list(tools), **settings)


# --- turns and trials


@pytest.mark.parametrize("wrap", ["agent", "app", "runner"])
def test_a_conversation_is_one_session_of_the_trials_own(wrap: str) -> None:
    root = agent(echo)
    target: Any = root if wrap == "agent" else App(name="shop", root_agent=root)
    target = InMemoryRunner(app=target) if wrap == "runner" else target
    for _ in range(2):
        driven = drive(target, "one", "two", "three")
        assert driven.trace.outputs == ("one", "one | two", "one | two | three")
    assert [call.turn for call in driven.model_calls] == [1, 2, 3]


def test_trials_of_one_agent_at_once_keep_apart() -> None:
    async def slow_add(a: int, tool_context: ToolContext) -> int:
        """Add, letting others go first."""
        await asyncio.sleep(0)
        tool_context.state["seen"] = [*tool_context.state.get("seen", []), a]
        return a + int(current_trial().state["add"])

    def reply(contents: list[types.Content]) -> LlmResponse:
        last = (contents[-1].parts or [types.Part()])[-1]
        if last.function_response:
            return say(f"{said(contents)} {(last.function_response.response or {})['result']}")
        return say(calls=[("slow_add", {"a": len(said(contents))}, "c1")])

    root = agent(reply, tools=[slow_add])

    async def all_at_once() -> list[Any]:
        trials = [Drive(root).arun(f"n{n}", "again", state={"add": 10 * n}) for n in range(20)]
        return await asyncio.gather(*trials)

    for n, driven in enumerate(asyncio.run(all_at_once())):
        assert [call.result for call in driven.calls] == [10 * n + 1, 10 * n + 2]
        assert driven.output == f"['n{n}', 'again'] {10 * n + 2}"
        assert driven.record.outcome == {"seen": [1, 2]}


def test_a_runners_own_services_other_than_sessions_stay_in_use() -> None:
    runner = InMemoryRunner(app=App(name="shop", root_agent=agent(say("x"), say("y"))))
    assert isinstance(runner.memory_service, InMemoryMemoryService)
    drive(runner)
    sessions = asyncio.run(runner.session_service.list_sessions(app_name="shop", user_id="user"))
    assert sessions.sessions == []


def test_agents_are_found_by_their_class_and_anything_else_is_refused() -> None:
    root = agent(say("x"))
    for target in (root, App(name="shop", root_agent=root), InMemoryRunner(app=App(name="a", root_agent=root))):
        assert agent_for(target).kind == "google_adk"
    with pytest.raises(UsageError, match="object of type ScriptedLlm is no Google ADK agent"):
        agent_for(ScriptedLlm(script=[]), AgentSpec(kind="google_adk"))


def test_a_version_that_cannot_be_observed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.agents.google_adk.joining._joined", set())
    monkeypatch.delattr("google.adk.flows.llm_flows.tools._caller._call_tool_async")
    with pytest.raises(UsageError, match=r"google-adk \d+\.\d+\.\d+ is not supported"):
        agent_for(agent(say("x")))


def test_what_is_observed_is_what_can_be() -> None:
    assert drive(agent(say("x"))).trace.observes == {
        Observable.OUTPUT,
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.APPROVALS,
    }


def test_the_final_state_is_the_outcome() -> None:
    driven = drive(agent(say("Paris"), output_key="capital"))
    assert driven.record.outcome == {"capital": "Paris"}
    assert Observable.OUTCOME in driven.trace.observes


def test_a_streaming_model_is_one_step_a_call() -> None:
    model = ScriptedLlm(script=[say("let me see", [("add", {"a": 1}, "c1")]), say("it is three")], pieces=True)
    driven = drive(LlmAgent(name="solo", model=model, tools=[add]))
    assert (driven.output, driven.call.result, driven.call.step) == ("it is three", 3, 2)
    assert [call.usage and call.usage.input for call in driven.model_calls] == [10, 10]
    spec = AgentSpec(input={"run_config": {"streaming_mode": "sse"}})
    assert drive(agent(say("it is three")), spec=spec).output == "it is three"


# --- input and output

GIVEN = {"message": "Hi", "user": {"id": 7}, "shop": "main"}


def seen(contents: list[types.Content]) -> LlmResponse:
    return say(repr(said(contents)))


@pytest.mark.parametrize(
    ("spec", "output"),
    [
        ({}, "['Hi']"),
        ({"input": "$input.shop"}, "['main']"),
        ({"input": {"message": "$input.user"}}, """['{"id":7}']"""),
        ({"input": {"message": ["a", {"text": "b"}]}}, "['a', 'b']"),
        ({"input": {"state": {"shop": "$input.shop"}}, "output": "state.shop"}, "main"),
        ({"output": "text"}, "['Hi']"),
        ({"output": "builtins:len"}, 3),
    ],
)
def test_input_and_output_are_mapped(spec: dict[str, Any], output: Any) -> None:
    assert drive(agent(seen), GIVEN, spec=AgentSpec(**spec)).output == output


def test_the_session_is_the_identitys_or_as_the_input_says() -> None:
    def who(tool_context: ToolContext) -> str:
        """Tell the user."""
        return tool_context.user_id

    def asking() -> LlmAgent:
        return agent(say(calls=[("who", {})]), say("ok"), tools=[who])

    assert drive(asking()).call.result == "user"
    assert drive(asking(), identity={"user": "customer-1"}).call.result == "customer-1"
    spec = AgentSpec(input={"user_id": "$input.user.id"})
    assert drive(asking(), GIVEN, spec=spec).call.result == "7"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"input": {"mesage": "x"}}, "a run has no 'mesage'; did you mean 'message'"),
        ({"input": 7}, "7 is neither a mapping"),
        ({"output": 7}, "7 is neither a path into what the run gave nor module:function"),
    ],
)
def test_settings_that_make_no_sense_are_refused(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        agent_for(agent(echo), AgentSpec(**spec))


def test_an_input_without_a_message_says_so() -> None:
    driven = drive(agent(echo), {"user": 1})
    assert driven.trace.error is not None
    assert "has no `message`" in driven.trace.error.message


# --- agents within agents


def test_a_nested_agents_calls_are_its_own_even_with_the_same_ids() -> None:
    below = agent(say(calls=[("add", {"a": 1}, "c1")]), say("three"), name="below")
    above = agent(say(calls=[("below", {"request": "x"}, "c1")]), say("done"), name="above", tools=[AgentTool(below)])
    driven = drive(above)
    outer, inner = driven.calls
    assert [(call.name, call.agent, call.attempt) for call in driven.calls] == [
        ("below", "above", 1),
        ("add", "below", 1),
    ]
    assert (outer.result, outer.told, inner.result, inner.told) == ("three", None, 3, None)
    assert outer.number < inner.number < (inner.ended or 0) < (outer.ended or 0)
    assert [call.agent for call in driven.model_calls] == ["above", "below", "below", "above"]


@DEPRECATED
def test_agents_side_by_side_with_the_same_ids_keep_apart() -> None:
    asking = say(calls=[("add", {"a": 1}, "c1")])
    pair = [agent(asking, say(name), name=name) for name in ("left", "right")]
    driven = drive(ParallelAgent(name="both", sub_agents=pair))
    assert sorted((str(call.agent), call.result, call.told) for call in driven.calls) == [
        ("left", 3, None),
        ("right", 3, None),
    ]
    assert {call.step for call in driven.calls} == {call.number for call in driven.model_calls[:2]}


@DEPRECATED
def test_the_last_of_a_sequence_answers() -> None:
    steps = [agent(say("draft"), name="writer"), agent(say("final"), name="editor")]
    driven = drive(SequentialAgent(name="desk", sub_agents=steps))
    assert (driven.output, [call.agent for call in driven.model_calls]) == ("final", ["writer", "editor"])


def test_a_workflow_is_run_as_it_ships() -> None:
    def shout(node_input: str) -> str:
        return node_input.upper()

    desk = agent(say(calls=[("add", {"a": 1})]), say("three"))
    driven = drive(Workflow(name="flow", edges=[(START, desk, shout)]))
    assert (driven.output, driven.states, driven.trace.steps) == ("THREE", [("add", "executed")], 2)


def test_a_transfer_that_is_not_allowed_is_refused() -> None:
    inner = agent(say("x"), name="inner")
    middle = agent(say("y"), name="middle", sub_agents=[inner])
    asking = say(calls=[("transfer_to_agent", {"agent_name": "inner"})])
    driven = drive(agent(asking, name="desk", sub_agents=[middle]))
    assert [(one.target, one.completed) for one in driven.handoffs] == [("inner", False)]
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_tool_named_for_it_hands_over_with_its_context() -> None:
    def transfer_to_billing(reason: str, order_id: str) -> str:
        """Hand over."""
        return "billing will call"

    asked = ("transfer_to_billing", {"reason": "refund", "order_id": "O-1"})
    driven = drive(agent(say(calls=[asked]), say("ok"), tools=[transfer_to_billing]))
    (handoff,) = driven.handoffs
    assert (handoff.target, handoff.reason, handoff.context) == ("billing", "refund", {"order_id": "O-1"})
    assert Observable.HANDOFF_CONTEXT in driven.trace.observes


def test_the_agent_that_took_over_answers_the_next_turn() -> None:
    expert = agent(say("seven"), say("eight"), name="expert")
    desk = agent(say(calls=[("transfer_to_agent", {"agent_name": "expert"})]), name="desk", sub_agents=[expert])
    driven = drive(desk, "first", "second")
    assert driven.trace.outputs == ("seven", "eight")
    assert [call.agent for call in driven.model_calls] == ["desk", "expert", "expert"]


# --- limits


def test_a_limit_that_is_set_for_the_run_is_a_hard_stop_too() -> None:
    spec = AgentSpec(input={"run_config": {"max_llm_calls": 2}})
    driven = drive(agent(*[say(calls=[("add", {"a": 1})])] * 9), spec=spec)
    assert (driven.trace.stop_reason, driven.trace.steps) == (StopReason.MAX_STEPS, 2)
    assert driven.record.detail.startswith("max_steps: the agent's own max_llm_calls was reached (")
    assert "`2`" in driven.record.detail


def test_a_limit_of_money_ends_the_trial() -> None:
    case = Case(id="case", input="go", limits=Limits(cost_usd=0.00002))
    planned = PlannedCase(case, "", (), 1, OneFixture(case, FixtureSpec()))
    settings = TrialSettings(prices={"scripted": Price(input=1.0, output=1.0)})
    target = agent_for(agent(*[say(calls=[("add", {"a": 1})])] * 9))
    record, trace = asyncio.run(run_trial(target, planned, 1, settings))
    assert record.stop_reason is StopReason.BUDGET
    assert trace.steps == 2


def test_models_wait_for_their_turn() -> None:
    waits: list[float] = []

    async def pause(seconds: float) -> None:
        waits.append(seconds)

    spec = RatesSpec.model_validate({"models": {"scripted": {"requests_per_minute": 60}}})
    settings = TrialSettings(rates=Rates(spec, clock=lambda: 0.0, pause=pause))
    target = agent_for(agent(say(calls=[("add", {"a": 1})]), say(calls=[("add", {"a": 1})]), say("ok")))
    asyncio.run(run_trial(target, Drive(None).planned("go", (), {}), 1, settings))
    assert waits == [1.0, 2.0]


# --- behind a function


async def ask(root: LlmAgent, task: str) -> str:
    runner = InMemoryRunner(agent=root, app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=task)])
    text = ""
    async for event in runner.run_async(
        user_id="u", session_id=session.id, new_message=message, run_config=RunConfig(max_llm_calls=9)
    ):
        if event.is_final_response() and event.content:
            text = "".join(part.text or "" for part in event.content.parts or ())
    return text


def test_an_agent_behind_a_function_is_seen() -> None:
    root = agent(say(calls=[("add", {"a": 1})]), say("three"))

    async def answer(task: str) -> str:
        return await ask(root, task)

    driven = drive(answer, tools={"add": [{"returns": 30}]})
    assert (driven.output, driven.call.result, driven.call.agent, driven.trace.steps) == ("three", 30, "solo", 2)


def test_a_refused_transfer_behind_a_function_is_seen_even_when_the_function_copes() -> None:
    asking, expert = say(calls=[("transfer_to_agent", {"agent_name": "ghost"})]), agent(say("x"), name="expert")
    root = agent(asking, name="desk", sub_agents=[expert])

    async def answer(task: str) -> str:
        try:
            return await ask(root, task)
        except ValueError:
            return "sorry"

    driven = drive(answer)
    assert (driven.output, [one.completed for one in driven.handoffs]) == ("sorry", [False])


def test_an_agent_behind_a_sync_function_is_seen_in_the_runners_thread() -> None:
    runner = InMemoryRunner(agent=agent(say(calls=[("add", {"a": 1})]), say("three")), app_name="app")

    def answer(task: str) -> str:
        session = asyncio.run(runner.session_service.create_session(app_name="app", user_id="u"))
        message = types.Content(role="user", parts=[types.Part(text=task)])
        return str(len(list(runner.run(user_id="u", session_id=session.id, new_message=message))))

    assert drive(answer).states == [("add", "executed")]


def test_outside_a_trial_nobody_watches() -> None:
    root = agent(say(calls=[("add", {"a": 1})]), say("a"), say(calls=[("add", {"a": 1})]), say("b"))
    driven = drive(root)
    assert asyncio.run(ask(root, "x")) == "b"
    assert len(driven.calls) == 1


FIRST_CALL = """
import asyncio, sys
sys.path.insert(0, "tests")
from graphs import drive

async def answer(task):
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Hi(BaseLlm):
        async def generate_content_async(self, llm_request, stream=False):
            yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text="hi")]))

    runner = InMemoryRunner(agent=LlmAgent(name="solo", model=Hi(model="m")), app_name="app")
    session = await runner.session_service.create_session(app_name="app", user_id="u")
    message = types.Content(role="user", parts=[types.Part(text=task)])
    async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
        text = event.content.parts[0].text
    return text

assert "google.adk" not in sys.modules
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
