"""Waiting for each other: workers for their next trial, judges for a free place.

Nothing here belongs to one event loop: a run may go on in a second one when an agent blocks the first.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from types import TracebackType

from seatrial.core.ledger import Counted
from seatrial.core.ports import PlannedCase, TrialSource

__all__ = ["Places", "Turns"]


class _Line:
    """Tasks that wait, first come first served. Whoever owns the line guards it with a lock."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()

    def join(self) -> asyncio.Future[None]:
        """Something to wait on, in the running loop."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        return turn

    def leave(self, turn: asyncio.Future[None]) -> None:
        """Wait no more, from any thread."""
        with contextlib.suppress(ValueError):
            self._waiting.remove(turn)

    def wake(self) -> bool:
        """Wake the first who still waits; False when nobody does."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                with contextlib.suppress(RuntimeError):  # its loop has closed
                    turn.get_loop().call_soon_threadsafe(_wake, turn)
                    return True
        return False


def _wake(turn: asyncio.Future[None]) -> None:
    if not turn.done():
        turn.set_result(None)


class Turns:
    """A TrialSource for many workers: whoever finds no trial now waits until one has ended. Whoever owns it guards it
    with a lock."""

    def __init__(self, source: TrialSource) -> None:
        self._source = source
        self._in_flight = 0
        self._line = _Line()

    def ask(self) -> tuple[PlannedCase, int] | asyncio.Future[None] | None:
        """The next trial; while there is none now, what to wait for (in the running loop) before asking again. None
        when no trial is in flight and the source has none: then there will be none."""
        trial = self._source.next()
        if trial is not None:
            self._in_flight += 1
            self._line.wake()  # where this one came from there may be more
            return trial
        if self._in_flight:
            return self._line.join()
        while self._line.wake():
            pass
        return None

    def leave(self, turn: asyncio.Future[None]) -> None:
        """Whoever waited for this is given up: nobody is woken in vain."""
        self._line.leave(turn)

    def finished(self, record: Counted) -> None:
        """A trial ended; someone may go on."""
        self._in_flight -= 1
        self._source.finished(record)
        self._line.wake()


class Places:
    """At most so many at once: an async context manager around what is limited."""

    def __init__(self, places: int) -> None:
        self.places = places
        self._free = places
        self._line = _Line()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Places], tuple[int]]:
        """In another process the limit holds there, apart from here."""
        return Places, (self.places,)

    async def __aenter__(self) -> None:
        while True:
            with self._lock:
                if self._free:
                    self._free -= 1
                    return
                turn = self._line.join()
            try:
                await turn
            except asyncio.CancelledError:
                with self._lock:
                    self._line.wake()  # what this one was woken for goes to the next
                raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            self._free += 1
            self._line.wake()
