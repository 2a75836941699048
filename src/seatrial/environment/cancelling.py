"""Whose cancellation it is that ends a trial's task: the harness's own passes, anybody else's is the agent's doing.

An agent can cancel the task that it runs in, now or by a timer that it forgets. A task tells how often it was
cancelled, not by whom. So a task that serves trials is started in the context of a Hold, and whoever lets it go says so
there.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable

__all__ = ["Hold", "cancelled_by_us", "pass_over_strays"]


class Hold:
    """The harness's hold on a task, and on those that come after it."""

    def __init__(self) -> None:
        self.let_go = False
        """Whether the harness has cancelled it."""
        held = contextvars.copy_context()
        held.run(_HOLD.set, self)
        self.context: Callable[[], contextvars.Context] = held.copy
        """Gives the context for a task under this hold, in which nothing of another one is left."""


_HOLD: contextvars.ContextVar[Hold | None] = contextvars.ContextVar("seatrial_hold", default=None)


def cancelled_by_us(error: BaseException) -> bool:
    """Whether an exception is the harness's cancellation of this very task.

    In a task that nobody holds, whether it is a cancellation of that task, and not a CancelledError that somebody
    raised.
    """
    if not isinstance(error, asyncio.CancelledError):
        return False
    hold = _HOLD.get()
    if hold is not None:
        return hold.let_go
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without a loop
        return False
    return task is not None and task.cancelling() > 0


async def pass_over_strays() -> None:
    """Let cancellations of this task that are not the harness's have no effect on what comes next in it."""
    hold, task = _HOLD.get(), asyncio.current_task()
    while hold is not None and task is not None and task.cancelling() and not hold.let_go:
        task.uncancel()
        try:
            await asyncio.sleep(0)  # where one is raised that was not yet
        except asyncio.CancelledError as error:
            if cancelled_by_us(error):
                raise
