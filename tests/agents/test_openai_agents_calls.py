"""What agents of the OpenAI Agents SDK do, as the trace tells it: models, tools, errors, hand-offs, guardrails."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents.tool import FunctionTool
from pydantic import BaseModel

from agents import (
    Agent,
    GuardrailFunctionOutput,
    ToolGuardrailFunctionOutput,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    tool_input_guardrail,
)
from graphs import Driven, drive
from seatrial.core.trace import Guardrail, StopReason, Usage
from seatrial.testing.openai_agents import ScriptedAgentsModel, say


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@function_tool
def boom(x: str) -> str:
    """Fail."""
    raise ValueError(f"boom {x}")


@function_tool(failure_error_function=None)
def boom_hard(x: str) -> str:
    """Fail, and end the run."""
    raise ValueError(f"hard {x}")


@function_tool
async def slow(x: str) -> str:
    """Wait for the other."""
    await asyncio.sleep(0)
    return f"slow {x}"


@function_tool(timeout=0.05)
async def hang(x: str) -> str:
    """Never come back."""
    await asyncio.Event().wait()
    return x


def agent(*script: Any, name: str = "solo", tools: Any = (add, boom, boom_hard, slow, hang), **more: Any) -> Any:
    return Agent(name=name, tools=list(tools), model=ScriptedAgentsModel(list(script)), **more)


def test_a_model_call_is_a_step_and_its_tool_call_names_it() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3", usage=(30, 7))))
    assert driven.output == "3"
    assert [(call.model, call.agent) for call in driven.model_calls] == [("scripted", "solo")] * 2
    assert driven.model_calls[1].usage == Usage(input=30, output=7)
    assert (driven.call.call_id, driven.call.step, driven.call.agent) == ("c1", driven.model_calls[0].number, "solo")
    assert (driven.call.arguments, driven.call.asked) == ({"a": 1, "b": 2}, None)
    assert (driven.call.result, driven.call.told) == (3, None)
    assert driven.call.ended is not None
    assert driven.call.ended <= driven.model_calls[1].number
    assert driven.trace.steps == 2


def test_parallel_calls_share_their_step() -> None:
    calls = [("slow", {"x": "z"}, "c1"), ("add", {"a": 1, "b": 2}, "c2"), ("boom", {"x": "y"}, "c3")]
    driven = drive(agent(say(calls=calls), say("done")))
    assert {call.step for call in driven.calls} == {driven.model_calls[0].number}
    assert {call.call_id: call.state.value for call in driven.calls} == {
        "c1": "executed",
        "c2": "executed",
        "c3": "failed",
    }


def test_what_a_tool_raised_is_seen_though_the_model_is_told_a_fixed_text() -> None:
    driven = drive(agent(say(calls=[("boom", {"x": "y"}, "c1")]), say("sorry")))
    assert driven.states == [("boom", "failed")]
    assert driven.call.error == "ValueError: boom y"
    assert driven.call.told == "An error occurred while running the tool. Please try again."


def test_a_tool_that_raises_through_the_run_is_failed_and_the_agents_error() -> None:
    driven = drive(agent(say(calls=[("boom_hard", {"x": "y"}, "c1")])))
    assert (driven.states, driven.call.error) == ([("boom_hard", "failed")], "ValueError: hard y")
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_tool_that_does_not_exist_is_unknown_and_ends_the_run() -> None:
    driven = drive(agent(say(calls=[("ghost", {}, "c1")])), tools={"ghost": [{"returns": 1}]})
    assert driven.states == [("ghost", "unknown_tool")]
    assert driven.call.error is not None
    assert driven.call.error.startswith("ModelBehaviorError")
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


@pytest.mark.parametrize("stand_in", [True, False])
@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": "NaN", "b": 2}, {}])
def test_arguments_that_do_not_fit_are_invalid(arguments: Any, stand_in: bool) -> None:
    fixture = {"tools": {"add": [{"returns": 9}]}} if stand_in else {}
    driven = drive(agent(say(calls=[("add", arguments, "c1")]), say("sorry")), **fixture)
    assert driven.states == [("add", "invalid_arguments")]
    assert (driven.call.arguments, driven.call.malformed) == (arguments, False)
    assert driven.output == "sorry"


@pytest.mark.parametrize("text", ["not json", "[1, 2]"])
def test_arguments_that_are_no_json_object_are_malformed(text: str) -> None:
    driven = drive(agent(say(calls=[("add", text, "c1")]), say("sorry")), tools={"add": [{"returns": 9}]})
    assert driven.states == [("add", "invalid_arguments")]
    assert (driven.call.arguments, driven.call.malformed) == (text, True)


def test_values_that_validation_converts_still_reach_a_stand_in() -> None:
    driven = drive(agent(say(calls=[("add", {"a": "1", "b": 2}, "c1")]), say("9")), tools={"add": [{"returns": 9}]})
    assert (driven.states, driven.call.result) == ([("add", "executed")], 9)


def test_a_tool_over_its_own_time_limit_is_failed() -> None:
    driven = drive(agent(say(calls=[("hang", {"x": "y"}, "c1")]), say("sorry")))
    assert driven.states == [("hang", "failed")]
    assert driven.call.error is not None
    assert "timed out" in driven.call.error


def test_a_tool_without_the_sdks_helper_is_recorded_and_stood_in_for() -> None:
    async def invoke(context: Any, arguments: str) -> str:
        return f"own {arguments}"

    schema = {"type": "object", "properties": {"x": {"type": "string"}}}
    tool = FunctionTool("bare", "Bare.", schema, invoke, strict_json_schema=False)
    script = [say(calls=[("bare", {"x": "y"}, "c1")]), say("done")]
    assert drive(agent(*script, tools=[tool])).call.result == 'own {"x": "y"}'
    assert drive(agent(*script, tools=[tool]), tools={"bare": [{"returns": "other"}]}).call.result == "other"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            {
                "input_tokens": 9,
                "output_tokens": 8,
                "cached_tokens": 3,
                "cache_write_tokens": 2,
                "reasoning_tokens": 1,
            },
            Usage(input=9, output=8, cached=3, cache_write=2, reasoning=1),
        ),
        ((7, 2), Usage(input=7, output=2)),
        (None, None),
    ],
)
def test_each_kind_of_token_is_counted_once(told: Any, expected: Usage | None) -> None:
    assert drive(agent(say("hi", usage=told))).model_calls[0].usage == expected


def test_a_model_that_fails_is_the_agents_error_and_the_trace_is_kept() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), RuntimeError("model down")))
    assert driven.trace.error is not None
    assert driven.trace.error.summary == "raised RuntimeError: model down"
    assert [call.error for call in driven.model_calls] == [None, "RuntimeError: model down"]
    assert driven.states == [("add", "executed")]


class Report(BaseModel):
    total: int


def test_a_structured_answer_is_the_output() -> None:
    driven = drive(agent(say('{"total": 3}'), output_type=Report))
    assert driven.output == {"total": 3}


# --- other agents


def handoffs(driven: Driven) -> list[tuple[str, str, bool]]:
    return [(one.source, one.target, one.completed) for one in driven.handoffs]


def test_a_handoff_is_no_tool_call_and_the_next_agent_goes_on() -> None:
    bob = agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3"), name="bob")
    driven = drive(agent(say(calls=[("transfer_to_bob", {}, "h1")]), name="alice", handoffs=[bob]))
    assert handoffs(driven) == [("alice", "bob", True)]
    assert (driven.handoffs[0].reason, driven.handoffs[0].context) == (None, None)
    assert driven.handoffs[0].step == driven.model_calls[0].number
    assert [(call.name, call.agent) for call in driven.calls] == [("add", "bob")]
    assert [call.agent for call in driven.model_calls] == ["alice", "bob", "bob"]


class Why(BaseModel):
    reason: str
    order_id: str


def test_a_handoff_tells_its_reason_and_context() -> None:
    bob = agent(say("3"), name="bob")
    escalate = handoff(bob, tool_name_override="escalate", on_handoff=lambda context, why: None, input_type=Why)
    given = {"reason": "too much", "order_id": "O-1"}
    driven = drive(agent(say(calls=[("escalate", given, "h1")]), name="alice", handoffs=[escalate]))
    assert handoffs(driven) == [("alice", "bob", True)]
    assert (driven.handoffs[0].reason, driven.handoffs[0].context) == ("too much", {"order_id": "O-1"})
    assert driven.calls == []


def test_of_two_handoffs_at_once_the_second_is_refused() -> None:
    bob, carol = agent(say("bob"), name="bob"), agent(name="carol")
    calls = [("transfer_to_bob", {}, "h1"), ("transfer_to_carol", {}, "h2")]
    driven = drive(agent(say(calls=calls), name="alice", handoffs=[bob, carol]))
    assert handoffs(driven) == [("alice", "bob", True), ("alice", "carol", False)]
    assert driven.output == "bob"


# --- guardrails


@input_guardrail
def polite(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput({"said": "fine"}, tripwire_triggered="rude" in str(given))


@output_guardrail
def discreet(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput({"length": len(output)}, tripwire_triggered="secret" in output)


@pytest.mark.parametrize(
    ("asked", "answer", "passed"),
    [
        ("hello", "hi", [("polite", True), ("discreet", True)]),
        ("hello", "secret", [("polite", True), ("discreet", False)]),
    ],
)
def test_what_guardrails_found_is_in_the_trace(asked: str, answer: str, passed: list[tuple[str, bool]]) -> None:
    driven = drive(agent(say(answer), input_guardrails=[polite], output_guardrails=[discreet]), asked)
    found = list(driven.trace.of(Guardrail))
    assert [(guard.name, guard.passed) for guard in found] == passed
    assert (found[0].details, found[0].agent) == ({"said": "fine"}, "solo")


def test_a_tripwire_is_the_agents_error() -> None:
    driven = drive(agent(say("hi"), input_guardrails=[polite]), "rude")
    assert [(guard.name, guard.passed) for guard in driven.trace.of(Guardrail)] == [("polite", False)]
    assert driven.trace.error is not None
    assert driven.trace.error.type.endswith("InputGuardrailTripwireTriggered")


@tool_input_guardrail
def small(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("too much", {"limit": 5})


def test_a_call_that_a_guardrail_of_the_tool_stops_is_refused() -> None:
    guarded = function_tool(lambda a: a, name_override="pay", strict_mode=False, tool_input_guardrails=[small])
    driven = drive(agent(say(calls=[("pay", {"a": 9}, "c1")]), say("sorry"), tools=[guarded]))
    assert driven.states == [("pay", "refused")]
    assert driven.call.told == "too much" or driven.call.error == "too much"
    assert [(guard.name, guard.passed) for guard in driven.trace.of(Guardrail)] == [("small", False)]


def test_a_tool_whose_answer_ends_the_run_is_executed() -> None:
    target = agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), tool_use_behavior="stop_on_first_tool")
    driven = drive(target)
    assert (driven.states, driven.output) == ([("add", "executed")], "3")
