"""This process: one event loop in a thread of its own, so that a call works under any other loop.

Concurrency is a number of workers, each taking one trial after another; a trial's agent and graders run inside its
worker, so no more than that many trials are in flight, whatever they are doing. A worker for which the source has no
trial now waits until one has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from seatrial.core.ports import Agent, PlannedCase, Sink, TrialSource
from seatrial.core.trial import TrialRecord
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import captured_output
from seatrial.runner.retrying import backoff_s, worth_retrying
from seatrial.runner.trial import TrialSettings, run_trial, seed_of
from seatrial.runner.waiting import Turns

__all__ = ["LocalExecutor", "Running"]


@dataclass(frozen=True)
class LocalExecutor:
    """Runs trials here, at most `concurrency` at once."""

    agent: Agent[TrialEnvironment]
    settings: TrialSettings
    concurrency: int = 10
    capture: bool = True
    """Whether what agents print goes to their trial's log."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """How to wait between attempts, in seconds."""

    def run(self, source: TrialSource, sink: Sink) -> None:
        """Run every trial of the source. KeyboardInterrupt stops the trials in flight, then passes on."""
        running = self.start(source, sink)
        try:
            running.done.result()
        except KeyboardInterrupt:
            running.stop()
            raise

    def start(self, source: TrialSource, sink: Sink) -> Running:
        """Begin in a thread; gives the handle to wait on or stop."""
        return Running(self._work(source, sink))

    async def _work(self, source: TrialSource, sink: Sink) -> None:
        turns = Turns(source)
        with captured_output() if self.capture else contextlib.nullcontext():
            async with asyncio.TaskGroup() as workers:
                for _ in range(self.concurrency):
                    workers.create_task(self._worker(turns, sink))

    async def _worker(self, turns: Turns, sink: Sink) -> None:
        while (trial := await turns.next()) is not None:
            turns.finished(await self._attempts(*trial, sink))

    async def _attempts(self, planned: PlannedCase, index: int, sink: Sink) -> TrialRecord:
        """One trial with its retries; every attempt is on record, the last one counts."""
        retries, seed = planned.case.retries, seed_of(self.settings.seed, planned.case.id, index)
        for attempt in range(1, retries.attempts + 1):
            record, trace = await run_trial(self.agent, planned, index, self.settings, attempt)
            kept = sink.write(record, trace)
            if attempt == retries.attempts or not worth_retrying(record, retries.on):
                break
            await self.sleep(backoff_s(retries, seed, attempt))
        return kept


def _first(error: BaseException) -> BaseException:
    """The first exception inside groups: workers stop together, the first one's reason is the one to tell."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


class Running:
    """Trials that run in a loop and thread of their own."""

    def __init__(self, work: Coroutine[Any, Any, None]) -> None:
        self.done: Future[None] = Future()
        """Resolves when all trials have ended; carries what the work raised."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), name="seatrial-loop", daemon=True)
        self._thread.start()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        async def main() -> None:
            self._loop, self._task = asyncio.get_running_loop(), asyncio.create_task(work)
            self._ready.set()
            await self._task

        try:
            with asyncio.Runner() as runner:
                runner.run(main())
        except asyncio.CancelledError:
            self.done.cancel()
            self.done.set_running_or_notify_cancel()
        except BaseException as error:  # noqa: BLE001  handed to whoever waits
            self.done.set_exception(_first(error))
        else:
            self.done.set_result(None)

    def stop(self) -> None:
        """Cancel the trials in flight and wait until they have cleaned up."""
        self._ready.wait()
        if self._loop is not None and self._task is not None and not self.done.done():
            with contextlib.suppress(RuntimeError):  # the loop may have closed meanwhile
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
