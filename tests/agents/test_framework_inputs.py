"""Faults of `input:` and `output:` that every framework's adapter finds before anything runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from llama_index.core.agent.workflow import AgentWorkflow, FunctionAgent

from seatrial.agents.detect import agent_for
from seatrial.core.project import AgentSpec
from seatrial.errors import UsageError
from seatrial.testing import ScriptedAgentsModel, ScriptedLLM

no_function = 42


def graph() -> Any:
    return StateGraph(MessagesState).add_node("a", lambda state: state).add_edge(START, "a").compile()


def workflow() -> Any:
    return AgentWorkflow(agents=[FunctionAgent(name="a", llm=ScriptedLLM(script=[]), tools=[])])


def openai_agent() -> Any:
    from agents import Agent

    return Agent("a", model=ScriptedAgentsModel([]))


def pydantic_agent() -> Any:
    from pydantic_ai import Agent

    return Agent("test")


def adk_agent() -> Any:
    from google.adk.agents import LlmAgent

    return LlmAgent(name="a", model="scripted")


def factory() -> Any:
    def build(config: Any) -> Any:
        raise AssertionError("nothing runs")

    return build


KEYS: dict[Callable[[], Any], str] = {
    graph: "messages",
    workflow: "user_msg",
    openai_agent: "input",
    pydantic_agent: "prompt",
    adk_agent: "message",
    factory: "anything",
}
every = pytest.mark.parametrize("made", KEYS)


def refused(made: Callable[[], Any], message: str, **spec: Any) -> None:
    with pytest.raises(UsageError, match=message):
        agent_for(made(), AgentSpec(**spec))


@every
@pytest.mark.parametrize("nested", [lambda text: text, lambda text: [{"deep": text}]])
def test_an_expression_that_nobody_knows_is_refused(made: Callable[[], Any], nested: Callable[[str], Any]) -> None:
    refused(
        made, r"agent input: '\$mesage' is not known; did you mean '\$message", input={KEYS[made]: nested("$mesage")}
    )


@every
def test_a_path_into_the_input_that_cannot_be_read_is_refused(made: Callable[[], Any]) -> None:
    refused(made, r"agent input: '\$input.a..b': 'a..b' is not a path", input={KEYS[made]: "$input.a..b"})


@every
def test_a_path_of_the_output_that_cannot_be_read_is_refused(made: Callable[[], Any]) -> None:
    refused(made, "agent output: 'a..b' is not a path", output="a..b")


@every
@pytest.mark.parametrize("key", ["input", "output"])
def test_what_is_named_as_a_function_must_be_one(made: Callable[[], Any], key: str) -> None:
    named = f"{__name__}:no_function"
    refused(made, f"agent {key}: '{named}' is no function, but an object of type int", **{key: named})
    refused(made, f"agent {key}: .*did you mean 'no_function'", **{key: f"{__name__}:no_functoin"})


@pytest.mark.parametrize("made", [made for made in KEYS if made is not factory])
def test_a_key_that_a_run_does_not_take_is_refused(made: Callable[[], Any]) -> None:
    refused(
        made,
        "has no 'mesages'|takes no 'user_mesg'|takes no 'inputt'|has no 'promt'|has no 'mesage'",
        input=WRONG[made],
    )


WRONG: dict[Callable[[], Any], dict[str, str]] = {
    graph: {"mesages": "$message"},
    workflow: {"user_mesg": "$message"},
    openai_agent: {"inputt": "$message"},
    pydantic_agent: {"promt": "$message"},
    adk_agent: {"mesage": "$message"},
}


def test_a_workflow_whose_run_is_the_user_s_own_may_take_anything() -> None:
    class Own(AgentWorkflow):
        def run(self, topic: str) -> Any:
            return super().run(user_msg=topic)

    agent = Own(agents=[FunctionAgent(name="a", llm=ScriptedLLM(script=[]), tools=[])])
    assert agent_for(agent, AgentSpec(input={"topic": "$message"})).kind == "llamaindex"


def test_a_function_that_makes_deps_must_be_one() -> None:
    refused(pydantic_agent, "agent input.deps: .* is no function", input={"deps": f"{__name__}:no_function"})
