"""One graph in many trials: conversations, isolation, stand-ins, faults, sync and async, hidden agents."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from graphs import Drive, drive
from seatrial.agents.langgraph import LangGraphAgent
from seatrial.agents.langgraph.tools import tools_of
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Fault, Message, Observable, StopReason
from seatrial.environment.trial import TrialEnvironment, current_trial
from seatrial.testing import ScriptedChatModel, say


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
async def aadd(a: int, b: int) -> int:
    """Add, async only."""
    await asyncio.sleep(0)
    return a + b


@tool
def whose(key: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
    """Read the trial's own state."""
    return f"{current_trial().identity['user']}/{tool_call_id}"


def counting(name: str = "add") -> Any:
    """A policy that adds once and then says the sum; it depends on the conversation only."""

    def play(messages: list[Any]) -> Any:
        last = messages[-1]
        if last.type == "tool":
            return say(f"it is {last.text}")
        number = int(last.text)
        return say(calls=[(name, {"a": number, "b": number}, f"call-{number}")])

    return ScriptedChatModel(script=play)


SHARED = create_agent(counting(), [add])
SHARED_ASYNC = create_agent(counting("aadd"), [aadd])


def test_a_conversation_of_three_turns_remembers() -> None:
    def play(messages: list[Any]) -> Any:
        return say(f"heard {sum(isinstance(m, HumanMessage) for m in messages)}")

    driven = drive(create_agent(ScriptedChatModel(script=play), []), "one", "two", "three")
    assert driven.trace.outputs == ("heard 1", "heard 2", "heard 3")
    assert [message.turn for message in driven.trace.of(Message)] == [1, 1, 2, 2, 3, 3]


def test_turns_belong_to_one_trial_and_no_other_though_the_user_s_saver_is_shared() -> None:
    def play(messages: list[Any]) -> Any:
        return say(f"heard {len(messages)}")

    saver = InMemorySaver()
    graph = create_agent(ScriptedChatModel(script=play), [], checkpointer=saver)
    assert drive(graph, "one", "two").trace.outputs == ("heard 1", "heard 3")
    assert drive(graph, "one").output == "heard 1"
    assert saver.storage == {}, "the user's own saver is left alone"


@pytest.mark.parametrize(("graph", "name"), [(SHARED, "add"), (SHARED_ASYNC, "aadd")])
async def test_twenty_trials_of_one_graph_at_once_keep_apart(graph: Any, name: str) -> None:
    async def one(number: int) -> Any:
        stand_in = {name: [{"returns": 1000 + number}]} if number % 2 else {}
        return await Drive(graph).arun(str(number), tools=stand_in, identity={"agent": f"agent-{number}"})

    for number, driven in enumerate(await asyncio.gather(*(one(number) for number in range(20)))):
        expected = 1000 + number if number % 2 else 2 * number
        assert driven.output == f"it is {expected}"
        assert (driven.call.call_id, driven.call.result) == (f"call-{number}", expected)
        assert driven.call.stand_in is bool(number % 2)
        assert driven.call.agent == f"agent-{number}"


def test_outside_a_trial_the_graph_does_what_it_always_did() -> None:
    drive(SHARED, "1", tools={"add": [{"returns": 99}]})
    found = SHARED.invoke({"messages": [HumanMessage("4")]})
    assert found["messages"][-1].text == "it is 8"


def test_handing_tools_to_trials_twice_changes_nothing() -> None:
    LangGraphAgent(SHARED)
    before = tools_of(SHARED)
    LangGraphAgent(SHARED)
    assert tools_of(SHARED) == before
    assert before["add"].args_schema is add.args_schema
    assert isinstance(before["add"], type(add))


def test_tools_of_graphs_within_graphs_have_stand_ins_too() -> None:
    inner = create_agent(counting(), [add], name="inner")
    outer = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile()
    assert drive(outer, "2", tools={"add": [{"returns": "many"}]}).output == "it is many"


def test_a_stand_in_that_no_rule_foresees_is_the_agent_s_failed_call() -> None:
    driven = drive(SHARED, "3", tools={"add": [{"when": {"a": 1}, "returns": 2}]})
    assert driven.states == [("add", "failed")]
    assert driven.trace.stop_reason is StopReason.AGENT_ERROR


def test_a_stand_in_for_a_tool_with_an_artifact() -> None:
    @tool(response_format="content_and_artifact")
    def add(a: int, b: int) -> tuple[str, int]:
        """Add."""
        raise AssertionError("the stand-in answers")

    assert drive(create_agent(counting(), [add]), "3", tools={"add": [{"returns": "six"}]}).output == "it is six"


def test_stand_ins_match_what_the_model_named() -> None:
    rules = {"add": [{"when": {"a": 3, "b": {"$gt": 2}}, "returns": "matched"}]}
    assert drive(SHARED, "3", tools=rules).output == "it is matched"


@pytest.mark.parametrize(("graph", "name"), [(SHARED, "add"), (SHARED_ASYNC, "aadd")])
def test_a_fault_hits_the_call_and_refers_to_it(graph: Any, name: str) -> None:
    driven = drive(graph, "3", faults=[{"tool": name, "error": "timeout"}])
    assert driven.states == [(name, "failed")]
    assert driven.call.error == "TimeoutError: the tool timed out"
    (fault,) = driven.trace.of(Fault)
    assert (fault.fault, fault.call) == ("timeout", driven.call.number)


def test_a_changed_result_reaches_the_model() -> None:
    assert drive(SHARED, "3", faults=[{"tool": "add", "result": "duplicate"}]).output == "it is [6, 6]"


def test_injected_arguments_reach_the_tool_in_a_trial() -> None:
    model = ScriptedChatModel(script=[say(calls=[("whose", {"key": "k"}, "c9")]), say("ok")])
    driven = drive(create_agent(model, [whose]), identity={"user": "u-1"})
    assert driven.call.result == "u-1/c9"


def test_a_tool_that_went_through_the_trial_is_recorded_once() -> None:
    ran: list[int] = []

    def lookup(order: int) -> str:
        """Look an order up."""
        ran.append(order)
        return f"order {order}"

    def factory(environment: TrialEnvironment) -> Any:
        model = ScriptedChatModel(script=[say(calls=[("lookup", {"order": 7}, "c1")]), say("ok")])
        return create_agent(model, [environment.tool(lookup)])

    driven = drive(factory, faults=[{"tool": "lookup", "result": "truncated"}])
    assert [(call.name, call.call_id, call.result) for call in driven.calls] == [("lookup", "c1", "ord")]
    assert ran == [7]
    assert len(list(driven.trace.of(Fault))) == 1


def test_a_tool_that_asks_the_trial_for_itself_is_recorded_once() -> None:
    @tool
    def search(query: str) -> str:
        """Search."""
        return str(current_trial().tools.search(query=query))

    model = ScriptedChatModel(script=[say(calls=[("search", {"query": "x"}, "c1")]), say("ok")])
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda s: {"messages": [model.invoke(s["messages"])]})
    graph.add_node("run", lambda s: {"messages": [search.invoke(s["messages"][-1].tool_calls[0])]})
    compiled = graph.add_edge(START, "ask").add_edge("ask", "run").compile()
    driven = drive(compiled, tools={"search": [{"returns": "found"}]})
    assert [(call.call_id, call.result) for call in driven.calls] == [("c1", "found")]


def test_each_trial_has_its_own_saver_even_for_state_that_cannot_be_written() -> None:
    class State(TypedDict):
        text: str
        lock: Any

    graph = StateGraph(State)
    graph.add_node("take", lambda s: {"lock": threading.Lock()})
    graph.add_node("use", lambda s: {"text": f"{s['text']} {s['lock'].acquire()}"})
    compiled = graph.add_edge(START, "take").add_edge("take", "use").compile()
    driven = drive(compiled, {"text": "got"}, spec=AgentSpec(output="text"))
    assert driven.output == "got True"


# --- sync only, async only


@dataclass
class Where:
    """In which thread nodes ran."""

    threads: set[str]


async def test_sync_nodes_do_not_block_the_loop() -> None:
    meeting = threading.Barrier(4, timeout=10)

    def node(state: MessagesState) -> dict[str, Any]:
        meeting.wait()  # only passes when four trials are in here at once
        return {"messages": [say("met")]}

    graph = StateGraph(MessagesState).add_node("meet", node).add_edge(START, "meet").compile()
    driven = await asyncio.gather(*(Drive(graph).arun() for _ in range(4)))
    assert [one.output for one in driven] == ["met"] * 4


async def test_async_only_nodes_run_in_the_runner_s_loop() -> None:
    loops: list[Any] = []

    async def node(state: MessagesState) -> dict[str, Any]:
        loops.append(asyncio.get_running_loop())
        return {"messages": [say("hello")]}

    graph = StateGraph(MessagesState).add_node("only", node).add_edge(START, "only").compile()
    assert (await Drive(graph).arun()).output == "hello"
    assert loops == [asyncio.get_running_loop()]


def test_events_of_async_calls_stand_in_the_order_in_which_they_happened() -> None:
    driven = drive(SHARED_ASYNC, "2")
    kinds = [event.kind for event in driven.trace.events]
    assert kinds == ["message", "model_call", "tool_call", "model_call", "message"]


def test_an_async_only_tool_of_a_tool_node_needs_no_more() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("ask", lambda s: {"messages": [say(calls=[("aadd", {"a": 1, "b": 2}, "c1")])]})
    graph.add_node("run", ToolNode([aadd]))
    driven = drive(graph.add_edge(START, "ask").add_edge("ask", "run").compile())
    assert driven.call.result == 3


class Watch(AgentMiddleware):
    """Middleware that only has async hooks."""

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


class WatchModel(AgentMiddleware):
    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request)


@pytest.mark.parametrize("middleware", [Watch(), WatchModel()])
def test_async_only_middleware_around_sync_tools_runs_everything_once(middleware: Any) -> None:
    driven = drive(create_agent(counting(), [add], middleware=[middleware]), "2", "3")
    assert driven.trace.outputs == ("it is 4", "it is 6")
    assert [call.call_id for call in driven.calls] == ["call-2", "call-3"]
    assert len(driven.model_calls) == 4


# --- behind a function


def hidden(task: str) -> str:
    """An agent whose graph nobody sees."""
    found = create_agent(counting(), [add]).invoke({"messages": [HumanMessage(task)]})
    return str(found["messages"][-1].text)


async def hidden_async(task: str) -> str:
    found = await create_agent(counting("aadd"), [aadd]).ainvoke({"messages": [HumanMessage(task)]})
    return str(found["messages"][-1].text)


@pytest.mark.parametrize("agent", [hidden, hidden_async])
async def test_a_graph_behind_a_function_is_recorded(agent: Any) -> None:
    for number, driven in enumerate(await asyncio.gather(*(Drive(agent).arun(str(n)) for n in range(8)))):
        assert driven.output == f"it is {2 * number}"
        assert driven.call.call_id == f"call-{number}"
        assert driven.record.steps == 2
        assert {Observable.MODEL_CALLS, Observable.TOOL_CALLS} <= driven.trace.observes


def test_a_graph_behind_a_function_has_the_step_limit() -> None:
    def restless(task: str) -> str:
        model = ScriptedChatModel(script=lambda messages: say(calls=[("add", {"a": len(messages), "b": 1})]))
        return str(create_agent(model, [add]).invoke({"messages": [HumanMessage(task)]}))

    driven = drive(restless, steps=3)
    assert driven.trace.stop_reason is StopReason.MAX_STEPS
    assert len(driven.model_calls) == 3


def test_tracing_is_off_in_a_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    from langsmith.utils import get_env_var, tracing_is_enabled

    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    get_env_var.cache_clear()
    seen: list[Any] = []
    graph = StateGraph(MessagesState).add_node("look", lambda s: seen.append(tracing_is_enabled()))
    drive(graph.add_edge(START, "look").compile())
    assert seen == [False]
    monkeypatch.undo()
    get_env_var.cache_clear()
