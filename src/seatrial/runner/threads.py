"""Blocking code in a thread of its own, awaited.

Daemon threads rather than a pool: an agent that never returns must not keep the process from ending, and must not
occupy a worker that other trials wait for.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")
_numbers = itertools.count(1)


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """`function(*arguments)` in a new daemon thread with this task's context variables.

    Passes on what it raises, BaseExceptions too. When the waiting task is cancelled the thread runs on alone, named
    `abandoned`, and its result is dropped.
    """
    loop = asyncio.get_running_loop()
    waiting: asyncio.Future[tuple[T | None, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if not waiting.done():
            waiting.set_result((result, error))

    def work() -> None:
        result, error = None, None
        try:
            result = context.run(function, *arguments)
        except BaseException as raised:  # noqa: BLE001  handed to the waiting task, whatever it is
            error = raised
        try:
            loop.call_soon_threadsafe(deliver, result, error)
        except RuntimeError:  # the loop has closed: nobody waits any more
            return

    thread = threading.Thread(target=work, name=f"seatrial-{next(_numbers)}", daemon=True)
    thread.start()
    try:
        result, error = await waiting
    except asyncio.CancelledError:
        thread.name = f"abandoned {thread.name}"
        raise
    if error is not None:
        raise error
    return result  # type: ignore[return-value]  # None only when T allows it
