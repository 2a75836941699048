"""The time limit of an agent's turns: `asyncio.timeout`, but for what costs where nobody waits.

Most of that is the timer, so there is none before the agent waits for the first time: until then the loop does not
turn, and no timer could end anything.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from types import TracebackType, coroutine
from typing import Any, TypeVar

from seatrial.environment.cancelling import cancelled_by_us

__all__ = ["TimeLimit"]

T = TypeVar("T")


class TimeLimit:
    """While this lasts, `run` may take so many seconds; then its task is cancelled, and TimeoutError leaves here."""

    expired = False
    """Whether it was reached."""
    _over = False
    _timer: asyncio.TimerHandle | None = None

    def __init__(self, seconds: float, on_wait: Callable[[float], None]) -> None:
        """`on_wait` is told of the time that is added."""
        self._seconds, self._told = seconds, on_wait

    def __enter__(self) -> TimeLimit:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] = asyncio.current_task(self._loop)  # type: ignore[assignment]  # within one
        self._when = self._loop.time() + self._seconds
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
        if self.expired:
            self._task.uncancel()
            if isinstance(error, asyncio.CancelledError) and not cancelled_by_us(error):
                raise TimeoutError from error

    @property
    def disturbed(self) -> bool:
        """Whether its task was cancelled, by whomever, and that is not over."""
        return self._task.cancelling() > 0

    def extend(self, seconds: float) -> None:
        """Add the time in which the agent has to wait for its turn; from any thread. `on_wait` is told as well."""
        self._told(seconds)
        with contextlib.suppress(RuntimeError):  # the loop has closed: a thread that outlived its trial
            self._loop.call_soon_threadsafe(self._extend, seconds)

    def _extend(self, seconds: float) -> None:
        if self.expired or self._over:
            return
        self._when += seconds
        if self._timer is not None:
            self._timer.cancel()
            self._start()

    def _start(self) -> None:
        # in a context of its own: the trial's would be kept alive by a timer that is cancelled, but not yet dropped
        self._timer = self._loop.call_at(self._when, self._expire, context=Context())

    def _expire(self) -> None:
        self.expired = True
        self._task.cancel()

    @coroutine
    def run(self, work: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
        """`await work`, with a timer from when it waits for the first time."""
        try:
            awaited = work.send(None)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]  # a T
        self._start()
        while True:
            try:
                sent = yield awaited
            except GeneratorExit:
                work.close()
                raise
            except BaseException as error:  # noqa: BLE001  what is thrown in here is for the work
                step: Callable[[], Any] = partial(work.throw, error)
            else:
                step = partial(work.send, sent)
            try:
                awaited = step()
            except StopIteration as done:
                return done.value  # type: ignore[no-any-return]
