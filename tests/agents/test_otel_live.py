"""Agents seen through the spans of their own instrumentation, as they run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from opentelemetry import trace
from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from graphs import Driven, drive
from seatrial.agents.detect import agent_for
from seatrial.agents.otel import TracedAgent
from seatrial.core.project import AgentSpec
from seatrial.core.trace import CallState, Observable, StopReason
from seatrial.environment.trial import current_trial

pytestmark = pytest.mark.slow


def traced(target: Any, given: str = "go", **options: Any) -> Driven:
    TracedAgent.prepare()
    return drive(TracedAgent(agent_for(target)), given, **options)


def scripted(*replies: Any) -> FunctionModel:
    def reply(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        said = replies[sum(isinstance(message, ModelResponse) for message in messages)]
        if isinstance(said, Exception):
            raise said
        parts = [TextPart(said)] if isinstance(said, str) else [ToolCallPart(*call) for call in said]
        return ModelResponse(parts, usage=RequestUsage(input_tokens=10, output_tokens=5))

    return FunctionModel(reply, model_name="scripted")


def instrumented(model: FunctionModel, *tools: Callable[..., Any]) -> Callable[[str], Any]:
    async def answer(task: str) -> str:
        agent: Agent[None, str] = Agent(model, name="desk", tools=tools, capabilities=[Instrumentation()])
        return (await agent.run(task)).output

    return answer


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def boom() -> str:
    """Always fails."""
    raise ModelRetry("not now")


def test_model_and_tool_calls_of_a_real_framework_are_seen() -> None:
    seen = traced(instrumented(scripted([("add", {"a": 1, "b": 2}, "c1")], "3"), add))
    assert seen.output == "3"
    (call,) = seen.calls
    assert (call.name, call.arguments, call.result, call.call_id) == ("add", {"a": 1, "b": 2}, 3, "c1")
    assert (call.agent, call.step) == ("desk", seen.model_calls[0].number)
    assert seen.trace.steps == 2
    assert (seen.record.tokens.input, seen.record.tokens.output) == (20, 10)
    assert {Observable.TOOL_CALLS, Observable.USAGE, Observable.OUTPUT} <= seen.trace.observes
    assert seen.trace.unobserved[Observable.APPROVALS] == "spans do not show approvals"


def test_parallel_calls_belong_to_one_reply() -> None:
    calls = [("add", {"a": 1, "b": 1}, "c1"), ("add", {"a": 2, "b": 2}, "c2")]
    seen = traced(instrumented(scripted(calls, "ok"), add))
    assert {call.call_id: call.result for call in seen.calls} == {"c1": 2, "c2": 4}
    assert len({call.step for call in seen.calls}) == 1


def test_a_run_that_raises_keeps_what_was_seen() -> None:
    seen = traced(instrumented(scripted([("add", {"a": 1, "b": 2}, "c1")], ValueError("no model")), add))
    assert seen.trace.stop_reason is StopReason.AGENT_ERROR
    assert [call.name for call in seen.calls] == ["add"]
    assert seen.model_calls[-1].error is not None


def test_a_call_cut_off_by_the_time_limit_never_ended() -> None:
    async def answer(_: str) -> str:
        with trace.get_tracer("own").start_as_current_span(
            "execute_tool wait", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "wait"}
        ):
            raise TimeoutError("gave up")

    (call,) = traced(answer).calls
    assert (call.name, call.state) == ("wait", CallState.FAILED)


def test_an_agent_in_a_thread_is_seen_up_to_where_it_failed() -> None:
    def answer(_: str) -> str:
        tracer = trace.get_tracer("own")
        names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "first"}
        with tracer.start_as_current_span("execute_tool first", attributes=names):
            pass
        tracer.start_span("execute_tool second", attributes={**names, "gen_ai.tool.name": "second"})
        raise RuntimeError("fell over")

    seen = traced(answer)
    assert seen.states == [("first", "executed"), ("second", "failed")]
    assert seen.calls[1].error == "never ended"


def test_trials_at_once_see_their_own_spans_only() -> None:
    TracedAgent.prepare()
    barrier = threading.Barrier(8)

    def answer(task: str) -> str:
        names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool_{task}"}
        with trace.get_tracer("own").start_as_current_span("execute_tool", attributes=names):
            barrier.wait(timeout=20)
        return task

    async def all_at_once() -> list[Driven]:
        from graphs import Drive

        agent = TracedAgent(agent_for(answer))
        return await asyncio.gather(*(Drive(agent).arun(str(n)) for n in range(8)))

    seen = asyncio.run(all_at_once())
    assert [[call.name for call in one.calls] for one in seen] == [[f"tool_{n}"] for n in range(8)]


def test_a_framework_behind_the_function_is_not_recorded_twice() -> None:
    from langchain.agents import create_agent

    from seatrial.testing import ScriptedChatModel, say

    def answer(task: str) -> str:
        assert current_trial() is not None
        names = {"gen_ai.operation.name": "chat", "gen_ai.response.model": "spans"}
        with trace.get_tracer("own").start_as_current_span("chat", attributes=names):
            agent = create_agent(ScriptedChatModel(script=[say("hello")]), [])
            return str(agent.invoke({"messages": [("user", task)]})["messages"][-1].text)

    seen = traced(answer)
    assert seen.output == "hello"
    assert [call.model for call in seen.model_calls] == ["spans"]


def test_a_conversation_has_its_turns() -> None:
    def answer(task: str) -> str:
        names = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"on_{task}"}
        with trace.get_tracer("own").start_as_current_span("execute_tool", attributes=names):
            return task

    TracedAgent.prepare()
    seen = drive(TracedAgent(agent_for(answer)), "one", "two", "three")
    assert [(call.name, call.turn) for call in seen.calls] == [("on_one", 1), ("on_two", 2), ("on_three", 3)]


def test_an_object_given_from_python_may_be_traced_too() -> None:
    def answer(_: str) -> str:
        with trace.get_tracer("own").start_as_current_span("chat", attributes={"gen_ai.operation.name": "chat"}):
            return "hello"

    seen = drive(answer, spec=AgentSpec(kind="otel"))
    assert (seen.output, seen.trace.steps) == ("hello", 1)
