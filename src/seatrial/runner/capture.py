"""What an agent prints belongs to its trial, not to the report on standard output."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any, TextIO, cast

from seatrial.environment.within import Within

__all__ = ["Log", "captured_output"]

KEPT = 64 * 1024
"""Characters of a trial's log that are kept."""

_current: ContextVar[Log | None] = ContextVar("seatrial_log", default=None)


class Log:
    """What one trial printed, up to a limit."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._kept = 0
        self._dropped = 0

    def write(self, text: str) -> None:
        room = max(KEPT - self._kept, 0)
        if room:
            self._parts.append(text[:room])
            self._kept += min(len(text), room)
        self._dropped += max(len(text) - room, 0)

    @property
    def text(self) -> str:
        """The kept text, with a note on how much was dropped."""
        note = f"\n... {self._dropped} more characters were printed" if self._dropped else ""
        return "".join(self._parts) + note

    def active(self) -> AbstractContextManager[Log]:
        """What this task (and the threads it starts with its context) prints goes here."""
        return Within(_current, self)


class _Router:
    """A text stream in all but class: what is not about writing goes to the stream it stands before."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        log = _current.get()
        if log is None:
            return self._original.write(text)
        log.write(text)
        return len(text)

    def writelines(self, parts: Iterable[str]) -> None:
        for text in parts:
            self.write(text)

    def flush(self) -> None:
        if _current.get() is None:
            self._original.flush()

    def isatty(self) -> bool:
        return _current.get() is None and self._original.isatty()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


_OUTLIVING: deque[_Router] = deque(maxlen=20)
"""Python's `print` holds on to no stream: one that an abandoned thread still prints to must not go away."""


@contextmanager
def captured_output() -> Iterator[None]:
    """While this lasts, text printed inside a trial goes to that trial's log; all else goes where it went."""
    stdout, stderr = sys.stdout, sys.stderr
    routers = _Router(stdout), _Router(stderr)
    _OUTLIVING.extend(routers)
    sys.stdout, sys.stderr = cast(TextIO, routers[0]), cast(TextIO, routers[1])
    try:
        yield
    finally:
        if sys.stdout is routers[0]:  # type: ignore[comparison-overlap]  # cast above
            sys.stdout = stdout
        if sys.stderr is routers[1]:  # type: ignore[comparison-overlap]  # cast above
            sys.stderr = stderr
