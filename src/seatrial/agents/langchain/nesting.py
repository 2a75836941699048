"""Which agent a run belongs to.

That is the name given to `create_agent`; that of the graph which a tool's body runs, an agent that another one calls as
a tool; else the subgraph it runs in where that is a node of the graph; else whoever has the conversation. LangChain
lets a graph that a tool runs inherit what it says of the caller, the caller's name among it. So the runs themselves are
followed: a chain that begins in a tool's run, and has nodes of a graph below it, is an agent of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler

from seatrial.environment.trial import TrialEnvironment

__all__ = ["WhoseRuns"]

_UNNAMED = "LangGraph"
_NODE = "graph:step:"
"""How the tag of a graph's node begins."""


@dataclass(frozen=True)
class _Called:
    """A chain that a tool's body runs."""

    name: str
    caller: Any
    """What its metadata say of the agent, taken over from whoever called the tool."""


class _Nesting:
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


class WhoseRuns(BaseCallbackHandler):
    """A callback handler that knows whose runs it is told of."""

    _running: Mapping[UUID, Any]
    """Tool calls as they run."""

    def __init__(self, trial: TrialEnvironment, agents: Iterable[str]) -> None:
        """`agents` are nodes that are agents of their own."""
        self.trial = trial
        self._agents = frozenset(agents)
        self._nesting = _Nesting()

    def on_chain_start(
        self,
        serialized: dict[str, Any] | None,
        inputs: Any,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        if parent_run_id in self._running:
            self._nesting.begins_in_tool(run_id, kwargs.get("name"), metadata or {})
        else:
            self._nesting.begins(run_id, parent_run_id, tags or ())

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        self._nesting.ends(run_id)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        self._nesting.ends(run_id)

    def _agent(self, metadata: Mapping[str, Any], parent: UUID | None) -> str | None:
        nested = self._nesting.agent(parent, metadata)
        if nested is not None:
            return nested
        named = metadata.get("lc_agent_name")
        if named and named != "LangGraph":
            return str(named)
        node = str(metadata.get("langgraph_checkpoint_ns") or "").partition(":")[0]
        if node in self._agents:
            return node
        acting = self.trial.recorder.active_agent or self.trial.identity.get("agent")
        return None if acting is None else str(acting)
