"""LlamaIndex's agents in trials: turns, limits, stand-ins, faults, isolation, hidden agents, what is no agent."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.core.rate_limiter import BaseRateLimiter
from llama_index.core.workflow import StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel, PrivateAttr

from graphs import Drive, Driven, drive
from seatrial.agents.detect import agent_for
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, RatesSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.core.trial import InvalidReason
from seatrial.core.usage import Price
from seatrial.environment.pace import Rates
from seatrial.environment.trial import current_trial
from seatrial.errors import UsageError
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing.llamaindex import ScriptedLLM, ScriptExhausted, say


def look(key: str) -> str:
    """Look."""
    return f"own {key}"


async def hang(key: str) -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return key


def exiting(key: str) -> str:
    """Leave."""
    raise SystemExit(3)


def asked(messages: list[ChatMessage]) -> str:
    return [message.content or "" for message in messages if message.role == "user"][-1]


def looks_up(messages: list[ChatMessage]) -> Any:
    """Looks its question up, then says what it found."""
    if messages[-1].role == "tool":
        return say(messages[-1].content or "")
    return say(calls=[("look", {"key": asked(messages)})])


def looking(**settings: Any) -> FunctionAgent:
    return FunctionAgent(name="looker", tools=[look], llm=ScriptedLLM(script=looks_up), **settings)


def run(target: Any, planned: PlannedCase | None = None, **settings: Any) -> Driven:
    planned = planned or Drive(target).planned("go", (), {})
    return Driven(*asyncio.run(run_trial(agent_for(target, AgentSpec()), planned, 1, TrialSettings(**settings))))


# --- stand-ins and faults


def test_stand_ins_are_off_where_tools_are_real() -> None:
    agent = looking()
    tools_before = agent.tools
    assert drive(agent).output == "own go"
    assert agent.tools == tools_before


def test_a_tool_reaches_the_running_trial() -> None:
    def where(key: str) -> str:
        """Tell the trial."""
        return str(current_trial().state["place"])

    script = [say(calls=[("where", {"key": "x"})]), say("done")]
    driven = drive(FunctionAgent(tools=[where], llm=ScriptedLLM(script=script)), state={"place": "harbour"})
    assert driven.call.result == "harbour"


# --- turns, memory, output


def remembers(messages: list[ChatMessage]) -> Any:
    return say(" / ".join(message.content or "" for message in messages if message.role == "user"))


def test_tool_results_stand_in_the_memory_of_later_turns() -> None:
    driven = drive(looking(), "tides", "winds")
    assert [call.arguments for call in driven.calls] == [{"key": "tides"}, {"key": "winds"}]
    assert [call.turn for call in driven.calls] == [1, 2]


class Report(BaseModel):
    total: int


def test_a_structured_answer_is_the_output() -> None:
    agent = FunctionAgent(llm=ScriptedLLM(script=[say("3")]), structured_output_fn=lambda messages: {"total": 3})
    assert drive(agent).output == {"total": 3}


def test_a_form_that_the_model_fills_in_is_an_answer_and_no_tool_call() -> None:
    script = [say("3"), say(calls=[("Report", {"total": 3})])]
    driven = drive(FunctionAgent(llm=ScriptedLLM(script=script), output_cls=Report))
    assert (driven.output, driven.calls, len(driven.model_calls)) == ({"total": 3}, [], 2)


def test_the_state_that_agents_keep_is_the_outcome() -> None:
    team = AgentWorkflow(agents=[FunctionAgent(llm=ScriptedLLM(script=[say("hi")]))], initial_state={"orders": 2})
    driven = drive(team)
    assert driven.record.outcome == {"orders": 2}
    assert Observable.OUTCOME in driven.trace.observes


@pytest.mark.parametrize(
    ("given", "question"),
    [
        ({"user_msg": "$input.question"}, "why"),
        ({"user_msg": "$message"}, "hello"),
        ({"user_msg": "$$5", "max_iterations": 3}, "$5"),
    ],
)
def test_input_says_what_the_agent_is_asked(given: Any, question: str) -> None:
    spec = AgentSpec(input=given, output="response.content")
    agent = FunctionAgent(llm=ScriptedLLM(script=remembers))
    assert drive(agent, {"message": "hello", "question": "why"}, spec=spec).output == question


class Doubling(Workflow):
    """A workflow of the user's own."""

    @step
    async def double(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result={"doubled": ev.number * 2})


def test_a_workflow_of_the_users_own_gets_the_inputs_keys() -> None:
    driven = drive(Doubling(), {"number": 4})
    assert (driven.output, driven.trace.steps) == ({"doubled": 8}, None)
    assert driven.trace.observes == {Observable.OUTPUT, Observable.APPROVALS}
    assert drive(Doubling, {"number": 4}).output == {"doubled": 8}


class Order(StartEvent):
    dish: str
    portions: int = 1


class Kitchen(Workflow):
    """A workflow whose start event says what it takes."""

    @step
    async def cook(self, ev: Order) -> StopEvent:
        return StopEvent(result=f"{ev.portions} x {ev.dish}")


class Rush(StartEvent):
    dish: str
    _minutes: int = PrivateAttr(default=30)


class Diner(Workflow):
    """A workflow whose start event has a private attribute, which the framework sets by its name."""

    @step
    async def cook(self, ev: Rush) -> StopEvent:
        return StopEvent(result=f"{ev.dish} in {ev._minutes}")


def test_a_private_attribute_of_the_start_event_is_taken() -> None:
    spec = AgentSpec(input={"dish": "$input.dish", "_minutes": 5})
    assert drive(Diner(), {"dish": "soup"}, spec=spec).output == "soup in 5"
    assert drive(Diner(), "soup").output == "soup in 30"
    with pytest.raises(UsageError, match=r"start event Rush \(dish, _minutes\) takes no '_minute'; did you mean"):
        agent_for(Diner(), AgentSpec(input={"dish": "x", "_minute": 5}))
    with pytest.raises(UsageError, match="takes no '_data'"):
        agent_for(Diner(), AgentSpec(input={"dish": "x", "_data": {}}))


def misspelt(given: Any) -> dict[str, Any]:
    return {"dish": given["dish"], "portion": 2}


MISSPELT = "agent input: the start event Order (dish, portions) takes no 'portion'; did you mean 'portions'?"


def test_a_key_that_the_start_event_does_not_declare_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        agent_for(Kitchen(), AgentSpec(input={"dish": "$input.dish", "portion": 2}))
    assert str(caught.value) == MISSPELT


@pytest.mark.parametrize(
    ("target", "given", "kind", "where"),
    [
        (Kitchen, {"dish": "$input.dish", "portion": 2}, "Misfit", "what the class Kitchen returned: "),
        (Kitchen(), f"{__name__}:misspelt", "UsageError", ""),
    ],
)
def test_a_key_that_is_seen_in_a_trial_only_is_told_with_what_the_start_event_takes(
    target: Any, given: Any, kind: str, where: str
) -> None:
    error = drive(target, {"dish": "soup"}, spec=AgentSpec(input=given)).trace.error
    assert error is not None
    assert (error.type, error.message) == (f"seatrial.errors.{kind}", f"{where}{MISSPELT}")


def test_a_start_event_takes_its_fields_and_more_of_the_case_than_it_declares() -> None:
    spec = AgentSpec(input={"dish": "$input.dish", "portions": 2})
    assert drive(Kitchen(), {"dish": "soup"}, spec=spec).output == "2 x soup"
    assert drive(Kitchen(), {"dish": "soup", "user_id": "u-1"}).output == "1 x soup"


def test_a_start_event_without_fields_and_a_run_of_the_users_own_take_any_key() -> None:
    assert drive(Doubling(), {"n": 2}, spec=AgentSpec(input={"number": "$input.n"})).output == {"doubled": 4}

    class Own(Kitchen):
        def run(self, what: str) -> Any:
            return super().run(dish=what)

    assert drive(Own(), {"dish": "soup"}, spec=AgentSpec(input={"what": "$input.dish"})).output == "1 x soup"


@pytest.mark.parametrize(
    ("target", "given", "what"),
    [(Doubling(), "four", "which argument"), (looking(), {"question": "x"}, "user_msg")],
)
def test_input_that_does_not_fit_says_what_to_write(target: Any, given: Any, what: str) -> None:
    driven = drive(target, given)
    assert driven.trace.error is not None
    assert what in driven.trace.error.message


@pytest.mark.parametrize(("spec", "what"), [({"input": 3}, "agent input"), ({"output": 3}, "agent output")])
def test_a_spec_that_makes_no_sense_is_refused(spec: Any, what: str) -> None:
    with pytest.raises(UsageError, match=what):
        agent_for(looking(), AgentSpec(**spec))


# --- ends


def test_the_frameworks_own_limit_is_a_limit_of_steps() -> None:
    agent = FunctionAgent(tools=[look], llm=ScriptedLLM(script=lambda messages: say(calls=[("look", {"key": "x"})])))
    spec = AgentSpec(input={"user_msg": "$message", "max_iterations": 2})
    driven = drive(agent, spec=spec)
    assert (driven.trace.stop_reason, len(driven.model_calls)) == (StopReason.MAX_STEPS, 2)
    assert driven.record.detail.startswith("max_steps: the agent's own max_iterations was reached (Max iterations of 2")


def test_a_tool_that_does_not_come_back_runs_into_the_time_limit() -> None:
    agent = FunctionAgent(tools=[hang], llm=ScriptedLLM(script=[say(calls=[("hang", {"key": "x"}, "c1")])]))
    planned = Drive(agent).planned("go", (), {})
    limits = planned.case.limits.model_copy(update={"timeout_s": 0.3})
    driven = run(agent, replace(planned, case=planned.case.model_copy(update={"limits": limits})))
    assert driven.trace.stop_reason is StopReason.TIMEOUT
    assert (driven.states, driven.call.error) == ([("hang", "failed")], "never ended")


def test_a_workflow_that_times_out_by_itself_is_the_agents_error() -> None:
    agent = FunctionAgent(tools=[hang], llm=ScriptedLLM(script=[say(calls=[("hang", {"key": "x"})])]), timeout=0.2)
    driven = drive(agent)
    assert driven.trace.error is not None
    assert driven.trace.error.type.endswith("WorkflowTimeoutError")


async def exiting_async(key: str) -> str:
    """Leave."""
    raise SystemExit(3)


@pytest.mark.parametrize("tool", [exiting, exiting_async])
def test_a_tool_that_leaves_ends_the_trial_and_nothing_else(tool: Any) -> None:
    script = [say(calls=[(tool.__name__, {"key": "x"})]), say("done")]
    driven = drive(FunctionAgent(tools=[tool], llm=ScriptedLLM(script=script)))
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert driven.trace.error is not None
    assert driven.trace.error.type == "SystemExit"
    assert (driven.states, driven.call.error) == ([(tool.__name__, "failed")], "SystemExit: 3")


def test_a_script_that_is_over_is_an_error() -> None:
    driven = drive(FunctionAgent(llm=ScriptedLLM(script=[])))
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
    target = FunctionAgent(
        tools=[look], llm=ScriptedLLM(script=[say(calls=[("look", {"key": "x"})] * 2), say("done"), say("done")])
    )
    limits = {"models": {"scripted": {"requests_per_minute": 30}}, "tools": {"look": {"requests_per_minute": 60}}}
    driven = run(target, rates=clock.rates(**limits))
    assert driven.output == "done"
    assert clock.waits == [1.0, 1.0]  # the second call of the tool, which is half of what the model waits for
    assert driven.record.latency_ms == 0.0  # all of it was waiting, by the pretended clock


class Counting(BaseRateLimiter):
    """A limiter of the user's own."""

    def __init__(self) -> None:
        self.acquired = 0

    def acquire(self, num_tokens: int = 0) -> None:
        self.acquired += 1

    async def async_acquire(self, num_tokens: int = 0) -> None:
        self.acquired += 1


def test_the_users_own_rate_limiter_is_asked_still() -> None:
    limiter = Counting()
    drive(FunctionAgent(llm=ScriptedLLM(script=remembers, rate_limiter=limiter)), "one", "two")
    assert limiter.acquired == 2


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
    agent = agent_for(looking(), AgentSpec())

    async def all_at_once() -> list[Driven]:
        cases = [
            Drive(None).planned(f"q{n}", (f"r{n}",), {"tools": {"look": [{"returns": f"a{n}"}]}}) for n in range(20)
        ]
        done = await asyncio.gather(*(run_trial(agent, planned, 1, TrialSettings()) for planned in cases))
        return [Driven(*one) for one in done]

    for n, driven in enumerate(asyncio.run(all_at_once())):
        assert driven.output == f"a{n}"
        assert [call.arguments for call in driven.calls] == [{"key": f"q{n}"}, {"key": f"r{n}"}]
        assert [call.result for call in driven.calls] == [f"a{n}"] * 2
        assert len(driven.model_calls) == 4


# --- hidden in a function


async def hidden(task: str) -> str:
    return str(await looking().run(user_msg=task))


def hidden_behind_sync_code(task: str) -> str:
    return asyncio.run(hidden(task))


@pytest.mark.parametrize("function", [hidden, hidden_behind_sync_code])
def test_an_agent_hidden_in_a_function_is_observed_and_stood_in_for(function: Any) -> None:
    driven = drive(function, "tides", tools={"look": [{"returns": "wet"}]})
    assert (driven.output, driven.states) == ("wet", [("look", "executed")])
    assert (driven.call.agent, driven.call.step, driven.call.stand_in) == ("looker", driven.model_calls[0].number, True)
    assert driven.trace.steps == 2


def test_a_hidden_agent_ends_at_the_limit_of_steps() -> None:
    async def circling(task: str) -> str:
        llm = ScriptedLLM(script=lambda messages: say(calls=[("look", {"key": "x"})]))
        return str(await FunctionAgent(tools=[look], llm=llm).run(user_msg=task))

    driven = drive(circling, steps=3)
    assert (driven.trace.stop_reason, len(driven.model_calls)) == (StopReason.MAX_STEPS, 3)


def test_a_model_called_by_itself_is_observed() -> None:
    def ask(task: str) -> str:
        return str(ScriptedLLM(script=[say("hello")]).complete(task).text)

    driven = drive(ask)
    assert (driven.output, len(driven.model_calls)) == ("hello", 1)


HIDDEN = """
import asyncio, sys
from graphs import drive

async def agent(task):
    from llama_index.core.agent.workflow import FunctionAgent
    from seatrial.testing.llamaindex import ScriptedLLM, say
    def look(key: str) -> str:
        "Look."
        return key
    llm = ScriptedLLM(script=[say(calls=[("look", {"key": "x"})]), say("done")])
    return str(await FunctionAgent(tools=[look], llm=llm).run(user_msg=task))

from seatrial.agents.detect import agent_for
agent_for(agent)
assert "llama_index" not in sys.modules
driven = drive(agent, tools={"look": [{"returns": "y"}]})
print(driven.output, driven.states, driven.call.result, driven.trace.steps)
"""


@pytest.mark.slow
def test_an_agent_that_loads_the_framework_in_its_first_call_is_observed() -> None:
    tests = str(Path(__file__).parents[1])
    paths = os.pathsep.join([tests, *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", HIDDEN],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.stdout == "done [('look', 'executed')] y 2\n", done.stderr


# --- which targets


@pytest.mark.parametrize("target", [ScriptedLLM(script=[])])
def test_an_object_of_the_framework_that_is_no_workflow_is_no_agent(target: Any) -> None:
    with pytest.raises(UsageError, match="wrap it in a function"):
        agent_for(target, AgentSpec())
