"""The graph: a model, its tools, and the way back from them."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import SystemMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from support_graph.model import SupportModel
from support_graph.tools import TOOLS

__all__ = ["build", "good", "ignores_the_added_item", "language_model", "looks_up_everything", "mental_arithmetic"]

CALCULATOR = "Use the calculator for every calculation."
BASKET = "Judge a basket as it will be, with what the customer is about to add."
SEARCH_FIRST = "Search the knowledge base before you answer anything."
PROMPT = "You are the support of a small shop. You help with arithmetic, shipping and orders. Answer in one sentence."


def language_model() -> BaseChatModel:
    """The model named in the environment variable MODEL (`openai:gpt-4o-mini`), else the scripted one."""
    name = os.environ.get("MODEL")
    if not name:
        return SupportModel()
    from langchain.chat_models import init_chat_model

    model: BaseChatModel = init_chat_model(name)
    return model


def build(*rules: str) -> Any:
    """The compiled graph, with these sentences in its prompt."""
    model = language_model().bind_tools(TOOLS)
    prompt = SystemMessage("\n".join([PROMPT, *rules]))

    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke([prompt, *state["messages"]])]}

    graph = StateGraph(MessagesState)
    graph.add_node("support", answer)
    graph.add_node("tools", ToolNode(TOOLS))
    graph.add_edge(START, "support")
    graph.add_conditional_edges("support", tools_condition)
    graph.add_edge("tools", "support")
    return graph.compile(name="support")


def good() -> Any:
    """The build that ships."""
    return build(CALCULATOR, BASKET)


def mental_arithmetic() -> Any:
    """Nobody asks for the calculator."""
    return build(BASKET)


def ignores_the_added_item() -> Any:
    """Nobody says which basket is meant."""
    return build(CALCULATOR)


def looks_up_everything() -> Any:
    """Searches where there is nothing to find."""
    return build(CALCULATOR, BASKET, SEARCH_FIRST)
