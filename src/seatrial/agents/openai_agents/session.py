"""The conversation of one trial, in memory."""

from __future__ import annotations

import copy
from typing import Any

from agents.memory import SessionABC

__all__ = ["TrialSession"]


class TrialSession(SessionABC):
    """What was said so far; gone with the trial."""

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id
        self._items: list[Any] = []

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """The latest items, in order; all of them without a limit."""
        start = 0 if limit is None else max(len(self._items) - limit, 0)
        return copy.deepcopy(self._items[start:])

    async def add_items(self, items: list[Any]) -> None:
        """Add to the end."""
        self._items.extend(copy.deepcopy(items))

    async def pop_item(self) -> Any:
        """Take the last one away; None when there is none."""
        return self._items.pop() if self._items else None

    async def clear_session(self) -> None:
        """Forget everything."""
        self._items.clear()
