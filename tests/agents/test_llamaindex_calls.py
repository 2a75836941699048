"""What LlamaIndex's agents do, as the trace tells it: models, tools, errors, retrieval."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent, ReActAgent
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.types import ChatMessage, CompletionResponse, LLMMetadata, ToolCallBlock
from llama_index.core.llms import MockFunctionCallingLLM
from llama_index.core.llms.callbacks import llm_completion_callback
from llama_index.core.llms.custom import CustomLLM
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.core.tools import FunctionTool, RetrieverTool

from graphs import drive
from seatrial.core.trace import Observable, Retrieval, StopReason, Usage
from seatrial.testing.llamaindex import ScriptedLLM, say


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def boom(x: str) -> str:
    """Fail."""
    raise ValueError(f"boom {x}")


async def slow(x: str) -> str:
    """Wait for the other."""
    await asyncio.sleep(0)
    return f"slow {x}"


def agent(*script: Any, tools: Any = (add, boom, slow), **settings: Any) -> FunctionAgent:
    return FunctionAgent(name="solo", tools=list(tools), llm=ScriptedLLM(script=list(script)), **settings)


class TextOnly(CustomLLM):
    """A model of the user's own that completes text and streams only so."""

    texts: list[str]
    told: int = 0

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name="textual")

    def _next(self) -> str:
        self.told += 1
        return self.texts[self.told - 1]

    @llm_completion_callback()
    def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
        return CompletionResponse(text=self._next())

    @llm_completion_callback()
    def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
        def pieces() -> Any:
            said = ""
            for word in self._next().splitlines(keepends=True):
                said += word
                yield CompletionResponse(text=said, delta=word)

        return pieces()


@pytest.mark.parametrize("streaming", [True, False])
def test_a_model_call_is_a_step_and_its_tool_call_names_it(streaming: bool) -> None:
    script = [say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3", usage=(30, 7))]
    driven = drive(agent(*script, streaming=streaming))
    assert driven.output == "3"
    assert [(call.model, call.agent) for call in driven.model_calls] == [("scripted", "solo")] * 2
    assert driven.model_calls[1].usage == Usage(input=30, output=7)
    assert (driven.call.call_id, driven.call.step, driven.call.agent) == ("c1", driven.model_calls[0].number, "solo")
    assert (driven.call.result, driven.call.told, driven.call.asked) == (3, None, None)
    assert driven.call.ended is not None
    assert driven.call.ended <= driven.model_calls[1].number
    assert driven.trace.steps == 2


def test_parallel_calls_share_their_step_and_end_in_their_own_order() -> None:
    calls = [("slow", {"x": "z"}, "c1"), ("add", {"a": 1, "b": 2}, "c2"), ("boom", {"x": "y"}, "c3")]
    driven = drive(agent(say(calls=calls), say("done")))
    assert {call.step for call in driven.calls} == {driven.model_calls[0].number}
    assert {call.call_id: call.state.value for call in driven.calls} == {
        "c1": "executed",
        "c2": "executed",
        "c3": "failed",
    }


def test_a_tool_that_raises_is_failed_and_the_model_is_told_its_text_alone() -> None:
    driven = drive(agent(say(calls=[("boom", {"x": "y"}, "c1")]), say("sorry")))
    assert driven.states == [("boom", "failed")]
    assert (driven.call.error, driven.call.told) == ("ValueError: boom y", "boom y")
    assert driven.output == "sorry"


def test_a_tool_that_does_not_exist_is_unknown() -> None:
    driven = drive(agent(say(calls=[("ghost", {"x": 1}, "c1")]), say("sorry")), tools={"ghost": [{"returns": 1}]})
    assert driven.states == [("ghost", "unknown_tool")]
    assert not driven.call.stand_in
    assert "not found" in driven.call.told


@pytest.mark.parametrize("arguments", [{"a": 1}, {"a": 1, "b": 2, "c": 3}, {}])
def test_arguments_that_do_not_fit_are_invalid(arguments: dict[str, int]) -> None:
    driven = drive(agent(say(calls=[("add", arguments, "c1")]), say("sorry")), tools={"add": [{"returns": 9}]})
    assert driven.states == [("add", "invalid_arguments")]
    assert driven.call.arguments == arguments
    assert "argument" in driven.call.error


def test_malformed_arguments_of_a_tool_without_any_ran_as_none() -> None:
    def now() -> str:
        """Tell the time."""
        return "noon"

    driven = drive(agent(say(calls=[("now", "{", "c1")]), say("noon"), tools=[now]))
    assert driven.states == [("now", "executed")]
    assert (driven.call.arguments, driven.call.asked, driven.call.malformed) == ({}, "{", False)


def test_a_type_error_of_the_body_is_a_failure() -> None:
    def add_text(a: str) -> str:
        """Add."""
        return a + 1  # type: ignore[operator]

    driven = drive(agent(say(calls=[("add_text", {"a": "1"}, "c1")]), say("sorry"), tools=[add_text]))
    assert driven.states == [("add_text", "failed")]


def test_what_the_model_was_told_is_kept_where_it_differs() -> None:
    tool = FunctionTool.from_defaults(add, callback=lambda result: f"It is {result}.")
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3"), tools=[tool]))
    assert (driven.call.result, driven.call.told) == (3, "It is 3.")


def test_a_model_of_the_users_own_is_counted_once_a_call() -> None:
    texts = ['Thought: add\nAction: add\nAction Input: {"a": 1, "b": 2}', "Thought: I know.\nAnswer: 3"]
    for streaming in (True, False):
        target = ReActAgent(name="thinker", tools=[add], llm=TextOnly(texts=texts), streaming=streaming)
        driven = drive(target)
        assert driven.trace.error is None
        assert [(call.model, call.agent, call.usage) for call in driven.model_calls] == [
            ("textual", "thinker", None)
        ] * 2
        assert (driven.output, driven.states) == ("3", [("add", "executed")])
        assert driven.call.step == driven.model_calls[0].number


def test_the_frameworks_own_scripted_model_says_nothing_of_usage() -> None:
    block = ToolCallBlock(tool_call_id="m1", tool_name="add", tool_kwargs={"a": 2, "b": 2})
    replies = iter([ChatMessage(role="assistant", blocks=[block]), ChatMessage(role="assistant", content="4")])
    llm = MockFunctionCallingLLM(response_generator=lambda messages, **_: next(replies))
    driven = drive(FunctionAgent(tools=[add], llm=llm))
    assert (driven.output, driven.states) == ("4", [("add", "executed")])
    assert [call.usage for call in driven.model_calls] == [None, None]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"input_tokens": 7, "output_tokens": 2}, Usage(input=7, output=2)),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 3}},
            Usage(input=9, output=4, cached=3),
        ),
        (
            {"prompt_tokens": 9, "completion_tokens": 4, "completion_tokens_details": {"reasoning_tokens": 3}},
            Usage(input=9, output=4, reasoning=3),
        ),
        (
            {"input_tokens": 1, "output_tokens": 4, "cache_read_input_tokens": 6, "cache_creation_input_tokens": 2},
            Usage(input=9, output=4, cached=6, cache_write=2),
        ),
        (None, None),
    ],
)
def test_each_kind_of_token_is_counted_once(told: Any, expected: Usage | None) -> None:
    assert drive(agent(say("hi", usage=told))).model_calls[0].usage == expected


def test_a_model_that_fails_is_the_agents_error_and_the_trace_is_kept() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), RuntimeError("model down")))
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert driven.trace.error is not None
    assert driven.trace.error.summary == "raised RuntimeError: model down"
    assert [call.error for call in driven.model_calls] == [None, "RuntimeError: model down"]
    assert driven.states == [("add", "executed")]


class Shelf(BaseRetriever):
    def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
        return [NodeWithScore(node=TextNode(text=f"about {query_bundle.query_str}"), score=1.0)]


def test_retrieval_is_observed() -> None:
    tool = RetrieverTool.from_defaults(Shelf(), name="look_up", description="Look up.")
    target = agent(say(calls=[("look_up", {"input": "tides"}, "c1")]), say("wet"), tools=[tool])
    driven = drive(target)
    (found,) = driven.trace.of(Retrieval)
    assert "tides" in found.query
    assert (found.contexts, found.agent) == ((f"about {found.query}",), "solo")
    assert (driven.states, driven.call.result) == ([("look_up", "executed")], [f"about {found.query}"])


def test_a_tool_that_is_no_function_can_be_stood_in_for() -> None:
    tool = RetrieverTool.from_defaults(Shelf(), name="look_up", description="Look up.")
    target = agent(say(calls=[("look_up", {"input": "tides"}, "c1")]), say("wet"), tools=[tool])
    driven = drive(target, tools={"look_up": [{"returns": "dry"}]})
    assert (driven.call.result, driven.call.stand_in) == ("dry", True)
    assert list(driven.trace.of(Retrieval)) == []


def test_a_workflow_made_from_functions_is_an_agent() -> None:
    llm = ScriptedLLM(script=[say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3")])
    driven = drive(AgentWorkflow.from_tools_or_functions([add], llm=llm))
    assert (driven.output, driven.states) == ("3", [("add", "executed")])
    assert Observable.HANDOFFS in driven.trace.observes
    assert Observable.HANDOFF_CONTEXT not in driven.trace.observes


def test_a_tool_that_the_users_own_code_calls_is_on_record() -> None:
    tool = FunctionTool.from_defaults(add)

    def twice(a: int) -> int:
        """Double."""
        return int(tool(a=a, b=a).raw_output)

    driven = drive(agent(say(calls=[("twice", {"a": 2}, "c1")]), say("4"), tools=[twice]))
    assert driven.states == [("twice", "executed"), ("add", "executed")]
    assert (driven.calls[1].arguments, driven.calls[1].result) == ({"a": 2, "b": 2}, 4)
    assert driven.calls[1].call_id is None
