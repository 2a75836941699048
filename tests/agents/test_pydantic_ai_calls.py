"""Tool calls of Pydantic AI agents: what is recorded of those that ran, failed, were rejected or never began."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai import Tool as AgentTool
from pydantic_ai.capabilities import Hooks
from pydantic_ai.exceptions import SkipToolExecution, ToolFailed
from pydantic_ai.messages import NativeToolCallPart, NativeToolReturnPart, ToolReturn
from pydantic_ai.usage import RequestUsage

from graphs import drive
from seatrial.core.trace import Message, Observable, StopReason, Usage
from seatrial.environment.trial import current_trial
from seatrial.testing.pydantic_ai import ScriptedModel, say


def add(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


def boom(x: str) -> str:
    """Fail."""
    raise ValueError(f"boom {x}")


def soft(x: str) -> str:
    """Ask for another try."""
    raise ModelRetry(f"not {x}")


def solo(*lines: Any, tools: Any = (add, boom, soft), **settings: Any) -> Agent[Any, Any]:
    return Agent(ScriptedModel(lines), name="solo", tools=list(tools), **settings)


def test_a_call_has_its_arguments_as_run_and_as_asked_without_defaults() -> None:
    driven = drive(solo(say(calls=[("add", {"a": "1"}, "c1")]), say("3")))
    call = driven.call
    assert (call.arguments, call.asked, call.result, call.told) == ({"a": 1}, {"a": "1"}, 3, None)
    assert (call.call_id, call.agent, call.state.value) == ("c1", "solo", "executed")
    assert call.step == driven.model_calls[0].number
    assert call.ended == driven.model_calls[1].number
    assert (driven.output, driven.trace.steps) == ("3", 2)
    assert [event.content for event in driven.trace.of(Message)] == ["go", "3"]


def test_a_tool_that_asks_for_another_try_has_failed_and_its_words_are_what_was_told() -> None:
    driven = drive(solo(say(calls=[("soft", {"x": "y"})]), say("ok")))
    assert driven.states == [("soft", "failed")]
    assert (driven.call.error, driven.call.told) == ("ModelRetry: not y", "not y")


def test_a_tool_that_says_it_failed_is_failed() -> None:
    def gone() -> str:
        """Report a failure."""
        raise ToolFailed("no such order")

    driven = drive(solo(say(calls=[("gone", {})]), say("ok"), tools=[gone]))
    assert driven.states == [("gone", "failed")]
    assert driven.call.told == "no such order"


def test_an_exception_ends_the_run_and_calls_beside_it_are_kept() -> None:
    added = asyncio.Event()
    hooks = Hooks[Any]()

    @hooks.on.after_tool_execute
    async def note(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        added.set()
        return result

    async def forever() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return ""

    async def boom(x: str) -> str:
        """Fail once the call of `add` has ended."""
        await added.wait()
        raise ValueError(f"boom {x}")

    calls = [("add", {"a": 1}), ("forever", {}), ("boom", {"x": "y"})]
    driven = drive(solo(say(calls=calls), tools=(add, forever, boom), capabilities=[hooks]))
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert driven.trace.error is not None
    assert driven.trace.error.summary == "raised ValueError: boom y"
    assert driven.states == [("add", "executed"), ("forever", "failed"), ("boom", "failed")]
    assert [call.error for call in driven.calls] == [None, "cancelled before it ended", "ValueError: boom y"]


def test_unknown_tools_and_arguments_that_do_not_fit_are_told_apart() -> None:
    calls = [("ghost", {"q": 1}), ("add", {"a": "NaN"}), ("add", "[1"), ("add", {"a": 1})]
    driven = drive(solo(say(calls=calls), say("ok"), retries=5))
    assert driven.output == "ok"
    by_state = {call.state.value: call for call in driven.calls}
    assert sorted(state for _, state in driven.states) == [
        "executed",
        "invalid_arguments",
        "invalid_arguments",
        "unknown_tool",
    ]
    assert by_state["unknown_tool"].arguments == {"q": 1}
    assert "Unknown tool name: 'ghost'" in str(by_state["unknown_tool"].told)
    assert [call.malformed for call in driven.calls if call.arguments == "[1"] == [True]
    assert "valid integer" in str(next(call.error for call in driven.calls if call.arguments == {"a": "NaN"}))


@pytest.mark.parametrize(
    ("call", "state"), [(("ghost", {}), "unknown_tool"), (("add", {"a": "NaN"}), "invalid_arguments")]
)
def test_a_call_after_which_the_framework_gave_up_is_told_apart_too(call: Any, state: str) -> None:
    driven = drive(solo(say(calls=[call]), say(calls=[call])))
    assert driven.trace.error is not None
    assert driven.trace.error.type.endswith("UnexpectedModelBehavior")
    assert [found for _, found in driven.states] == [state, state]


def test_the_same_id_again_is_another_call() -> None:
    asking = say(calls=[("add", {"a": 1}, "c1")])
    driven = drive(solo(asking, asking, say("ok")))
    assert [(call.call_id, call.attempt, call.result) for call in driven.calls] == [("c1", 1, 3), ("c1", 1, 3)]


def test_the_result_is_what_the_tool_returned_and_told_is_what_a_hook_made_of_it() -> None:
    hooks = Hooks[Any]()

    @hooks.on.after_tool_execute
    async def shorten(ctx: Any, *, call: Any, tool_def: Any, args: Any, result: Any) -> Any:
        return "short"

    driven = drive(solo(say(calls=[("add", {"a": 1})]), say("ok"), capabilities=[hooks]))
    assert (driven.call.result, driven.call.told) == (3, "short")


def test_a_call_that_a_hook_answered_never_ran() -> None:
    hooks = Hooks[Any]()

    @hooks.on.before_tool_execute
    async def stop(ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
        raise SkipToolExecution("from the cache")

    driven = drive(solo(say(calls=[("add", {"a": 1})]), say("ok"), capabilities=[hooks]))
    assert driven.states == [("add", "unknown")]
    assert (driven.call.error, driven.call.told) == ("its body never ran", "from the cache")


def test_a_tool_return_is_taken_apart() -> None:
    def photo() -> ToolReturn:
        """Show something."""
        return ToolReturn(return_value={"id": 7}, content="for the model's eyes", metadata={"internal": True})

    driven = drive(solo(say(calls=[("photo", {})]), say("ok"), tools=[photo]))
    assert (driven.call.result, driven.call.told) == ({"id": 7}, None)


def test_what_the_provider_ran_itself_is_a_call_that_happened() -> None:
    searched = say("found")
    searched.parts = [
        NativeToolCallPart("web_search", {"query": "x"}, tool_call_id="n1"),
        NativeToolReturnPart("web_search", "a page", tool_call_id="n1"),
        *searched.parts,
    ]
    driven = drive(solo(searched))
    assert (driven.call.name, driven.call.result, driven.call.step) == ("web_search", "a page", 2)


# --- structured answers


class Total(BaseModel):
    amount: int


@dataclass
class Sum:
    amount: int


@pytest.mark.parametrize("kind", [Total, Sum])
def test_the_structured_answer_is_no_tool_call(kind: Any) -> None:
    driven = drive(solo(say(calls=[("add", {"a": 1})]), say(calls=[("final_result", {"amount": 3})]), output_type=kind))
    assert driven.states == [("add", "executed")]
    assert driven.output == {"amount": 3}


def test_a_call_left_out_because_the_answer_came_first_never_ran() -> None:
    calls = [("final_result", {"amount": 3}), ("add", {"a": 1})]
    driven = drive(solo(say(calls=calls), output_type=Total, end_strategy="early"))
    assert driven.states == [("add", "unknown")]
    assert driven.output == {"amount": 3}


# --- the fixture


def test_a_fault_that_delays_a_call_lets_it_run() -> None:
    delayed = drive(solo(say(calls=[("add", {"a": 1})]), say("ok")), faults=[{"tool": "add", "latency_ms": 1}])
    assert delayed.states == [("add", "executed")]


def test_a_tool_that_went_through_the_trial_is_recorded_once() -> None:
    def build(environment: Any) -> Agent[Any, Any]:
        return solo(say(calls=[("add", {"a": 1}, "c1")]), say("ok"), tools=[environment.tool(add)])

    driven = drive(build, tools={"add": [{"returns": 50}]})
    assert (driven.call.result, driven.call.call_id, driven.call.stand_in) == (50, "c1", True)


def test_sync_tools_in_their_thread_know_the_trial() -> None:
    def look() -> str:
        """Look around."""
        return current_trial().case.id

    assert drive(solo(say(calls=[("look", {})]), say("ok"), tools=[look])).call.result == "case"


def test_dependencies_and_prepared_tools_stay_the_frameworks() -> None:
    def who(ctx: RunContext[str], polite: bool) -> str:
        """Say who it is for."""
        return f"{ctx.deps} {ctx.tool_call_id}"

    agent = solo(say(calls=[("who", {"polite": True}, "c1")]), say("ok"), tools=[AgentTool(who, takes_ctx=True)])
    assert drive(agent).call.arguments == {"polite": True}


# --- usage


@pytest.mark.parametrize(
    ("reported", "seen"),
    [
        (None, None),
        ((7, 3), Usage(input=7, output=3)),
        (
            RequestUsage(
                input_tokens=9, output_tokens=4, cache_read_tokens=2, cache_write_tokens=1, output_reasoning_tokens=3
            ),
            Usage(input=9, output=4, cached=2, cache_write=1, reasoning=3),
        ),
    ],
)
def test_usage_is_what_the_provider_said(reported: Any, seen: Any) -> None:
    driven = drive(solo(say("ok", usage=reported, model="gpt-x")))
    (call,) = driven.model_calls
    assert (call.usage, call.model) == (seen, "gpt-x")
    assert Observable.USAGE in driven.trace.observes


def test_a_model_error_stands_at_its_call() -> None:
    driven = drive(solo(RuntimeError("down")))
    assert [call.error for call in driven.model_calls] == ["RuntimeError: down"]
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
