"""What a compiled graph is made of: the graphs within it, and their tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

__all__ = ["graphs_in", "tools_of"]


def graphs_in(graph: Any) -> Iterator[Any]:
    """The graph and every graph within it, each once."""
    waiting, seen = [graph], set[int]()
    while waiting:
        current = waiting.pop()
        if id(current) not in seen:
            seen.add(id(current))
            yield current
            waiting.extend(
                sub for node in current.nodes.values() for sub in node.subgraphs or () if isinstance(sub, Pregel)
            )


def tool_nodes(graph: Any) -> Iterator[ToolNode]:
    """Every ToolNode of a graph and of the graphs within it."""
    for one in graphs_in(graph):
        for node in one.nodes.values():
            for runnable in (node.bound, *getattr(node.bound, "steps", ())):
                if isinstance(runnable, ToolNode):
                    yield runnable


def tools_of(graph: Any) -> dict[str, BaseTool]:
    """Tools by name."""
    return {name: tool for node in tool_nodes(graph) for name, tool in node.tools_by_name.items()}
