"""Input and output of graphs with their own state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.func import entrypoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from pydantic import BaseModel

from graphs import drive
from seatrial.agents.langgraph import LangGraphAgent
from seatrial.agents.langgraph.mapping import Mapper, final_answer
from seatrial.core.ports import TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.errors import UsageError
from seatrial.testing import say


class Report(TypedDict, total=False):
    question: str
    customer: str
    language: str
    notes: Annotated[list[str], lambda old, new: old + new]
    report: dict[str, Any]


class Order(BaseModel):
    order_id: str


class OrderState(BaseModel):
    text: str
    order: Order | None = None


def research(state: Report) -> Report:
    summary = f"{state['question']} for {state.get('customer')} in {state.get('language')}"
    return {"report": {"summary": summary}, "notes": [state["question"]]}


GRAPH = StateGraph(Report).add_node("research", research).add_edge(START, "research").compile()
MAPPING = {"question": "$message", "customer": "$input.user_id", "language": "en"}


def shout(state: dict[str, Any]) -> str:
    return str(state["report"]["summary"]).upper()


def ask(task: Any) -> dict[str, Any]:
    return {"question": f"[{task}]"}


def test_an_own_state_with_a_mapping() -> None:
    spec = AgentSpec(input=MAPPING, output="report.summary")
    assert drive(GRAPH, {"user_id": "u1", "message": "tides"}, spec=spec).output == "tides for u1 in en"


def test_each_turn_is_mapped_again_onto_the_same_thread() -> None:
    spec = AgentSpec(input=MAPPING, output="notes")
    assert drive(GRAPH, {"user_id": "u1", "message": "one"}, "two", spec=spec).trace.outputs == (
        ["one"],
        ["one", "two"],
    )


def test_input_and_output_by_functions() -> None:
    module = ask.__module__
    spec = AgentSpec(input=f"{module}:ask", output=f"{module}:shout")
    import sys

    sys.modules.setdefault(module, sys.modules[__name__])
    assert drive(GRAPH, "tides", spec=spec).output == "[TIDES] FOR NONE IN NONE"


def test_the_final_state_is_the_answer_and_the_outcome_without_messages() -> None:
    driven = drive(GRAPH, {"question": "tides"})
    assert driven.output["report"] == {"summary": "tides for None in None"}
    assert driven.record.outcome == driven.output
    assert Observable.OUTCOME in driven.trace.observes


def test_keys_that_the_state_knows_are_passed_beside_the_message() -> None:
    class State(MessagesState):
        user_id: str

    graph = StateGraph(State).add_node("hello", lambda s: {"messages": [say(f"hello {s['user_id']}")]})
    driven = drive(graph.add_edge(START, "hello").compile(), {"user_id": "u1", "message": "hi", "colour": "red"})
    assert driven.output == "hello u1"
    assert driven.record.outcome == {"user_id": "u1"}


def test_messages_of_the_case_are_passed_as_they_are() -> None:
    graph = StateGraph(MessagesState).add_node("count", lambda s: {"messages": [say(str(len(s["messages"])))]})
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "user", "content": "c"},
    ]
    assert drive(graph.add_edge(START, "count").compile(), {"messages": messages}).output == "3"


def test_a_text_for_a_graph_with_one_key() -> None:
    class Question(TypedDict):
        question: str

    graph = StateGraph(Report, input_schema=Question).add_node("research", research).add_edge(START, "research")
    assert drive(graph.compile(), "tides", spec=AgentSpec(output="report.summary")).output.startswith("tides for")


def test_a_pydantic_state_with_objects_of_its_own() -> None:
    graph = StateGraph(OrderState).add_node("read", lambda s: {"order": Order(order_id=s.text)}).add_edge(START, "read")
    assert drive(graph.compile(), {"text": "O-1"}, spec=AgentSpec(output="order.order_id")).output == "O-1"


def test_runtime_context_and_configurable() -> None:
    @dataclass
    class Context:
        tenant: str

    def node(state: MessagesState, runtime: Runtime[Context], config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [say(f"{runtime.context.tenant} {config['configurable']['tone']}")]}

    graph = StateGraph(MessagesState, context_schema=Context).add_node("node", node).add_edge(START, "node").compile()
    spec = AgentSpec(
        input={"messages": "$messages", "$context": {"tenant": "$input.tenant"}, "$configurable": {"tone": "dry"}}
    )
    assert drive(graph, {"tenant": "acme", "message": "hi"}, spec=spec).output == "acme dry"


def test_a_functional_graph_gets_the_input_itself() -> None:
    @entrypoint()
    def workflow(task: dict[str, Any]) -> str:
        return f"did {task['message']}"

    assert drive(workflow, {"message": "it"}).output == "did it"


@pytest.mark.parametrize(
    ("spec", "part"),
    [
        (AgentSpec(input={"qestion": "$message"}), "no 'qestion'"),
        (AgentSpec(input=7), "neither a mapping"),
        (AgentSpec(output=7), "neither a path"),
    ],
)
def test_a_spec_that_does_not_fit_the_graph_is_refused(spec: AgentSpec, part: str) -> None:
    with pytest.raises(UsageError, match=part):
        LangGraphAgent(GRAPH, spec)


def test_an_input_that_does_not_fit_says_what_to_write() -> None:
    driven = drive(GRAPH, {"message": "tides"})
    assert driven.trace.error is not None
    assert "agent: {input: ...}" in driven.trace.error.message


def test_an_output_path_that_leads_nowhere_says_where_it_ends() -> None:
    driven = drive(GRAPH, {"question": "x"}, spec=AgentSpec(output="report.sumary"))
    assert driven.trace.error is not None
    assert driven.trace.error.message == "agent output: report.sumary: there is no sumary in dict"


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("$message", "hi"),
        ("$input", {"message": "hi", "user": {"id": 7}}),
        ("$input.user.id", 7),
        ("$input.nobody", None),
        ("$$5", "$5"),
        ({"deep": ["$message", 1]}, {"deep": ["hi", 1]}),
    ],
)
def test_expressions_of_an_input_mapping(template: Any, expected: Any) -> None:
    turn = TurnInput("case", {"message": "hi", "user": {"id": 7}})
    assert Mapper(["key"], {"key": template}).input(turn).state == {"key": expected}


def test_an_expression_that_is_not_known_is_refused() -> None:
    with pytest.raises(UsageError, match=r"\$mesage"):
        Mapper(["key"], {"key": "$mesage"}).input(TurnInput("case", "hi"))


def test_the_answer_is_the_last_text_that_the_user_did_not_say() -> None:
    from langchain_core.messages import HumanMessage, ToolMessage

    assert final_answer({"messages": [HumanMessage("q"), say("a")]}) == "a"
    direct = [HumanMessage("q"), say(calls=[("t", {})]), ToolMessage("result", tool_call_id="1")]
    assert final_answer({"messages": direct}) == "result"
    assert final_answer({"messages": [HumanMessage("q")]}) == ""
    assert final_answer({"messages": [HumanMessage("q"), say("")]}) == ""
