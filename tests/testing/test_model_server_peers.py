"""The scripted model server beside an independent one, and behind the real clients of frameworks."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from seatrial.testing.model_server import Call, ModelServer, Reply, Usage

pytestmark = pytest.mark.slow
CALLS = Reply(calls=[Call("add", {"a": 1, "b": 2}, "c-1"), Call("add", {"a": 3, "b": 4}, "c-2")])
SUMS = Reply("the sums are 3 and 7", model="scripted-1", usage=Usage(input=30, output=12, cached=20, reasoning=4))


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


# --- llmock ---------------------------------------------------------------------------------------------------------


def post(base: str, path: str, body: dict[str, Any]) -> str:
    headers = {"Content-Type": "application/json", "Authorization": "Bearer k"}
    request = urllib.request.Request(base + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        return str(answer.read().decode())


def events_of(text: str) -> list[Any]:
    """The data of every event of a stream; of an answer that is none, its JSON."""
    if not text.startswith(("data:", "event:")):
        return [json.loads(text)]
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [item if item == "[DONE]" else json.loads(item) for item in data]


def places(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    """Where something stands, and of which type it is; nothing of what is null."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from places(item, f"{at}.{key}")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from places(item, f"{at}[{position}]")
    elif value is not None:
        yield at, type(value).__name__


def kind(event: Any) -> Any:
    """What an event says, without its values."""
    if event == "[DONE]":
        return event
    if "type" in event:
        return event["type"]
    said = [({k for k, v in choice["delta"].items() if v is not None}, choice) for choice in event["choices"]]
    return [(sorted(names), choice["finish_reason"]) for names, choice in said]


ASKED = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/chat/completions", ASKED),
    "chat stream": ("/chat/completions", {**ASKED, "stream": True, "stream_options": {"include_usage": True}}),
    "responses": ("/responses", {"model": "m", "input": "x"}),
    "responses stream": ("/responses", {"model": "m", "input": "x", "stream": True}),
}
SCRIPTS: dict[str, tuple[str, list[tuple[str, dict[str, Any]]]]] = {
    "text": ("hello you", []),
    "calls": ("", [("add", {"a": 1}), ("boom", {"b": 2})]),
    "both": ("hello you", [("add", {"a": 1})]),
}


@pytest.fixture(scope="module")
def llmock() -> Iterator[Any]:
    from llmock.testing import LLMockServer

    server = LLMockServer().start()
    yield server
    server.stop()


@pytest.mark.parametrize("said", SCRIPTS)
@pytest.mark.parametrize("asked", REQUESTS)
def test_everything_that_llmock_says_of_an_equal_script_is_said_in_the_same_place(
    llmock: Any, asked: str, said: str
) -> None:
    from llmock.scenarios import Reply as Peer
    from llmock.scenarios import ToolCall

    (path, body), (text, calls) = REQUESTS[asked], SCRIPTS[said]
    llmock.state.scenarios.add(Peer(text=text or None, tool_calls=tuple(ToolCall(*call) for call in calls)))
    theirs = events_of(post(llmock.base_url("openai"), path, body))
    with ModelServer() as server:
        server.script("k", [Reply(text or None, calls=[Call(*call) for call in calls])])
        mine = events_of(post(server.base_url, path, body))
    assert [each for event in mine if (each := kind(event) if "stream" in asked else None)] == [
        each for event in theirs if (each := kind(event) if "stream" in asked else None)
    ]
    for ours, peer in zip(mine, theirs, strict=True):
        assert set(places(peer)) - set(places(ours)) == set()


# --- real clients -----------------------------------------------------------------------------------------------------


def played(server: ModelServer, key: str) -> list[tuple[str, bool]]:
    return [(request.path, request.stream) for request in server.requests_of(key)]


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("responses", [False, True])
def test_langchain_openai_plays_a_script(streaming: bool, responses: bool) -> None:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    with ModelServer() as server:
        url = server.script("lc", [CALLS, SUMS])
        options: Any = {"use_responses_api": responses, "streaming": streaming, "stream_usage": streaming}
        model = ChatOpenAI(model="m", base_url=url, api_key="x", max_retries=0, **options)
        messages = create_agent(model, [add]).invoke({"messages": [("user", "add")]})["messages"]
        asked, answer = messages[1], messages[-1]
        path = "/v1/responses" if responses else "/v1/chat/completions"
        assert played(server, "lc") == [(path, streaming)] * 2
    assert [(call["id"], call["args"]) for call in asked.tool_calls] == [
        ("c-1", {"a": 1, "b": 2}),
        ("c-2", {"a": 3, "b": 4}),
    ]
    assert [message.content for message in messages if message.type == "tool"] == ["3", "7"]
    assert answer.text == SUMS.text
    usage = answer.usage_metadata
    assert (usage["input_tokens"], usage["output_tokens"], usage["input_token_details"]["cache_read"]) == (30, 12, 20)
    assert usage["output_token_details"]["reasoning"] == 4


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("responses", [False, True])
async def test_pydantic_ai_plays_a_script(streaming: bool, responses: bool) -> None:
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.script("pa", [CALLS, SUMS]), api_key="x", max_retries=0) as client:
            kind_of_model: Any = OpenAIResponsesModel if responses else OpenAIChatModel
            agent = Agent(kind_of_model("m", provider=OpenAIProvider(openai_client=client)), tools=[add])
            if streaming:
                async with agent.run_stream("add") as result:
                    output, usage = await result.get_output(), result.usage
            else:
                finished = await agent.run("add")
                output, usage = finished.output, finished.usage
        assert len(server.requests_of("pa")) == 2
        assert {request.stream for request in server.requests} == {streaming}
    assert output == SUMS.text
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (40, 17, 20)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("responses", [False, True])
async def test_openai_agents_plays_a_script(streaming: bool, responses: bool) -> None:
    from openai import AsyncOpenAI

    from agents import (
        Agent,
        ModelSettings,
        OpenAIChatCompletionsModel,
        OpenAIResponsesModel,
        RunConfig,
        Runner,
        function_tool,
    )

    with ModelServer() as server:
        async with AsyncOpenAI(base_url=server.script("oa", [CALLS, SUMS]), api_key="x", max_retries=0) as client:
            kind_of_model: Any = OpenAIResponsesModel if responses else OpenAIChatCompletionsModel
            agent = Agent(name="adder", model=kind_of_model("m", client), tools=[function_tool(add)])
            quiet = RunConfig(tracing_disabled=True, model_settings=ModelSettings(include_usage=True))
            if streaming:
                result: Any = Runner.run_streamed(agent, "add", run_config=quiet)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, "add", run_config=quiet)
        assert len(server.requests_of("oa")) == 2
    assert result.final_output == SUMS.text
    total = result.context_wrapper.usage
    assert (total.input_tokens, total.output_tokens, total.input_tokens_details.cached_tokens) == (40, 17, 20)
    assert total.output_tokens_details.reasoning_tokens == 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LlamaIndex's workflows look at deprecated attributes
async def test_llamaindex_plays_a_script_through_the_openai_client() -> None:
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.tools import FunctionTool

    from llama_openai import OpenAILLM

    with ModelServer() as server:
        llm = OpenAILLM(base_url=server.script("li", [CALLS, SUMS]))
        result = await FunctionAgent(tools=[FunctionTool.from_defaults(add)], llm=llm).run(user_msg="add")
        first, second = server.requests_of("li")
    assert str(result) == SUMS.text
    assert [tool["function"]["name"] for tool in first.body["tools"]] == ["add"]
    answered = [message for message in second.body["messages"] if message["role"] == "tool"]
    assert sorted((message["tool_call_id"], message["content"]) for message in answered) == [("c-1", "3"), ("c-2", "7")]
