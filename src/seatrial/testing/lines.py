"""The lines of a scripted model, played one a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

__all__ = ["Lines", "ScriptExhausted"]

T = TypeVar("T")
Line: TypeAlias = T | BaseException | Callable[[Any], T]


class ScriptExhausted(AssertionError):
    """The model was called more often than its script has lines."""


class Lines(Generic[T]):
    """A script: a sequence played once over all calls, or one function that plays every call."""

    def __init__(self, script: Sequence[Line[T]] | Callable[[Any], T]) -> None:
        self._script = script
        self._seen: list[tuple[Any, ...]] = []
        self._lock = threading.Lock()

    @property
    def seen(self) -> tuple[tuple[Any, ...], ...]:
        """What every call so far was given, in order."""
        return tuple(self._seen)

    def play(self, messages: Sequence[Any]) -> T:
        """The reply to these messages. Raises what the line is when that is an exception, and ScriptExhausted beyond
        the last line."""
        given = list(messages)
        with self._lock:
            self._seen.append(tuple(given))
            position = len(self._seen) - 1
        line = self._script if callable(self._script) else self._at(position, self._script)
        if isinstance(line, BaseException):
            raise line
        return line(given) if callable(line) else line

    def _at(self, position: int, script: Sequence[Line[T]]) -> Line[T]:
        if position >= len(script):
            raise ScriptExhausted(f"the script has {len(script)} lines, and this is call {position + 1}")
        return script[position]
