"""Rows of a report that are made as they are looked at: a report of many trials need not fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar, overload

__all__ = ["Lazily", "rows_of", "whole"]

T = TypeVar("T")


class Lazily(Sequence[dict[str, Any]]):
    """`make(item)` of each item, made anew each time it is looked at; rows may hold such rows themselves."""

    def __init__(self, items: Sequence[T], make: Callable[[T], dict[str, Any]]) -> None:
        self._items = items
        self._make = make

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return map(self._make, self._items)

    @overload
    def __getitem__(self, number: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, number: slice) -> list[dict[str, Any]]: ...

    def __getitem__(self, number: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(number, slice):
            return [self._make(item) for item in self._items[number]]
        return self._make(self._items[number])


_FEW = 8
"""Rows within a row that are made along with it."""


def rows_of(items: Sequence[T], make: Callable[[T], dict[str, Any]]) -> Sequence[dict[str, Any]]:
    """`make(item)` of each item: at once where they are few, else as they are looked at."""
    return Lazily(items, make) if len(items) > _FEW else [make(item) for item in items]


def whole(rows: Mapping[str, Any]) -> dict[str, Any]:
    """The same data with all its rows made."""
    return {name: _whole(value) for name, value in rows.items()}


def _whole(value: Any) -> Any:
    if isinstance(value, Lazily):
        return [whole(row) for row in value]
    return whole(value) if isinstance(value, dict) else value
