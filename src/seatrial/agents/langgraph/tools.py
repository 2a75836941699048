"""What a compiled graph is made of: the graphs within it, their nodes and their tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

__all__ = ["graphs_in", "nodes_at", "tools_of"]

_Nodes = frozenset[str]


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


def nodes_at(graph: Any, namespace: str, *, parent: bool) -> _Nodes | None:
    """The nodes of the graph within `graph` in which a run of this checkpoint namespace happens, or those of its
    parent (none for the outermost). None where that graph cannot be known: a node's function runs it."""
    around = [_Nodes(), frozenset(graph.nodes)]
    for name in [part.partition(":")[0] for part in namespace.split("|") if ":" in part][:-1]:
        node = graph.nodes.get(name)
        within = [sub for sub in (node.subgraphs or () if node else ()) if isinstance(sub, Pregel)]
        if len(within) != 1:
            return None
        graph = within[0]
        around.append(frozenset(graph.nodes))
    return around[-2 if parent else -1]
