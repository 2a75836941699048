"""A context variable that has a value for a while."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Generic, TypeVar

__all__ = ["Within"]

T = TypeVar("T")


class Within(Generic[T]):
    """While this lasts, the variable has this value here, and in tasks and threads that take this context."""

    __slots__ = ("_outer", "_value", "_variable")

    def __init__(self, variable: ContextVar[Any], value: T) -> None:
        self._variable = variable
        self._value = value

    def __enter__(self) -> T:
        self._outer = self._variable.get()
        self._variable.set(self._value)
        return self._value

    def __exit__(self, *_: object) -> None:
        self._variable.set(self._outer)
