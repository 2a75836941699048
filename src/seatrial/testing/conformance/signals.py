"""Waiting for each other, from any thread and any event loop: what makes a situation the same every time.

Nobody sleeps. A limit is a safety net only: what would hang goes on, and the trace shows that it did.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress

__all__ = ["LIMIT_S", "Meeting", "Signal"]

LIMIT_S = 10.0
"""How long anybody waits for what should happen at once."""


class Signal:
    """Something that happens once."""

    def __init__(self) -> None:
        self._happened: Future[None] = Future()
        self._lock = threading.Lock()

    def set(self) -> None:
        """It happens. A second time changes nothing."""
        with self._lock:
            if not self._happened.done():
                self._happened.set_result(None)

    def then(self, tell: Callable[[], None]) -> None:
        """Call this when it happens, from whatever thread; at once when it has happened."""
        self._happened.add_done_callback(lambda _: tell())

    def wait(self) -> None:
        """Block this thread until it happens, or LIMIT_S are over."""
        with suppress(TimeoutError):
            self._happened.result(LIMIT_S)

    def wait_at_last(self) -> None:
        """Block this thread until it happens."""
        self._happened.result()

    async def reached(self) -> None:
        """Wait until it happens, or LIMIT_S are over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(LIMIT_S):
                await self.reached_at_last()

    async def reached_at_last(self) -> None:
        """Wait until it happens."""
        loop = asyncio.get_running_loop()
        here: asyncio.Future[None] = loop.create_future()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop has closed: nobody waits any more
                loop.call_soon_threadsafe(_done, here)

        self.then(tell)
        await here


def _done(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


class Meeting:
    """A place where everybody waits until all are there."""

    def __init__(self, size: int) -> None:
        self._missing = size
        self._complete = Signal()
        self._lock = threading.Lock()

    async def join(self) -> None:
        """Arrive, and wait for the others."""
        self._arrive()
        await self._complete.reached()

    def join_blocking(self) -> None:
        """The same, blocking this thread."""
        self._arrive()
        self._complete.wait()

    def _arrive(self) -> None:
        with self._lock:
            self._missing -= 1
            if self._missing <= 0:
                self._complete.set()
