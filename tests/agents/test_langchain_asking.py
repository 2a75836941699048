"""Tools of LangChain ask the running trial, wherever they are called; the user's objects stay as they are."""

from __future__ import annotations

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from graphs import drive
from seatrial.testing import ScriptedChatModel, say

LOST = {"look": [{"returns": "lost"}]}


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"saw {what}"


class Counting(BaseTool):
    """A tool with a state of its own."""

    name: str = "count"
    description: str = "Count."
    times: int = 0

    def _run(self, step: int) -> int:
        self.times += step
        return self.times


class CountingTwice(Counting):
    """Whose body goes through its parent's."""

    def _run(self, step: int) -> int:
        return super()._run(step) + super()._run(step)


def asks_once(name: str, **arguments: Any) -> ScriptedChatModel:
    return ScriptedChatModel(script=[say(calls=[(name, arguments)]), say("done")])


def test_a_stand_in_answers_in_a_graph_that_a_tool_s_body_calls() -> None:
    inner = create_agent(asks_once("look", what="it"), [look], name="inner")

    def ask(request: str) -> str:
        """Ask the inner agent."""
        return inner.invoke({"messages": [("user", request)]})["messages"][-1].text

    driven = drive(create_agent(asks_once("ask", request="go"), [ask], name="outer"), tools=LOST)
    assert [(call.name, call.agent, call.result) for call in driven.calls] == [
        ("ask", "outer", "done"),
        ("look", "inner", "lost"),
    ]
    assert [call.stand_in for call in driven.calls] == [False, True]


def test_a_stand_in_answers_where_a_node_calls_the_tool_by_itself() -> None:
    model = asks_once("look", what="it").bind_tools([look])

    def think(state: MessagesState) -> Any:
        said = model.invoke(state["messages"])
        notes = [ToolMessage(look.invoke(call["args"]), tool_call_id=call["id"]) for call in said.tool_calls]
        return {"messages": [said, *notes]}

    driven = drive(StateGraph(MessagesState).add_node("think", think).add_edge(START, "think").compile(), tools=LOST)
    assert (driven.call.result, driven.call.stand_in) == ("lost", True)


def test_a_stand_in_and_a_fault_reach_a_graph_behind_a_function() -> None:
    def build() -> Any:
        graph = create_agent(asks_once("look", what="it"), [look])
        return lambda text: graph.invoke({"messages": [("user", text)]})["messages"][-1].text

    assert drive(build, tools=LOST).call.result == "lost"
    failed = drive(build, faults=[{"tool": "look", "error": "OSError: no line"}])
    assert (failed.call.error, failed.record.error.message) == ("OSError: no line", "no line")


def test_a_graph_s_tools_are_left_as_they_are() -> None:
    node = ToolNode([look])
    graph = create_agent(asks_once("look", what="it"), [look])
    (own,) = (one for one in graph.nodes["tools"].bound.tools_by_name.values() if one.name == "look")
    drive(graph, tools=LOST)
    assert graph.nodes["tools"].bound.tools_by_name["look"] is own is look
    assert node.tools_by_name["look"] is look
    assert look.invoke({"what": "it"}) == "saw it", "outside a trial it does what it always did"


def test_a_tool_keeps_its_state() -> None:
    counting = Counting()
    drive(create_agent(asks_once("count", step=3), [counting]))
    assert counting.times == 3
    drive(create_agent(asks_once("count", step=3), [counting]), tools={"count": [{"returns": 7}]})
    assert counting.times == 3, "the stand-in answered"


def test_a_body_that_goes_through_its_parent_s_is_one_call() -> None:
    counting = CountingTwice()
    driven = drive(create_agent(asks_once("count", step=1), [counting]))
    assert (driven.call.result, counting.times) == (3, 2)
    stood_in = drive(create_agent(asks_once("count", step=1), [counting]), tools={"count": [{"returns": 7}]})
    assert (stood_in.call.result, counting.times) == (7, 2)


def test_a_graph_in_a_tool_goes_by_the_name_it_was_compiled_with() -> None:
    model = asks_once("look", what="it").bind_tools([look])

    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState).add_node("think", think).add_node("tools", ToolNode([look]))
    graph.add_edge(START, "think").add_conditional_edges(
        "think", lambda state: "tools" if state["messages"][-1].tool_calls else "__end__"
    ).add_edge("tools", "think")
    inner = graph.compile(name="by_hand")

    def ask(request: str) -> str:
        """Ask the inner agent."""
        return inner.invoke({"messages": [("user", request)]})["messages"][-1].text

    driven = drive(create_agent(asks_once("ask", request="go"), [ask], name="outer"))
    assert [call.agent for call in driven.model_calls] == ["outer", "by_hand", "by_hand", "outer"]
    assert [(call.name, call.agent) for call in driven.calls] == [("ask", "outer"), ("look", "by_hand")]
