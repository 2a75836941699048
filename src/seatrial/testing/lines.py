"""The lines of a scripted model, played one a call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

__all__ = ["Lines", "ScriptExhausted"]

T = TypeVar("T")


class ScriptExhausted(AssertionError):
    """The model was called more often than its script has lines."""


class Lines(Generic[T]):
    """A script: a sequence played once over all calls, or one function that plays every call."""

    def __init__(self, script: Sequence[T | BaseException | Callable[[Any], T]] | Callable[[Any], T]) -> None:
        self._script = script
        self._calls = 0
        self._lock = threading.Lock()

    def play(self, messages: Any) -> T:
        """The reply to these messages. Raises what the line is when that is an exception, and ScriptExhausted beyond
        the last line."""
        line = self._script if callable(self._script) else self._next(self._script)
        if isinstance(line, BaseException):
            raise line
        return line(messages) if callable(line) else line

    def _next(self, script: Sequence[T | BaseException | Callable[[Any], T]]) -> T | BaseException | Callable[[Any], T]:
        with self._lock:
            position = self._calls
            self._calls += 1
        if position >= len(script):
            raise ScriptExhausted(f"the script has {len(script)} lines, and this is call {position + 1}")
        return script[position]
