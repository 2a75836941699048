"""Whether a hand-off arrives: LangGraph ignores a command that goes to a node which does not exist.

Where the graph is known, its nodes tell at once. Behind a user's function only what happens then tells: a hand-off is
completed when its node begins to run.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Protocol

from seatrial.agents.langchain.reading import destination_of, goes_to_parent
from seatrial.environment.recorder import Recorder

__all__ = ["Arrivals", "NodesAt"]


class NodesAt(Protocol):
    """The nodes that a command of a run in this checkpoint namespace can go to; None where nobody knows."""

    def __call__(self, namespace: str, *, parent: bool) -> frozenset[str] | None: ...


class Arrivals:
    """The hand-offs of one trial that go to a node."""

    def __init__(self, recorder: Recorder, nodes_at: NodesAt | None) -> None:
        self._recorder = recorder
        self._nodes_at = nodes_at
        self._awaited: dict[str, list[int]] = defaultdict(list)

    def foreseen(self, command: Any, namespace: str) -> bool | None:
        """Whether there is a node where a tool's command goes; None where only the future tells. A command that goes
        nowhere says nothing against it."""
        node = destination_of(command)
        if node is None:
            return True
        if self._nodes_at is None:
            return None
        nodes = self._nodes_at(namespace, parent=goes_to_parent(command))
        return None if nodes is None else node in nodes

    def await_node(self, node: str, number: int) -> None:
        """Hand-off `number` goes to this node, if there is one."""
        self._awaited[node].append(number)

    def begins(self, node: Any) -> None:
        """A node begins to run."""
        for number in self._awaited.pop(node, ()) if self._awaited else ():
            self._recorder.settle_handoff(number, completed=True)
