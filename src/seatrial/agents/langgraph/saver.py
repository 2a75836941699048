"""The checkpointer of one trial: in memory, and at ease with any state."""

from __future__ import annotations

from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

__all__ = ["trial_saver"]

_KEPT = "seatrial.kept"


class _KeepsWhatItCannotWrite(JsonPlusSerializer):
    """A graph that ran without a checkpointer may hold locks or connections; they are kept as they are."""

    def __init__(self) -> None:
        super().__init__(allowed_msgpack_modules=True)  # what it reads it has written itself
        self._kept: list[Any] = []

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        try:
            return super().dumps_typed(obj)
        except (TypeError, ValueError):  # msgpack's error is a TypeError
            self._kept.append(obj)
            return _KEPT, str(len(self._kept) - 1).encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, content = data
        return self._kept[int(content)] if kind == _KEPT else super().loads_typed(data)


def trial_saver() -> InMemorySaver:
    """A fresh saver; a conversation in it is gone with it."""
    return InMemorySaver(serde=_KeepsWhatItCannotWrite())
