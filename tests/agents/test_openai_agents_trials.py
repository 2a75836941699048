"""Agents of the OpenAI Agents SDK in trials: approvals, turns, limits, stand-ins, isolation, hidden agents, tracing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from agents.run import get_default_agent_runner
from agents.tracing import get_trace_provider

from agents import (
    Agent,
    GuardrailFunctionOutput,
    ModelProvider,
    RunConfig,
    RunContextWrapper,
    RunHooks,
    Runner,
    function_tool,
    input_guardrail,
)
from graphs import Drive, Driven, drive
from seatrial.agents.detect import agent_for
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import Guardrail, StopReason
from seatrial.core.trial import InvalidReason
from seatrial.core.usage import Price
from seatrial.environment.pace import Rates
from seatrial.environment.trial import current_trial
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing.openai_agents import ScriptedAgentsModel, ScriptExhausted, say

PAID: list[float] = []


@function_tool
def look(key: str) -> str:
    """Look."""
    return f"own {key}"


@function_tool(needs_approval=True)
def pay(amount: float) -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount:g}"


@function_tool
def count(n: int) -> int:
    """Count."""
    return n


@function_tool
async def hang(key: str) -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return key


@function_tool
def exiting(key: str) -> str:
    """Leave."""
    raise SystemExit(3)


@function_tool
async def exiting_later(key: str) -> str:
    """Leave."""
    raise SystemExit(3)


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    PAID.clear()


def agent(script: Any, *tools: Any, name: str = "desk", **more: Any) -> Any:
    return Agent(name=name, tools=list(tools), model=ScriptedAgentsModel(script), **more)


def looks_up(items: list[Any]) -> Any:
    """Looks its question up, then says what it found."""
    last = items[-1]
    return say(str(last["output"])) if "output" in last else say(calls=[("look", {"key": last["content"]})])


def looking() -> Any:
    return agent(looks_up, look, name="looker")


def circling(items: list[Any]) -> Any:
    return say(calls=[("look", {"key": "x"})])


def remembers(items: list[Any]) -> Any:
    return say(" / ".join(item["content"] for item in items if item.get("role") == "user"))


def run(target: Any, planned: PlannedCase | None = None, **settings: Any) -> Driven:
    planned = planned or Drive(target).planned("go", (), {})
    return Driven(*asyncio.run(run_trial(agent_for(target, AgentSpec()), planned, 1, TrialSettings(**settings))))


# --- approvals


def paying(*calls: Any) -> Any:
    return agent([say(calls=calls), say("done")], pay, count)


def rule(decision: str, **more: Any) -> dict[str, Any]:
    return {"action": "pay", "decision": decision, "by": "supervisor", **more}


def approved(driven: Driven) -> list[tuple[str, Any, str]]:
    return [(one.action, one.arguments, one.decision) for one in driven.approvals]


def test_a_granted_call_runs_after_its_approval() -> None:
    driven = drive(paying(("pay", {"amount": 9}, "c1")), approvals=[rule("granted")])
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    (approval,) = driven.approvals
    assert (approval.call_id, approval.approver, approval.agent) == ("c1", "supervisor", "desk")
    assert approval.ended is not None
    assert approval.ended <= driven.call.number
    assert (driven.states, driven.call.result, driven.output) == ([("pay", "executed")], "paid 9", "done")
    assert driven.call.step == driven.model_calls[0].number
    assert PAID == [9]


def test_a_denied_call_is_refused_and_its_body_never_ran() -> None:
    driven = drive(paying(("pay", {"amount": 9}, "c1")), approvals=[rule("denied")])
    assert approved(driven) == [("pay", {"amount": 9}, "denied")]
    assert (driven.states, driven.output, PAID) == ([("pay", "refused")], "done", [])
    assert "not approved" in str(driven.call.told or driven.call.error)


@pytest.mark.parametrize(("scripted", "status"), [(True, "ungraded"), (False, "failed")])
def test_an_unanswered_request_ends_the_turn_as_waiting(scripted: bool, status: str) -> None:
    driven = drive(paying(("pay", {"amount": 9}, "c1")), approvals=[rule("unanswered")] if scripted else [])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert approved(driven) == [("pay", {"amount": 9}, "unanswered")]
    assert (driven.states, driven.record.status, PAID) == ([("pay", "refused")], status, [])


def test_several_requests_are_answered_each_by_its_own_rule_and_other_calls_run() -> None:
    calls = [("pay", {"amount": 9}, "c1"), ("pay", {"amount": 900}, "c2"), ("count", {"n": 3}, "c3")]
    rules = [rule("denied", when={"amount": {"$gt": 500}}), rule("granted")]
    driven = drive(paying(*calls), approvals=rules)
    assert {one.call_id: one.decision for one in driven.approvals} == {"c1": "granted", "c2": "denied"}
    states = {call.call_id: call.state.value for call in driven.calls}
    assert states == {"c1": "executed", "c2": "refused", "c3": "executed"}
    assert len({call.step for call in driven.calls}) == 1
    assert PAID == [9]


def test_one_unanswered_among_several_keeps_all_from_running() -> None:
    calls = [("pay", {"amount": 9}, "c1"), ("pay", {"amount": 900}, "c2")]
    driven = drive(paying(*calls), approvals=[rule("granted", when={"amount": {"$lte": 500}})])
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert [decision for _, _, decision in approved(driven)] == ["granted", "unanswered"]
    assert {call.call_id: call.state.value for call in driven.calls} == {"c1": "unknown", "c2": "refused"}
    assert PAID == []


def nested(*script: Any) -> Any:
    inner = agent([say(calls=[("pay", {"amount": 9}, "c2")]), *script], pay, name="inner")
    return agent([say(calls=[("ask", {"input": "pay"}, "c1")]), say("done")], inner.as_tool("ask", "Ask."))


def test_an_approval_within_a_nested_agent_is_asked_and_its_call_is_one_event() -> None:
    driven = drive(
        nested(say("paid")), approvals=[rule("granted")], faults=[{"tool": "ask", "on_call": 2, "error": "error"}]
    )
    assert sorted(driven.states) == [("ask", "executed"), ("pay", "executed")]
    assert approved(driven) == [("pay", {"amount": 9}, "granted")]
    assert (driven.approvals[0].agent, driven.output, PAID) == ("inner", "done", [9])


def test_an_agent_that_waits_within_a_call_leaves_it_without_an_end() -> None:
    driven = drive(nested())
    assert driven.trace.stop_reason is StopReason.WAITING_APPROVAL
    assert sorted(driven.states) == [("ask", "unknown"), ("pay", "refused")]


# --- stand-ins and faults


def test_a_stand_in_answers_for_the_agents_own_tool() -> None:
    target = looking()
    driven = drive(target, tools={"look": [{"when": {"key": "go"}, "returns": "standing in"}]})
    assert (driven.output, driven.call.stand_in, driven.call.result) == ("standing in", True, "standing in")
    assert drive(target).output == "own go"


def test_a_tool_reaches_the_running_trial_and_its_approvals() -> None:
    @function_tool
    def wipe(path: str) -> str:
        """Delete."""
        if not current_trial().approve("wipe", {"path": path}).allowed:
            raise PermissionError("no")
        return "gone"

    driven = drive(agent([say(calls=[("wipe", {"path": "/x"}, "c1")]), say("done")], wipe))
    assert driven.approvals[0].call_id == "c1"
    assert (driven.states, driven.call.error) == ([("wipe", "refused")], "PermissionError: no")


# --- turns, input, output


@dataclass
class Customer:
    name: str


def as_customer(given: Any) -> Any:
    return {"input": given["question"], "context": Customer(given["name"])}


def test_input_gives_the_run_its_context() -> None:
    @function_tool
    def who(context: RunContextWrapper[Customer]) -> str:
        """Tell the customer."""
        return context.context.name

    target = agent([say(calls=[("who", {}, "c1")]), say("done")], who)
    driven = drive(target, {"question": "who am I?", "name": "Robin"}, spec=AgentSpec(input=f"{__name__}:as_customer"))
    assert driven.call.result == "Robin"


@pytest.mark.parametrize("given", ["$input.question", {"input": "$input.question", "max_turns": 3}])
def test_input_says_what_the_agent_is_asked(given: Any) -> None:
    spec = AgentSpec(input=given, output="last_agent.name")
    target = agent(remembers)
    assert drive(target, {"question": "why"}, spec=spec).output == "desk"
    assert target.model.seen[0][0]["content"] == "why"


@pytest.mark.parametrize(
    ("spec", "what"),
    [
        ({"input": 3}, "agent input"),
        ({"input": {"max_turn": 3}}, "did you mean 'max_turns'"),
        ({"output": 3}, "output"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(spec: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        agent_for(looking(), AgentSpec(**spec))


def test_input_without_a_message_says_what_to_write() -> None:
    driven = drive(looking(), {"question": "x"})
    assert driven.trace.error is not None
    assert "agent: {input: ...}" in driven.trace.error.message


# --- ends


def test_the_sdks_own_limit_is_a_limit_of_steps() -> None:
    driven = drive(agent(circling, look), spec=AgentSpec(input={"input": "$message", "max_turns": 2}))
    assert (driven.trace.stop_reason, len(driven.model_calls)) == (StopReason.MAX_STEPS, 2)
    assert driven.record.detail == "max_steps: the agent's own max_turns was reached (Max turns (2) exceeded)"


def test_a_nested_agent_reaches_the_limit_of_steps_too() -> None:
    inner = agent(circling, look, name="inner")
    driven = drive(agent([say(calls=[("ask", {"input": "x"}, "c1")])], inner.as_tool("ask", "Ask.")), steps=3)
    assert (driven.trace.stop_reason, len(driven.model_calls)) == (StopReason.MAX_STEPS, 3)


def test_a_tool_that_does_not_come_back_runs_into_the_time_limit() -> None:
    target = agent([say(calls=[("hang", {"key": "x"}, "c1")])], hang)
    planned = Drive(target).planned("go", (), {})
    limits = planned.case.limits.model_copy(update={"timeout_s": 0.3})
    driven = run(target, replace(planned, case=planned.case.model_copy(update={"limits": limits})))
    assert driven.trace.stop_reason is StopReason.TIMEOUT
    assert (driven.states, driven.call.error) == ([("hang", "failed")], "never ended")


@pytest.mark.parametrize("tool", [exiting, exiting_later])
def test_a_tool_that_leaves_ends_the_trial_and_nothing_else(tool: Any) -> None:
    driven = drive(agent([say(calls=[(tool.name, {"key": "x"})]), say("done")], tool))
    assert driven.trace.error is not None
    assert driven.trace.error.type == "SystemExit"
    assert (driven.states, driven.call.error) == ([(tool.name, "failed")], "SystemExit: 3")


def test_a_script_that_is_over_is_an_error() -> None:
    driven = drive(agent([]))
    assert driven.trace.error is not None
    assert driven.trace.error.type.endswith(ScriptExhausted.__name__)


# --- rates and money


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.now, self.waits = 0.0, []

    async def pause(self, seconds: float) -> None:
        self.now += seconds
        self.waits.append(seconds)

    def rates(self, **limits: Any) -> Rates:
        return Rates(RatesSpec.model_validate(limits), clock=lambda: self.now, pause=self.pause)


def test_model_calls_and_tools_wait_for_their_turn() -> None:
    clock = Clock()
    calls = [("look", {"key": "x"}), ("look", {"key": "y"})]
    limits = {"models": {"scripted": {"requests_per_minute": 30}}, "tools": {"look": {"requests_per_minute": 60}}}
    driven = run(agent([say(calls=calls), say("done")], look), rates=clock.rates(**limits))
    assert (driven.output, clock.waits) == ("done", [1.0, 1.0])
    assert driven.record.latency_ms == 0.0  # all of it was waiting, by the pretended clock


def test_no_model_is_called_without_a_price() -> None:
    driven = run(looking(), priced_only=True)
    assert driven.model_calls == []
    assert (driven.record.stop_reason, driven.record.invalid_reason) == (StopReason.BUDGET, InvalidReason.HARNESS)
    assert run(looking(), priced_only=True, prices={"scripted": Price(input=1, output=1)}).output == "own go"


def test_an_agent_is_stopped_at_its_limit_of_money() -> None:
    planned = Drive(looking()).planned("go", (), {})
    limits = planned.case.limits.model_copy(update={"cost_usd": 0.000_008})
    planned = replace(planned, case=planned.case.model_copy(update={"limits": limits}))
    driven = run(looking(), planned, prices={"scripted": Price(input=1, output=0)})  # ten tokens a call
    assert driven.record.stop_reason is StopReason.BUDGET
    assert len(driven.model_calls) == 1


# --- many trials


@pytest.mark.slow
def test_twenty_trials_of_one_agent_at_once_keep_apart() -> None:
    shared = agent_for(looking(), AgentSpec())

    async def all_at_once() -> list[Driven]:
        cases = [
            Drive(None).planned(f"q{n}", (f"r{n}",), {"tools": {"look": [{"returns": f"a{n}"}]}}) for n in range(20)
        ]
        done = await asyncio.gather(*(run_trial(shared, planned, 1, TrialSettings()) for planned in cases))
        return [Driven(*one) for one in done]

    for n, driven in enumerate(asyncio.run(all_at_once())):
        assert driven.output == f"a{n}"
        assert [call.arguments for call in driven.calls] == [{"key": f"q{n}"}, {"key": f"r{n}"}]
        assert [call.result for call in driven.calls] == [f"a{n}"] * 2
        assert len(driven.model_calls) == 4


# --- hidden in a function


async def hidden(task: str) -> str:
    return str((await Runner.run(looking(), task)).final_output)


async def hidden_and_streamed(task: str) -> str:
    result = Runner.run_streamed(looking(), task)
    async for _ in result.stream_events():
        pass
    return str(result.final_output)


def hidden_behind_sync_code(task: str) -> str:
    return asyncio.run(hidden(task))


@pytest.mark.parametrize("function", [hidden, hidden_and_streamed, hidden_behind_sync_code])
def test_an_agent_hidden_in_a_function_is_observed_and_stood_in_for(function: Any) -> None:
    driven = drive(function, "tides", tools={"look": [{"returns": "wet"}]})
    assert (driven.output, driven.states) == ("wet", [("look", "executed")])
    assert (driven.call.agent, driven.call.step, driven.call.stand_in) == ("looker", driven.model_calls[0].number, True)
    assert (driven.trace.steps, driven.model_calls[0].usage is not None) == (2, True)


def test_an_unknown_tool_that_the_model_is_told_of_does_not_end_the_run() -> None:
    async def lenient(task: str) -> str:
        target = agent([say(calls=[("ghost", {}, "c1"), ("count", {"n": 1}, "c2")]), say("done")], count)
        config = RunConfig(tool_not_found_behavior="return_error_to_model")
        return str((await Runner.run(target, task, run_config=config)).final_output)

    driven = drive(lenient)
    assert sorted(driven.states) == [("count", "executed"), ("ghost", "unknown_tool")]
    assert (driven.output, {call.step for call in driven.calls}) == ("done", {driven.model_calls[0].number})


def test_a_nested_agent_that_streams_is_observed() -> None:
    async def on_stream(event: Any) -> None:
        await asyncio.sleep(0)

    inner = agent([say(calls=[("count", {"n": 3}, "c2")]), say("three")], count, name="inner")
    ask = inner.as_tool("ask", "Ask.", on_stream=on_stream)
    driven = drive(agent([say(calls=[("ask", {"input": "x"}, "c1")]), say("done")], ask))
    assert [(call.name, call.agent, call.result) for call in driven.calls] == [
        ("ask", "desk", "three"),
        ("count", "inner", 3),
    ]
    assert [call.agent for call in driven.model_calls] == ["desk", "inner", "inner", "desk"]


class Provider(ModelProvider):
    """Gives a scripted model for any name."""

    def get_model(self, model_name: str | None) -> ScriptedAgentsModel:
        return ScriptedAgentsModel([say("hi")], model=str(model_name))


def test_a_model_that_is_named_only_goes_by_that_name() -> None:
    async def named(task: str) -> str:
        target = Agent(name="desk", model="small-model")
        return str((await Runner.run(target, task, run_config=RunConfig(model_provider=Provider()))).final_output)

    assert [call.model for call in drive(named).model_calls] == ["small-model"]


def test_a_streamed_run_that_fails_tells_of_its_model_call_and_guardrails() -> None:
    @input_guardrail
    async def polite(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    async def streamed(task: str) -> str:
        result = Runner.run_streamed(agent([RuntimeError("model down")], input_guardrails=[polite]), task)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    driven = drive(streamed)
    assert [call.error for call in driven.model_calls] == ["RuntimeError: model down"]
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert [guard.name for guard in driven.trace.of(Guardrail)] == ["polite"]


def test_a_hidden_agent_ends_at_the_limit_of_steps() -> None:
    async def runs_in_circles(task: str) -> str:
        return str((await Runner.run(agent(circling, look), task)).final_output)

    driven = drive(runs_in_circles, steps=3)
    assert (driven.trace.stop_reason, len(driven.model_calls)) == (StopReason.MAX_STEPS, 3)


class Noting(RunHooks[Any]):
    """Hooks of the user's own."""

    def __init__(self) -> None:
        self.noted: list[str] = []

    async def on_llm_start(self, *_: Any) -> None:
        self.noted.append("model")

    async def on_tool_end(self, *_: Any) -> None:
        self.noted.append("tool")


def test_the_users_own_hooks_and_settings_hold_still() -> None:
    hooks, other = Noting(), ScriptedAgentsModel([say("from the other")], model="other")

    async def task(message: str) -> str:
        await Runner.run(looking(), message, hooks=hooks)
        return str((await Runner.run(looking(), message, run_config=RunConfig(model=other))).final_output)

    driven = drive(task)
    assert hooks.noted == ["model", "tool", "model"]
    assert (driven.output, driven.model_calls[-1].model) == ("from the other", "other")


def test_outside_a_trial_runs_and_tools_are_as_they_were() -> None:
    drive(looking())
    result = asyncio.run(Runner.run(looking(), "go"))
    assert result.final_output == "own go"
    first = get_default_agent_runner()
    drive(looking())
    assert get_default_agent_runner() is first


HIDDEN = """
import sys
from graphs import drive

async def agent(task):
    from agents import Agent, Runner, function_tool
    from seatrial.testing.openai_agents import ScriptedAgentsModel, say
    @function_tool
    def look(key: str) -> str:
        "Look."
        return key
    model = ScriptedAgentsModel([say(calls=[("look", {"key": "x"})]), say("done")])
    return (await Runner.run(Agent(name="a", tools=[look], model=model), task)).final_output

from seatrial.agents.detect import agent_for
agent_for(agent)
assert "agents" not in sys.modules
driven = drive(agent, tools={"look": [{"returns": "y"}]})
print(driven.output, driven.states, driven.call.result, driven.trace.steps)
from agents.tracing import get_trace_provider, trace
with trace("mine") as mine:
    print(type(mine).__name__)
"""


@pytest.mark.slow
def test_an_agent_that_loads_the_sdk_in_its_first_call_is_observed_and_traces_nothing() -> None:
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.stdout == "done [('look', 'executed')] y 2\nNoOpTrace\n", done.stderr


def test_tracing_to_openai_is_off() -> None:
    agent_for(looking(), AgentSpec())
    assert type(get_trace_provider().create_trace("x")).__name__ == "NoOpTrace"


def test_an_object_of_the_sdk_that_is_no_agent_is_refused() -> None:
    with pytest.raises(UsageError, match="give its Agent"):
        agent_for(ScriptedAgentsModel([]), AgentSpec(kind="openai_agents"))
