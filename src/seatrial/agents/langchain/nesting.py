"""Graphs that a tool's body runs: an agent that another one calls as a tool, by the name it was compiled with.

LangChain lets such a graph inherit what it says of its caller, the caller's name among it. So the runs themselves are
followed: a chain that begins in a tool's run, and has nodes of a graph below it, is an agent of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

__all__ = ["Nesting"]

_UNNAMED = "LangGraph"
_NODE = "graph:step:"
"""How the tag of a graph's node begins."""


@dataclass(frozen=True)
class _Called:
    """A chain that a tool's body runs."""

    name: str
    caller: Any
    """What its metadata say of the agent, taken over from whoever called the tool."""


class Nesting:
    """Whose run it is, of those that happen in tools' bodies."""

    def __init__(self) -> None:
        self._called: dict[UUID, _Called] = {}
        self._within: dict[UUID, _Called] = {}

    def begins_in_tool(self, run_id: UUID, name: Any, metadata: Mapping[str, Any]) -> None:
        """A chain begins in a tool's own run."""
        if name and name != _UNNAMED:
            self._called[run_id] = _Called(str(name), metadata.get("lc_agent_name"))

    def begins(self, run_id: UUID, parent: UUID | None, tags: Sequence[str]) -> None:
        """A chain begins anywhere else."""
        if parent is None or not self._called:
            return
        if parent in self._within:
            self._within[run_id] = self._within[parent]
        elif parent in self._called and any(tag.startswith(_NODE) for tag in tags):
            self._within[run_id] = self._called[parent]

    def ends(self, run_id: UUID) -> None:
        """A chain is over."""
        self._called.pop(run_id, None)
        self._within.pop(run_id, None)

    def agent(self, parent: UUID | None, metadata: Mapping[str, Any]) -> str | None:
        """The agent that a model or tool run below `parent` belongs to; None where that is no nested one, or one that
        gives its own name."""
        called = None if parent is None else self._within.get(parent)
        if called is None or metadata.get("lc_agent_name") != called.caller:
            return None
        return called.name
