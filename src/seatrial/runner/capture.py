"""What an agent prints belongs to its trial, not to the report on standard output."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from seatrial.environment.trial import running_trial

__all__ = ["captured_output"]


class _Router:
    """A text stream in all but class: what is not about writing goes to the stream it stands before."""

    def __init__(self, original: TextIO) -> None:
        self._original = original

    def write(self, text: str) -> int:
        trial = running_trial()
        if trial is None:
            return self._original.write(text)
        trial.log.write(text)
        return len(text)

    def writelines(self, parts: Iterable[str]) -> None:
        for text in parts:
            self.write(text)

    def flush(self) -> None:
        if running_trial() is None:
            self._original.flush()

    def isatty(self) -> bool:
        return running_trial() is None and self._original.isatty()

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
