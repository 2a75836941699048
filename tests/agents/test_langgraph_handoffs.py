"""Hand-offs of graphs: own tools, swarm, supervisor; never tool calls."""

from __future__ import annotations

from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command
from langgraph_swarm import create_handoff_tool, create_swarm

from graphs import Driven, drive
from seatrial.core.trace import CallState
from seatrial.testing import ScriptedChatModel, say


def over_to(target: str, state: dict[str, Any], call_id: str) -> Command[Any]:
    note = ToolMessage(f"over to {target}", tool_call_id=call_id)
    return Command(goto=target, graph=Command.PARENT, update={"messages": [*state["messages"], note]})


@tool
def transfer_to_bob(
    order_id: str,
    reason: str,
    state: Annotated[dict[str, Any], InjectedState],
    tool_call_id: Annotated[str, InjectedToolCallId],
    context: dict[str, Any] | None = None,
) -> Command[Any]:
    """Hand over to bob."""
    return over_to("bob", state, tool_call_id)


@tool
def escalate(
    case: str, state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
) -> Command[Any]:
    """Hand over by another name."""
    return over_to("bob", state, tool_call_id)


@tool
def look(what: str) -> str:
    """Look."""
    return f"saw {what}"


def pair(*calls: Any, **options: Any) -> Any:
    """alice, who can hand over to bob."""
    alice = create_agent(
        ScriptedChatModel(script=[say(calls=calls), say("alice is done")]),
        [transfer_to_bob, escalate, look],
        name="alice",
        **options,
    )
    bob = create_agent(
        ScriptedChatModel(script=[say(calls=[("look", {"what": "it"})]), say("bob is done")]), [look], name="bob"
    )
    graph = StateGraph(MessagesState).add_node("alice", alice, destinations=("bob",)).add_node("bob", bob)
    return graph.add_edge(START, "alice").compile()


def routes(driven: Driven) -> list[tuple[str, str]]:
    return [(handoff.source, handoff.target) for handoff in driven.handoffs]


def test_an_own_handoff_tool_is_a_handoff_with_reason_and_context() -> None:
    call = ("transfer_to_bob", {"order_id": "O-1", "reason": "above the limit", "context": {"amount": 750}})
    driven = drive(pair(call))
    assert routes(driven) == [("alice", "bob")]
    (handoff,) = driven.handoffs
    assert (handoff.reason, handoff.context) == ("above the limit", {"order_id": "O-1", "amount": 750})
    assert handoff.completed
    assert handoff.step == driven.model_calls[0].number
    assert driven.output == "bob is done"


def test_calls_after_a_handoff_belong_to_its_target() -> None:
    driven = drive(pair(("transfer_to_bob", {"order_id": "O-1", "reason": "r"})))
    assert [(call.name, call.agent) for call in driven.calls] == [("look", "bob")]
    assert [call.agent for call in driven.model_calls] == ["alice", "bob", "bob"]


def test_a_tool_of_another_name_that_hands_over_is_a_handoff() -> None:
    driven = drive(pair(("escalate", {"case": "7"})))
    assert routes(driven) == [("alice", "bob")]
    assert driven.handoffs[0].context == {"case": "7"}
    assert [call.name for call in driven.calls] == ["look"]
    assert [event.number for event in driven.trace.events] == list(range(1, len(driven.trace.events) + 1))


def test_a_handoff_beside_a_tool_call_leaves_both() -> None:
    driven = drive(pair(("look", {"what": "first"}), ("transfer_to_bob", {"order_id": "O-1", "reason": "r"})))
    assert routes(driven) == [("alice", "bob")]
    assert [call.arguments["what"] for call in driven.calls] == ["first", "it"]


def test_a_handoff_to_nobody_is_not_completed() -> None:
    driven = drive(pair(("transfer_to_carol", {"reason": "r"})))
    assert routes(driven) == [("alice", "carol")]
    assert not driven.handoffs[0].completed
    assert driven.calls == []
    assert driven.output == "alice is done"


def test_a_handoff_that_was_denied_is_not_completed() -> None:
    guard = HumanInTheLoopMiddleware(interrupt_on={"transfer_to_bob": True})
    driven = drive(
        pair(("transfer_to_bob", {"order_id": "O-1", "reason": "r"}), middleware=[guard]),
        approvals=[{"action": "transfer_to_bob", "decision": "denied"}],
    )
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("bob", False)]
    assert driven.calls == []


def test_an_edited_handoff_carries_what_was_approved() -> None:
    guard = HumanInTheLoopMiddleware(interrupt_on={"transfer_to_bob": True})
    driven = drive(
        pair(("transfer_to_bob", {"order_id": "O-1", "reason": "r"}), middleware=[guard]),
        approvals=[
            {"action": "transfer_to_bob", "decision": "edited", "arguments": {"order_id": "O-2", "reason": "r"}}
        ],
    )
    assert [handoff.context for handoff in driven.handoffs] == [{"order_id": "O-2"}]


def test_a_swarm_keeps_its_active_agent_over_turns() -> None:
    alice = create_agent(
        ScriptedChatModel(script=[say(calls=[("transfer_to_bob", {})])]),
        [create_handoff_tool(agent_name="bob")],
        name="alice",
    )
    bob = create_agent(ScriptedChatModel(script=[say("I am bob"), say("still bob")]), [], name="bob")
    driven = drive(create_swarm([alice, bob], default_active_agent="alice").compile(), "hello", "and now?")
    assert routes(driven) == [("alice", "bob")]
    assert driven.handoffs[0].context is None, "the tool takes no arguments, so none could be seen"
    assert driven.trace.outputs == ("I am bob", "still bob")
    assert [(call.agent, call.turn) for call in driven.model_calls] == [("alice", 1), ("bob", 1), ("bob", 2)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.filterwarnings("ignore:create_react_agent")
def test_a_supervisor_s_handoff_is_seen_and_its_synthetic_return_is_no_call() -> None:
    from langgraph_supervisor import create_supervisor

    maths = create_agent(ScriptedChatModel(script=[say("3")]), [], name="maths")
    model = ScriptedChatModel(script=[say(calls=[("transfer_to_maths", {})]), say("The answer is 3.")])
    driven = drive(create_supervisor([maths], model=model).compile(name="office"))
    assert routes(driven) == [("supervisor", "maths")]
    assert driven.calls == []
    assert driven.output == "The answer is 3."
    assert [call.agent for call in driven.model_calls] == ["supervisor", "maths", "supervisor"]


def test_a_single_unnamed_agent_goes_by_the_fixture_s_identity() -> None:
    graph = create_agent(ScriptedChatModel(script=[say(calls=[("look", {"what": "x"})]), say("ok")]), [look])
    driven = drive(graph, identity={"agent": "clerk"})
    assert driven.call.agent == "clerk"
    assert driven.call.state is CallState.EXECUTED


# --- destinations that are not there ---------------------------------------------------------------------------------


@tool
def transfer_to_boss(order_id: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Hand over to a node beside this tool's own."""
    return Command(goto="boss", update={"messages": [ToolMessage("over to boss", tool_call_id=tool_call_id)]})


@tool
def transfer_to_human(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Leave the graph, for a human goes on."""
    return Command(goto=END, update={"messages": [ToolMessage("a human goes on", tool_call_id=tool_call_id)]})


def alone(*tools: Any, **arguments: Any) -> Any:
    """alice, whom nobody stands beside."""
    script = [say(calls=[(tools[0].name, arguments)]), say(calls=[("look", {"what": "it"})]), say("alice is done")]
    return create_agent(ScriptedChatModel(script=script), [*tools, look], name="alice")


def with_boss(tool_given: Any) -> Any:
    """A graph of a user's own whose tools can go to the node `boss` beside them."""
    graph = StateGraph(MessagesState).add_node("tools", ToolNode([tool_given]))
    model = ScriptedChatModel(script=[say(calls=[(tool_given.name, {"order_id": "7"})])])
    graph.add_node("alice", lambda state: {"messages": [model.invoke(state["messages"])]})
    graph.add_node("boss", lambda state: {"messages": [("ai", "the boss decides")]})
    return graph.add_edge(START, "alice").add_edge("alice", "tools").compile()


def hidden(graph: Any) -> Any:
    """The graph behind a user's function."""

    def agent(question: str) -> str:
        return str(graph.invoke({"messages": [("user", question)]})["messages"][-1].text)

    return agent


@pytest.mark.parametrize("seen", [lambda graph: graph, hidden])
def test_a_command_to_a_node_that_the_graph_has_not_hands_nothing_over(seen: Any) -> None:
    driven = drive(seen(alone(transfer_to_boss, order_id="7")))
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("boss", False)]
    assert [(call.name, call.agent) for call in driven.calls] == [("look", "alice")]
    assert driven.output == "alice is done"


@pytest.mark.parametrize("seen", [lambda graph: graph, hidden])
def test_a_command_to_a_node_beside_the_tools_hands_over(seen: Any) -> None:
    driven = drive(seen(with_boss(transfer_to_boss)))
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("boss", True)]
    assert driven.output == "the boss decides"


@pytest.mark.parametrize("seen", [lambda graph: graph, hidden])
@pytest.mark.parametrize(("goes_to", "completed"), [("bob", True), ("carol", False)])
def test_a_command_to_the_parent_goes_to_the_parent_s_nodes_only(seen: Any, goes_to: str, completed: bool) -> None:
    @tool
    def escalate_to(
        state: Annotated[dict[str, Any], InjectedState], tool_call_id: Annotated[str, InjectedToolCallId]
    ) -> Command[Any]:
        """Hand over."""
        return over_to(goes_to, state, tool_call_id)

    alice = create_agent(ScriptedChatModel(script=[say(calls=[("escalate_to", {})])]), [escalate_to], name="alice")
    graph = StateGraph(MessagesState).add_node("alice", alice, destinations=("bob",))
    graph.add_node("bob", lambda state: {"messages": [("ai", "bob here")]})
    driven = drive(seen(graph.add_edge(START, "alice").compile()))
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [(goes_to, completed)]


def test_a_command_beside_a_subgraph_does_not_reach_the_parent_s_nodes() -> None:
    graph = StateGraph(MessagesState).add_node("alice", alone(transfer_to_boss, order_id="7"))
    graph.add_node("boss", lambda state: {"messages": [("ai", "the boss decides")]})
    driven = drive(graph.add_edge(START, "alice").compile())
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("boss", False)]


def test_leaving_the_graph_hands_over_to_whom_the_tool_names() -> None:
    driven = drive(alone(transfer_to_human))
    assert [(handoff.target, handoff.completed) for handoff in driven.handoffs] == [("human", True)]


def test_a_call_that_never_ran_has_an_error_and_was_told_to_nobody() -> None:
    graph = StateGraph(MessagesState)
    model = ScriptedChatModel(script=[say(calls=[("look", {"what": "x"})])])
    graph.add_node("alice", lambda state: {"messages": [model.invoke(state["messages"])]})
    driven = drive(graph.add_edge(START, "alice").compile())
    assert driven.call.state is CallState.UNKNOWN
    assert (driven.call.error, driven.call.told) == ("asked for, but it never ran", None)
