"""What an agent prints belongs to its trial, not to the report on standard output.

What an agent does to `sys.stdout` and `sys.stderr` ends there too: closing them closes nothing that others print to,
and when the run is over they are what they were before it.
"""

from __future__ import annotations

import io
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from seatrial.environment.trial import running_trial

__all__ = ["captured_output", "printing_to_stderr"]


class _Fence:
    """In front of a stream that others print to as well: it cannot be closed or taken apart here."""

    def __init__(self, original: Any) -> None:
        self._original = original

    def write(self, given: Any) -> int:
        return int(self._original.write(given))

    def writelines(self, parts: Iterable[Any]) -> None:
        for part in parts:
            self.write(part)

    def flush(self) -> None:
        self._original.flush()

    def close(self) -> None:
        self.flush()

    def detach(self) -> Any:
        raise io.UnsupportedOperation("others print to this stream, too: it cannot be taken apart")

    @property
    def buffer(self) -> Any:
        """People wrap it, to print in another encoding, and their wrapper closes it."""
        return type(self)(self._original.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)


class _Router(_Fence):
    """What is written inside a trial goes to that trial's log."""

    ended = False
    """Whether its run is over."""

    def write(self, given: Any) -> int:
        trial = running_trial()
        if trial is None:
            return super().write(given)
        trial.log.write(given if isinstance(given, str) else str(given, "utf-8", "replace"))
        return len(given)

    def flush(self) -> None:
        if running_trial() is None:
            super().flush()

    def isatty(self) -> bool:
        return running_trial() is None and bool(self._original.isatty())


_OUTLIVING: deque[_Router] = deque(maxlen=20)
"""Python's `print` holds on to no stream: one that an abandoned thread still prints to must not go away."""


@contextmanager
def printing_to_stderr() -> Iterator[None]:
    """While this lasts, for code that is only loaded, text printed goes to standard error. Then both streams are what
    they were."""
    stdout, stderr = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = cast(TextIO, _Fence(stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr


@contextmanager
def captured_output() -> Iterator[None]:
    """While this lasts, text printed inside a trial goes to that trial's log; all else goes where it went.

    Afterwards both streams are what they were, whatever has been put in their place, unless another run captures what
    is printed now.
    """
    routers = _Router(sys.stdout), _Router(sys.stderr)
    _OUTLIVING.extend(routers)
    sys.stdout, sys.stderr = cast(TextIO, routers[0]), cast(TextIO, routers[1])
    try:
        yield
    finally:
        for name, router in zip(("stdout", "stderr"), routers, strict=True):
            router.ended = True
            now = getattr(sys, name)
            if now is router or not isinstance(now, _Router):
                setattr(sys, name, _before(router))


def _before(router: _Router) -> Any:
    """The stream that was there before this run, and before every run that has ended since."""
    stream: Any = router
    while isinstance(stream, _Router) and stream.ended:
        stream = stream._original
    return stream
