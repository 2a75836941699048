"""Tool calls, model calls and errors of graphs, as the langgraph adapter records them."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import ToolRetryMiddleware, wrap_tool_call
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode, tools_condition
from pydantic import BaseModel

from graphs import drive
from seatrial.core.trace import CallState, StopReason
from seatrial.environment.trial import current_trial
from seatrial.testing import ScriptedChatModel, say


@tool
def add(a: float, b: float, details: bool = False) -> dict[str, Any]:
    """Add two numbers."""
    return {"sum": a + b}


@tool
def boom(x: str) -> str:
    """Always fails."""
    raise ValueError(f"boom {x}")


@wrap_tool_call
def soften(request: Any, handler: Any) -> Any:
    try:
        return handler(request)
    except ValueError as error:
        call = request.tool_call
        return ToolMessage(f"failed: {error}", tool_call_id=call["id"], name=call["name"], status="error")


def agent(*script: Any, tools: Any = (add, boom), **options: Any) -> Any:
    return create_agent(ScriptedChatModel(script=list(script)), list(tools), **options)


def test_an_answer_without_any_tool() -> None:
    driven = drive(agent(say("Good morning.")))
    assert driven.output == "Good morning."
    assert driven.trace.stop_reason is StopReason.ANSWERED
    assert driven.record.steps == 1
    assert driven.calls == []


def test_calls_one_after_the_other_stand_in_order_with_their_model_calls() -> None:
    driven = drive(
        agent(say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say(calls=[("add", {"a": 3, "b": 4}, "c2")]), say("7"))
    )
    assert [(c.call_id, c.arguments, c.result) for c in driven.calls] == [
        ("c1", {"a": 1, "b": 2}, {"sum": 3}),
        ("c2", {"a": 3, "b": 4}, {"sum": 7}),
    ]
    first, second = driven.calls
    assert first.ended is not None
    assert first.ended <= second.number
    assert [call.step for call in driven.calls] == [call.number for call in driven.model_calls][:2]


def test_calls_of_one_model_turn_share_its_step() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}), ("add", {"a": 3, "b": 4})]), say("done")))
    assert len({call.step for call in driven.calls}) == 1
    assert sorted(call.result["sum"] for call in driven.calls) == [3, 7]


def test_a_default_that_the_model_did_not_name_is_no_argument() -> None:
    assert drive(agent(say(calls=[("add", {"a": 1, "b": 2})]), say("3"))).call.arguments == {"a": 1, "b": 2}


def test_arguments_are_as_run_and_as_asked_where_validation_changed_them() -> None:
    call = drive(agent(say(calls=[("add", {"a": "1", "b": 2})]), say("3"))).call
    assert call.arguments == {"a": 1, "b": 2}
    assert call.asked == {"a": "1", "b": 2}


def test_a_raising_tool_ends_the_trial_and_leaves_its_trace() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2}), ("boom", {"x": "y"})]), say("never")))
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert driven.trace.error is not None
    assert driven.trace.error.summary == "raised ValueError: boom y"
    assert sorted(driven.states) == [("add", "executed"), ("boom", "failed")]


def test_a_failed_call_has_its_error_and_what_the_model_was_told() -> None:
    driven = drive(agent(say(calls=[("boom", {"x": "y"})]), say("sorry"), middleware=[soften]))
    assert driven.call.state is CallState.FAILED
    assert driven.call.error == "ValueError: boom y"
    assert driven.call.told == "failed: boom y"
    assert driven.output == "sorry"


def test_each_try_of_a_retried_call_is_an_event() -> None:
    retry = ToolRetryMiddleware(max_retries=1, initial_delay=0.0, jitter=False, on_failure="continue")
    driven = drive(agent(say(calls=[("boom", {"x": "y"}, "c1")]), say("sorry"), middleware=[retry]))
    assert [(call.attempt, call.state, call.call_id) for call in driven.calls] == [
        (1, CallState.FAILED, "c1"),
        (2, CallState.FAILED, "c1"),
    ]


def test_a_call_of_an_unknown_tool_is_seen() -> None:
    driven = drive(agent(say(calls=[("ghost", {"x": 1}, "c1")]), say("well")))
    assert driven.states == [("ghost", "unknown_tool")]
    assert driven.call.arguments == {"x": 1}
    assert driven.call.step == driven.model_calls[0].number


def test_arguments_that_the_schema_rejects_are_invalid() -> None:
    driven = drive(agent(say(calls=[("add", {"a": "many", "b": 2})]), say("well")))
    assert driven.states == [("add", "invalid_arguments")]
    assert driven.call.arguments == {"a": "many", "b": 2}


def test_arguments_that_are_no_json_are_malformed() -> None:
    broken = AIMessage(
        "",
        invalid_tool_calls=[{"name": "add", "args": '{"a": 1', "id": "c1", "error": None, "type": "invalid_tool_call"}],
    )
    call = drive(agent(broken)).call
    assert call.malformed
    assert call.state is CallState.INVALID_ARGUMENTS
    assert call.arguments == '{"a": 1'


def test_a_validation_error_inside_the_body_is_a_failure_not_invalid_arguments() -> None:
    class Row(BaseModel):
        number: int

    @tool
    def read(name: str) -> str:
        """Read a row."""
        return str(Row.model_validate({"number": name}))

    driven = drive(agent(say(calls=[("read", {"name": "x"})]), say("well"), tools=[read]))
    assert driven.states == [("read", "failed")]


def test_injected_arguments_stay_out_of_the_trace() -> None:
    @tool
    def count(word: str, state: Annotated[dict[str, Any], InjectedState]) -> int:
        """Count."""
        return len(state["messages"])

    driven = drive(agent(say(calls=[("count", {"word": "a"})]), say("2"), tools=[count]))
    assert driven.call.arguments == {"word": "a"}
    assert driven.call.result == 2


def test_a_tool_with_an_artifact_is_recorded_by_its_content() -> None:
    @tool(response_format="content_and_artifact")
    def fetch(page: str) -> tuple[str, list[int]]:
        """Fetch."""
        return f"text of {page}", [1, 2]

    driven = drive(agent(say(calls=[("fetch", {"page": "p"})]), say("ok"), tools=[fetch]))
    assert driven.call.result == "text of p"


def test_a_tool_class_with_its_own_run_works() -> None:
    class Shout(BaseTool):
        name: str = "shout"
        description: str = "Shout."

        def _run(self, text: str, run_manager: Any = None) -> str:
            assert run_manager is not None
            return text.upper()

    driven = drive(agent(say(calls=[("shout", {"text": "hi"})]), say("ok"), tools=[Shout()]))
    assert (driven.call.arguments, driven.call.result) == ({"text": "hi"}, "HI")


def test_usage_with_its_details() -> None:
    usage = {
        "input_tokens": 100,
        "output_tokens": 20,
        "input_token_details": {"cache_read": 60, "cache_creation": 0, "ephemeral_5m_input_tokens": 30},
        "output_token_details": {"reasoning": 5},
    }
    driven = drive(agent(say("hello", usage=usage, model="big-model")))
    (call,) = driven.model_calls
    assert call.model == "big-model"
    assert call.usage is not None
    assert call.usage.model_dump() == {"input": 100, "output": 20, "cached": 60, "cache_write": 30, "reasoning": 5}
    assert call.latency_ms is not None


def test_usage_that_the_provider_did_not_give_is_unknown() -> None:
    (call,) = drive(agent(say("hello", usage=None))).model_calls
    assert call.usage is None


def test_a_model_that_raises_is_on_record() -> None:
    driven = drive(agent(say(calls=[("add", {"a": 1, "b": 2})]), RuntimeError("model is down")))
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR
    assert [call.error for call in driven.model_calls] == [None, "RuntimeError: model is down"]
    assert driven.states == [("add", "executed")]


def test_the_step_limit_stops_a_graph_that_calls_models_for_ever() -> None:
    model = ScriptedChatModel(script=lambda messages: say(calls=[("add", {"a": len(messages), "b": 1})]))
    driven = drive(create_agent(model, [add]), steps=4)
    assert driven.trace.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 4


def test_the_step_limit_stops_a_graph_that_swallows_every_exception() -> None:
    model = ScriptedChatModel(script=lambda messages: say("again"))

    def stubborn(state: MessagesState) -> dict[str, Any]:
        try:
            return {"messages": [model.invoke(state["messages"])]}
        except Exception:
            return {}

    graph = StateGraph(MessagesState).add_node("chat", stubborn).add_edge(START, "chat").add_edge("chat", "chat")
    driven = drive(graph.compile(), steps=3)
    assert driven.trace.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 3


def test_a_graph_that_circles_without_a_model_ends_as_max_steps() -> None:
    graph = (
        StateGraph(MessagesState).add_node("idle", lambda state: {}).add_edge(START, "idle").add_edge("idle", "idle")
    )
    assert drive(graph.compile(), steps=2).trace.stop_reason is StopReason.MAX_STEPS


def own_graph(model: ScriptedChatModel, run_tools: Any) -> Any:
    """A chatbot as in the tutorials, with the given node for tools."""
    graph = StateGraph(MessagesState)
    graph.add_node("chatbot", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "chatbot")
    graph.add_conditional_edges("chatbot", tools_condition)
    graph.add_edge("tools", "chatbot")
    return graph.compile()


def test_a_tool_node_that_handles_errors_shows_the_failure() -> None:
    model = ScriptedChatModel(script=[say(calls=[("boom", {"x": "y"})]), say("sorry")])
    driven = drive(own_graph(model, ToolNode([boom], handle_tool_errors=True)))
    assert driven.states == [("boom", "failed")]
    assert driven.output == "sorry"


def test_a_call_that_a_node_runs_by_hand_is_known_from_its_message() -> None:
    def by_hand(state: MessagesState) -> dict[str, Any]:
        calls = state["messages"][-1].tool_calls
        return {"messages": [ToolMessage(str(c["args"]["a"] + 1), tool_call_id=c["id"]) for c in calls]}

    model = ScriptedChatModel(script=[say(calls=[("increment", {"a": 1}, "c1")]), say("2")])
    driven = drive(own_graph(model, by_hand))
    assert driven.states == [("increment", "executed")]
    assert (driven.call.call_id, driven.call.arguments, driven.call.result) == ("c1", {"a": 1}, "2")


def test_a_tool_that_a_node_invokes_by_itself_belongs_to_the_model_s_request() -> None:
    def by_hand(state: MessagesState) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        return {"messages": [ToolMessage(str(add.invoke(call["args"])), tool_call_id=call["id"])]}

    model = ScriptedChatModel(script=[say(calls=[("add", {"a": 1, "b": 2}, "c1")]), say("3")])
    driven = drive(own_graph(model, by_hand))
    assert driven.states == [("add", "executed")]
    assert driven.call.arguments == {"a": 1, "b": 2}
    assert driven.call.step == driven.model_calls[0].number


def test_a_call_through_the_trial_s_tools_is_one_call() -> None:
    def by_hand(state: MessagesState) -> dict[str, Any]:
        call = state["messages"][-1].tool_calls[0]
        found = current_trial().tools.search(**call["args"])
        return {"messages": [ToolMessage(found, tool_call_id=call["id"])]}

    model = ScriptedChatModel(script=[say(calls=[("search", {"query": "x"}, "c1")]), say("found")])
    driven = drive(own_graph(model, by_hand), tools={"search": [{"returns": "a page"}]})
    assert driven.states == [("search", "executed")]
    assert (driven.call.call_id, driven.call.result, driven.call.stand_in) == ("c1", "a page", True)


def test_a_call_that_never_runs_is_of_unknown_state() -> None:
    model = ScriptedChatModel(script=[say(calls=[("add", {"a": 1, "b": 2})])])
    graph = StateGraph(MessagesState).add_node("plan", lambda s: {"messages": [model.invoke(s["messages"])]})
    assert drive(graph.add_edge(START, "plan").compile()).states == [("add", "unknown")]


class Verdict(BaseModel):
    """A structured answer."""

    score: int


@pytest.mark.parametrize("strategy", ["tool", "schema"])
def test_a_structured_answer_is_the_output_and_no_tool_call(strategy: str) -> None:
    from langchain.agents.structured_output import ToolStrategy

    wanted = ToolStrategy(Verdict) if strategy == "tool" else Verdict
    graph = agent(
        say(calls=[("add", {"a": 1, "b": 2})]), say(calls=[("Verdict", {"score": 3})]), response_format=wanted
    )
    driven = drive(graph)
    assert driven.output == {"score": 3}
    assert driven.states == [("add", "executed")]


def test_an_unknown_tool_is_told_from_a_structured_answer() -> None:
    script = [say(calls=[("ghost", {"x": 1})]), say(calls=[("Verdict", {"score": 3})])]
    driven = drive(agent(*script, response_format=Verdict))
    assert driven.states == [("ghost", "unknown_tool")]
    assert driven.output == {"score": 3}


def test_what_retrievers_find_is_on_record() -> None:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever

    from seatrial.core.trace import Retrieval

    class Shelf(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(f"about {query}")]

    graph = StateGraph(MessagesState).add_node(
        "look", lambda s: {"messages": [str(Shelf().invoke("tides")[0].page_content)]}
    )
    driven = drive(graph.add_edge(START, "look").compile())
    (found,) = driven.trace.of(Retrieval)
    assert (found.query, found.contexts) == ("tides", ("about tides",))
