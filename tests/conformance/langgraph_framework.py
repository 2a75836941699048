"""The kit's scripts as LangGraph agents, each in the way its users build them."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import InjectedState, ToolNode
from langgraph.types import Command, interrupt
from langgraph_supervisor import create_supervisor
from langgraph_swarm import create_handoff_tool, create_swarm

from conformance.played_chat_model import played
from seatrial.core.trace import Observable
from seatrial.testing.conformance import AgentScript, Script, Tool, Ways


def transfer_to(target: str) -> BaseTool:
    """A hand-off tool as people write it."""

    def transfer(
        reason: str,
        context: dict[str, Any],
        state: Annotated[dict[str, Any], InjectedState],
        tool_call_id: Annotated[str, InjectedToolCallId],
    ) -> Command[Any]:
        note = ToolMessage(f"{target} takes over", tool_call_id=tool_call_id)
        return Command(goto=target, graph=Command.PARENT, update={"messages": [*state["messages"], note]})

    return StructuredTool.from_function(transfer, name=f"transfer_to_{target}", description=f"Hand over to {target}.")


def as_tool(name: str, agent: Any) -> Callable[..., str]:
    """An agent that another one calls."""

    def ask(request: str) -> str:
        """Ask another agent."""
        return agent.invoke({"messages": [("user", request)]})["messages"][-1].text

    ask.__name__ = name
    return ask


def functions(script: Script, agent: AgentScript, build: Callable[[Script, AgentScript], Any]) -> list[Any]:
    others = [as_tool(name, build(script, script.agent(name))) for name in agent.nested]
    return [*(tool.function for tool in agent.tools), *others]


def built_in(script: Script, agent: AgentScript, *handoffs: BaseTool) -> Any:
    """One agent by `create_agent`."""
    guarded = {tool.name: True for tool in agent.tools if tool.needs_approval}
    return create_agent(
        played(script, agent),
        [*functions(script, agent, built_in), *handoffs],
        name=agent.name,
        middleware=[HumanInTheLoopMiddleware(interrupt_on=guarded)] if guarded else [],
    )


def together(agents: Mapping[str, Any], script: Script) -> Any:
    """Agents that hand over to each other, as nodes of one graph."""
    first = script.agents[0]
    graph = StateGraph(MessagesState)
    for agent in script.agents:
        graph.add_node(agent.name, agents[agent.name], destinations=agent.handoffs)
    return graph.add_edge(START, first.name).compile()


def is_alone(script: Script) -> bool:
    return not script.agents[0].handoffs


class CreateAgent:
    """`create_agent`: middleware asks for approval, own tools hand over."""

    kind = "langgraph"
    name = "langgraph (create_agent)"
    own_call_ids = False
    absent: Mapping[str, str] = {}
    ways = Ways(raising_tool="ends", malformed_arguments="answers")

    def build(self, script: Script) -> Any:
        if is_alone(script):
            return built_in(script, script.agents[0])
        agents = {one.name: built_in(script, one, *map(transfer_to, one.handoffs)) for one in script.agents}
        return together(agents, script)


def by_hand(script: Script, agent: AgentScript) -> Any:
    """One agent as a graph of nodes: model, review, tools."""
    tools = [*functions(script, agent, by_hand), *map(transfer_to, agent.handoffs)]
    model = played(script, agent).bind_tools(tools)
    guarded = {tool.name for tool in agent.tools if tool.needs_approval}
    waits = any(inspect.iscoroutinefunction(tool) for tool in tools)

    def think(state: MessagesState) -> Any:
        return {"messages": [model.invoke(state["messages"])]}

    async def think_waiting(state: MessagesState) -> Any:
        return {"messages": [await model.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("think", think_waiting if waits else think).add_node("review", reviewing(guarded))
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True))
    graph.add_edge(START, "think").add_conditional_edges("think", after_thinking).add_edge("tools", "think")
    return graph.compile(name=agent.name)


def after_thinking(state: MessagesState) -> str:
    return "review" if state["messages"][-1].tool_calls else END


def reviewing(guarded: set[str]) -> Callable[[MessagesState], Command[Any]]:
    def review(state: MessagesState) -> Command[Any]:
        said = state["messages"][-1]
        calls, refused = [], []
        for call in said.tool_calls:
            answer = ask(call) if call["name"] in guarded else {"decision": "granted", "arguments": call["args"]}
            calls.append({**call, "args": answer["arguments"]})
            if answer["decision"] == "denied":
                refused.append(ToolMessage("not allowed", tool_call_id=call["id"], status="error"))
        reviewed = AIMessage(said.content, id=said.id, tool_calls=calls)
        return Command(goto="think" if refused else "tools", update={"messages": [reviewed, *refused]})

    return review


def ask(call: Mapping[str, Any]) -> Any:
    return interrupt({"action": call["name"], "arguments": call["args"]})


class OwnGraph:
    """A `StateGraph` written by hand: its review node asks for approval, its ToolNode tells the model of errors."""

    kind = "langgraph"
    name = "langgraph (StateGraph)"
    own_call_ids = False
    absent: Mapping[str, str] = {}
    ways = Ways(malformed_arguments="answers")

    def build(self, script: Script) -> Any:
        if is_alone(script):
            return by_hand(script, script.agents[0])
        return together({one.name: by_hand(script, one) for one in script.agents}, script)


class AskingTools(OwnGraph):
    """The same with tools whose bodies ask for approval by `interrupt`."""

    name = "langgraph (interrupt in tools)"

    def build(self, script: Script) -> Any:
        return super().build(with_asking_tools(script))


def with_asking_tools(script: Script) -> Script:
    asking = [replace(agent, tools=tuple(map(asking_first, agent.tools))) for agent in script.agents]
    return replace(script, agents=tuple(asking))


def asking_first(tool: Tool) -> Tool:
    if not tool.needs_approval:
        return tool

    @functools.wraps(tool.function)
    def asking(**arguments: Any) -> Any:
        answer = interrupt({"action": tool.name, "arguments": arguments})
        if answer["decision"] == "denied":
            raise PermissionError("not allowed")
        return tool.function(**answer["arguments"])

    return Tool(asking)


class Swarm:
    """langgraph-swarm, with its own hand-off tools, which take no arguments."""

    kind = "langgraph"
    name = "langgraph (swarm)"
    own_call_ids = False
    absent: Mapping[str, str] = {}
    ways = Ways(raising_tool="ends", malformed_arguments="answers", handoff_carries=frozenset())
    observes = frozenset({Observable.OUTCOME})
    """The active agent is part of its final state."""

    def build(self, script: Script) -> Any:
        first, script = script.agents[0], without_words(script)
        members = [one for one in script.agents if one.name not in first.nested]
        agents = [built_in(script, one, *map(own_handoff, one.handoffs)) for one in members]
        return create_swarm(agents, default_active_agent=first.name).compile()


def own_handoff(target: str) -> BaseTool:
    return create_handoff_tool(agent_name=target)


def without_words(script: Script) -> Script:
    """The same with hand-offs that say nothing, as tools without arguments are called."""
    bare = [
        replace(agent, lines=tuple(replace(line, reason=None, context={}) for line in agent.lines))
        for agent in script.agents
    ]
    return replace(script, agents=tuple(bare))


class Supervisor:
    """langgraph-supervisor: who was handed over to answers, and the supervisor goes on. It has no middleware that asks
    for approval, so its tools do."""

    kind = "langgraph"
    name = "langgraph (supervisor)"
    own_call_ids = False
    ways = Ways(raising_tool="ends", malformed_arguments="answers", handoff_carries=frozenset(), handoff_returns=True)
    absent: Mapping[str, str] = {"approval_denied": "a supervisor's tool that raises ends the run"}

    def build(self, script: Script) -> Any:
        script = with_asking_tools(without_words(script))
        first, *others = script.agents
        helpers = [one for one in others if one.name in first.handoffs] or [AgentScript("clerk", ())]
        with warnings.catch_warnings():  # it uses what LangGraph has deprecated
            warnings.simplefilter("ignore")
            office = create_supervisor(
                [built_in(replace(script, agents=(*script.agents, one)), one) for one in helpers],
                model=played(script, first),
                supervisor_name=first.name,
                tools=functions(script, first, built_in) or None,
            )
        return office.compile()


FRAMEWORKS = (CreateAgent(), OwnGraph(), AskingTools(), Swarm(), Supervisor())
