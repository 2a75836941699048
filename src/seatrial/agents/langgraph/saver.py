"""The checkpointer of one trial: in memory, and at ease with any state."""

from __future__ import annotations

import pickle
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.base import SerializerProtocol

__all__ = ["trial_saver"]

_KEPT = "kept"
_COPIED = "copied"


class _CopiesOrKeeps(SerializerProtocol):
    """Copies a value where that is possible, else keeps it as it is.

    A graph that ships without a checkpointer may hold locks, connections and classes of its own in its state;
    LangGraph's own serializer refuses the first and warns of the others.
    """

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return _COPIED, pickle.dumps(obj)
        except (pickle.PicklingError, TypeError, AttributeError, ValueError, RecursionError):
            self._kept.append(obj)
            return _KEPT, str(len(self._kept) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data
        return self._kept[int(content)] if kind == _KEPT else pickle.loads(content)  # noqa: S301  our own copy


def trial_saver() -> InMemorySaver:
    """A fresh saver; a conversation in it is gone with it."""
    return InMemorySaver(serde=_CopiesOrKeeps())
