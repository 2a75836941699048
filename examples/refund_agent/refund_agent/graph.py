"""The graph: refund_agent serves the customer, refund_supervisor decides what is above its limit."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, wrap_tool_call
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.graph import START, MessagesState, StateGraph

from refund_agent.model import PolicyModel
from refund_agent.prompts import REFUND_AGENT, REFUND_SUPERVISOR
from refund_agent.tools import customer_tools, handoff_to_agent, handoff_to_supervisor, supervisor_tools

__all__ = ["Design", "build", "good", "language_model"]


@dataclass(frozen=True)
class Design:
    """What one build differs in from another."""

    agent_prompt: str = REFUND_AGENT
    supervisor_prompt: str = REFUND_SUPERVISOR
    quirks: frozenset[str] = frozenset()
    """Habits of the scripted model; a live one has its own."""
    supervisor_sends_back: bool = False
    """Whether the supervisor has a tool to hand a case back."""


@wrap_tool_call
def _errors_as_messages(request: Any, handler: Any) -> Any:
    """A tool that fails is something the model is told, not the end of the conversation."""
    try:
        return handler(request)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001  whatever a tool raises
        call, told = request.tool_call, f"{type(error).__name__}: {error}"
        return ToolMessage(told, tool_call_id=call["id"], name=call["name"], status="error")


def language_model(quirks: frozenset[str] = frozenset()) -> BaseChatModel:
    """The model named in the environment variable MODEL (`openai:gpt-4o-mini`), else the scripted one.

    MODEL goes to LangChain's `init_chat_model`; its provider's own variables (OPENAI_API_KEY, OPENAI_BASE_URL ...)
    say where it is. Raises ImportError, naming what to install, when the provider's package is missing.
    """
    name = os.environ.get("MODEL")
    if not name:
        return PolicyModel(quirks=quirks)
    from langchain.chat_models import init_chat_model

    provider = name.partition(":")[0]
    try:
        model: BaseChatModel = init_chat_model(name)
    except ImportError as error:
        raise ImportError(f"MODEL={name} needs the package langchain-{provider}: {error}") from error
    return model


def build(design: Design, *, database: os.PathLike[str], user: str) -> Any:
    """The graph for one customer's conversation, over the database at that path."""
    model = language_model(design.quirks)
    agent = create_agent(
        model,
        [*customer_tools(database), handoff_to_supervisor],
        system_prompt=design.agent_prompt.format(user=user),
        middleware=[_errors_as_messages],
        name="refund_agent",
    )
    supervisor = create_agent(
        model,
        [*supervisor_tools(database), *([handoff_to_agent] if design.supervisor_sends_back else [])],
        system_prompt=design.supervisor_prompt.format(user=user),
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"process_refund": True}), _errors_as_messages],
        name="refund_supervisor",
    )
    graph = StateGraph(MessagesState)
    graph.add_node("refund_agent", agent, destinations=("refund_supervisor",))
    graph.add_node("refund_supervisor", supervisor, destinations=("refund_agent",))
    graph.add_edge(START, "refund_agent")
    return graph.compile(name="refund_desk")


def good(environment: Any, config: Mapping[str, Any]) -> Any:
    """The build that ships. Seatrial calls this once a trial with the trial's own surroundings."""
    return build(Design(), database=environment.database, user=environment.identity["user"])
