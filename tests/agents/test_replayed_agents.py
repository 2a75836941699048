"""Replayed trials of agents behind several adapters, each with its framework's real client."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import seatrial
from projects import write_project
from seatrial.core.encoding import dumps
from seatrial.testing.model_server import Call, Line, ModelServer, Reply, Request

pytestmark = pytest.mark.slow
AGENT = """
import os

from seatrial import Grade


def count(item: str) -> int:
    '''Count an item.'''
    return len(item)


def function(message):
    from openai import OpenAI

    with OpenAI(api_key="k", max_retries=0) as client:
        messages = [{"role": "user", "content": message}]
        for _ in range(2):
            said = client.chat.completions.create(model="m", messages=messages).choices[0].message
            messages.append({"role": "assistant", "content": said.content or "called"})
        return said.content


def graph():
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI

    model = ChatOpenAI(model="m", api_key="k", max_retries=0, streaming=True, stream_usage=True)
    return create_agent(model, [count])


async def pydantic_ai(message):
    from openai import AsyncOpenAI
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async with AsyncOpenAI(api_key="k", max_retries=0) as client:
        model = OpenAIResponsesModel("m", provider=OpenAIProvider(openai_client=client))
        return (await Agent(model, tools=[count]).run(message)).output


async def openai_agents(message):
    from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
    from openai import AsyncOpenAI

    async with AsyncOpenAI(api_key="k", max_retries=0) as client:
        agent = Agent(name="counter", model=OpenAIChatCompletionsModel("m", client), tools=[function_tool(count)])
        done = await Runner.run(agent, message, run_config=RunConfig(tracing_disabled=True))
        return done.final_output


async def llamaindex(message):
    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.core.tools import FunctionTool

    from llama_openai import OpenAILLM

    llm = OpenAILLM(base_url=os.environ["OPENAI_BASE_URL"])
    agent = FunctionAgent(tools=[FunctionTool.from_defaults(count)], llm=llm)
    return str(await agent.run(user_msg=message))


def judged(context):
    '''A judge: asks a model how good the answer is.'''
    from openai import OpenAI

    with OpenAI(api_key="k", max_retries=0) as client:
        ask = [{"role": "user", "content": "judge " + context.trace.output}]
        said = client.chat.completions.create(model="judge", messages=ask).choices[0].message.content
    score, _, reason = said.partition(" ")
    return Grade(name="judged", verdict="pass" if float(score) > 0.2 else "fail", score=float(score), reason=reason)
"""
KINDS = ("function", "graph", "pydantic_ai", "openai_agents", "llamaindex")


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model that calls a tool first, then answers with the next number; as a judge its scores rise."""
    number, judgements = itertools.count(), itertools.count(1)

    def line(request: Request) -> Line:
        if request.body["model"] == "judge":
            nth = next(judgements)
            return Reply(f"{nth / 10} judgement {nth}")
        said = json.dumps(request.body.get("messages", request.body.get("input")))
        if "call-1" in said or "called" in said:
            return Reply(str(next(number)))
        return Reply(calls=[Call("count", {"item": "abc"}, "call-1")])

    with ModelServer(otherwise=line) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        yield server


def run(folder: Path, agent: str, mode: str, name: str, case: str) -> seatrial.Run:
    files = {"seatrial.yaml": f"version: 1\nagent: my_agent:{agent}\n", "my_agent.py": AGENT}
    write_project(folder, {**files, "cases/smoke/counts.yaml": case})
    options: dict[str, Any] = {"cassettes": folder / "tapes", "cassette_mode": mode, "concurrency": 1, "seed": 1}
    return seatrial.run(folder, output=folder / name, trials=5, **options)


def outside_times(run: seatrial.Run) -> str:
    return dumps({**run.summary(), "times": None})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # LlamaIndex's workflows look at deprecated attributes
@pytest.mark.parametrize("agent", KINDS)
def test_bl_078_repeats_are_trials_of_their_own_and_replayed_in_their_order(
    tmp_path: Path, counting: ModelServer, agent: str
) -> None:
    case = "id: counts\ninput: count\nexpected: {response: {matches: '^[0-4]$'}}\n"
    first = run(tmp_path, agent, "record", "a", case)
    assert [record.output for record in first.trials] == ["0", "1", "2", "3", "4"]
    assert {record.replayed for record in first.trials} == {0}
    asked = len(counting.requests)
    counting.close()
    second = run(tmp_path, agent, "replay", "b", case)
    assert [record.output for record in second.trials] == ["0", "1", "2", "3", "4"]
    assert {record.replayed for record in second.trials} == {2}
    assert len(counting.requests) == asked == 10
    assert outside_times(first) == outside_times(second)
    kinds = [[event.kind for event in run.trace(record).events] for run in (first, second) for record in run.trials]
    assert kinds == kinds[:5] * 2


@pytest.mark.parametrize("agent", ["function", "graph"])
def test_bl_080_a_replayed_run_shows_scores_reasons_and_status(
    tmp_path: Path, counting: ModelServer, agent: str
) -> None:
    case = "id: counts\ninput: count\ngraders: [{use: 'my_agent:judged', name: judged}]\n"
    first = run(tmp_path, agent, "record", "a", case)
    counting.close()
    second = run(tmp_path, agent, "replay", "b", case)
    for done in (first, second):
        grades = [record.grade("judged") for record in done.trials]
        assert [(grade.score, grade.reason) for grade in grades if grade] == [
            (n / 10, f"judgement {n}") for n in range(1, 6)
        ]
        assert [str(record.status) for record in done.trials] == ["failed", "failed", "passed", "passed", "passed"]
    assert outside_times(first) == outside_times(second)
    assert {record.replayed for record in second.trials} == {3}
