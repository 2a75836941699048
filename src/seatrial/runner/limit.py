"""The time limit of an agent's turns: `asyncio.timeout`, but for what costs where nobody waits.

Most of that is the timer, so there is none before the agent waits for the first time: until then the loop does not
turn, and no timer could end anything.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from functools import partial
from types import TracebackType, coroutine
from typing import Any

from seatrial.environment.cancelling import cancelled_by_us
from seatrial.environment.pace import Pace

__all__ = ["TimeLimit"]


class TimeLimit:
    """`run` may take so many seconds, beside those in which calls wait for their turn."""

    expired = False
    """Whether it was reached."""

    def __init__(self, seconds: float, pace: Pace) -> None:
        """It counts from now; `pace` tells of the waiting."""
        self.deadline = time.monotonic() + seconds - pace.waited_s
        """When it would be reached if no call ever waited, on the monotonic clock."""
        self._pace = pace

    @coroutine
    def run(self, work: Coroutine[Any, Any, None]) -> Generator[Any, Any, None]:
        """`await work`, with a timer from when it waits for the first time.

        When the limit is reached the task is cancelled, and TimeoutError leaves here if the work lets that pass.
        """
        steps = work.__await__()
        awaited = next(steps, self)  # without the StopIteration that `send` raises where all has ended at once
        if awaited is not self:
            with self:
                yield from _rest(steps, awaited)

    def __enter__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[Any] = asyncio.current_task(self._loop)  # type: ignore[assignment]  # within one
        self._ahead_s = self._loop.time() - time.monotonic()  # a loop may have a clock of its own
        self._start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._timer.cancel()
        if self.expired:
            self._task.uncancel()
            if isinstance(error, asyncio.CancelledError) and not cancelled_by_us(error):
                raise TimeoutError from error

    def _start(self) -> None:
        # in a context of its own: the trial's would be kept alive by a timer that is cancelled, but not yet dropped
        self._timer = self._loop.call_later(self._left_s, self._look, context=Context())

    def _look(self) -> None:
        if self._left_s > 0:  # calls have waited since the timer was set
            self._start()
        else:
            self.expired = True
            self._task.cancel()

    @property
    def _left_s(self) -> float:
        return self.deadline + self._pace.waited_s + self._ahead_s - self._loop.time()


def _rest(steps: Generator[Any, Any, None], awaited: Any) -> Generator[Any, Any, None]:
    """The steps that are left of what waits for this now."""
    while True:
        try:
            sent = yield awaited
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:  # noqa: BLE001  what is thrown in here is for the work
            step: Callable[[], Any] = partial(steps.throw, error)
        else:
            step = partial(steps.send, sent)
        try:
            awaited = step()
        except StopIteration:
            return
