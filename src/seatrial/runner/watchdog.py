"""An event loop in a thread of its own that can be watched from outside, told apart, and left behind.

An async agent that blocks (`time.sleep`, C code that sleeps) stops every trial of its loop, and the loop's own clock
with them. Seen from another thread such a loop no longer turns; the task that runs in it tells whose code it is. What
holds the interpreter's lock as well stops this thread too: only a process of its own can be ended then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from seatrial.environment.cancelling import Hold

__all__ = ["LoopThread", "until_done"]

Owner = TypeVar("Owner")
Result = TypeVar("Result")
Task = asyncio.Task[Any]

_LEFT_OVER_S = 1.0
"""How long what agents leave in a loop may take to end. After that its daemon thread stays, and nobody waits."""


class LoopThread(Generic[Owner]):
    """Works through `work(owner)` of every owner in one loop, in a daemon thread.

    Where that gives True it is begun once more, in a task and a context of its own: nothing of what ran before is left.
    `ended` resolves when all have ended that were not let go; it carries the first error, which stops the others.
    """

    def __init__(self, work: Callable[[Owner], Coroutine[Any, Any, bool]], owners: list[Owner]) -> None:
        self.ended: Future[None] = Future()
        self._work = work
        self._loop = asyncio.new_event_loop()
        self._loop.set_task_factory(self._new_task)
        self._crew: dict[Task, tuple[Owner, Hold]] = {}
        self._owners: WeakKeyDictionary[Task, Owner] = WeakKeyDictionary()
        """Of the tasks that these start."""
        self._turned = True
        self._cancelled = False
        self._over = self._loop.create_future()
        self._main = self._loop.create_task(self._until_over(owners))
        self._thread = threading.Thread(target=self._run, name="seatrial-loop", daemon=True)
        self._thread.start()

    # --- from outside ------------------------------------------------------------------------------------------------

    def turning(self) -> bool:
        """Whether the loop has turned since this was last asked; asked for the first time, yes."""
        turned = self._turned
        if turned:
            self._turned = False
            self._call(self._turn)
        return turned

    def running(self) -> Owner | None:
        """Whose code runs in the loop right now, in a task or one that it started; None when nobody's."""
        return self._owner_of(asyncio.current_task(self._loop))

    def _owner_of(self, task: Task | None) -> Owner | None:
        if task is None:
            return None
        hired = self._crew.get(task)
        return self._owners.get(task) if hired is None else hired[0]

    def replace(self, old: Owner, new: Owner) -> None:
        """Let `old` go (nobody waits for it any more) and let `new` work in its place."""
        self._call(self._replace, old, new)

    def cancel(self) -> None:
        """Cancel everything in the loop, as soon as it turns."""
        self._cancelled = True
        self._call(self._main.cancel)

    def _call(self, function: Callable[..., Any], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed meanwhile
            self._loop.call_soon_threadsafe(function, *arguments)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _turn(self) -> None:
        self._turned = True

    def _new_task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> Task:
        """A task belongs to whom the task belongs that makes it."""
        task: Task = asyncio.Task(work, loop=loop, **options)
        owner = self._owner_of(asyncio.current_task(loop))
        if owner is not None:
            self._owners[task] = owner
        return task

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        error = self._error_of_main()
        closed = self._close(_LEFT_OVER_S)
        if isinstance(error, asyncio.CancelledError):
            self.ended.cancel()
            self.ended.set_running_or_notify_cancel()
        elif error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)
        if not closed:
            self._close()

    def _error_of_main(self) -> BaseException | None:
        try:
            until_done(self._loop, self._main)
        except BaseException as error:  # noqa: BLE001  handed to whoever waits
            return error
        return None

    def _close(self, timeout: float | None = None) -> bool:
        """End what agents left in the loop, and close it; whether that was done in time.

        Threads of the loop's default executor are not waited for: one may be stuck in an agent's call.
        """
        left = asyncio.all_tasks(self._loop)
        for task in left:
            task.cancel()
        until_done(self._loop, self._loop.create_task(_wait(left, timeout)))
        if not all(task.done() for task in left):
            return False
        until_done(self._loop, self._loop.create_task(self._loop.shutdown_asyncgens()))
        asyncio.set_event_loop(None)
        self._loop.close()
        return True

    async def _until_over(self, owners: list[Owner]) -> None:
        for owner in owners:
            self._hire(owner)
        try:
            while self._crew and not self._over.done():
                await self._waited()
            if self._over.done():
                self._over.result()
        finally:
            crew = list(self._crew)
            for task in crew:
                self._let_go(task)
            await _wait(set(crew))

    async def _waited(self) -> None:
        """Wait for the end; what cancels every task of the loop but is not the harness changes nothing."""
        try:
            await asyncio.wait([self._over])
        except asyncio.CancelledError:
            if self._cancelled:
                raise

    def _hire(self, owner: Owner) -> None:
        self._employ(owner, Hold())

    def _employ(self, owner: Owner, hold: Hold) -> None:
        task: Task = asyncio.Task(self._work(owner), loop=self._loop, name="seatrial-trial", context=hold.context())
        self._crew[task] = owner, hold
        task.add_done_callback(self._left)

    def _replace(self, old: Owner, new: Owner) -> None:
        self._hire(new)
        for task in [task for task, (owner, _) in self._crew.items() if owner is old]:
            self._let_go(task)
            del self._crew[task]

    def _let_go(self, task: Task) -> None:
        self._crew[task][1].let_go = True
        task.cancel()

    def _left(self, task: Task) -> None:
        error = None if task.cancelled() else task.exception()
        hired = self._crew.pop(task, None)
        if hired is None:
            return
        owner, hold = hired
        if not hold.let_go and (task.cancelled() or (error is None and task.result())):
            self._employ(owner, hold)
        elif self._over.done():
            return
        elif error is not None:
            self._over.set_exception(error)
        elif not self._crew:
            self._over.set_result(None)


def until_done(loop: asyncio.AbstractEventLoop, task: asyncio.Task[Result]) -> Result:
    """Run the loop until the task is done, whatever an agent's own tasks and callbacks do to it; gives its result.

    SystemExit and KeyboardInterrupt in any task or callback end asyncio's loop, and so does `loop.stop()`; only the
    loop's owner may end it.
    """
    task.add_done_callback(lambda _: loop.stop())
    while not task.done():
        try:
            loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            if task.done():
                raise
    return task.result()


async def _wait(tasks: set[Task], timeout: float | None = None) -> None:
    if tasks:
        await asyncio.wait(tasks, timeout=timeout)
