"""The workers of a run: each takes one trial after another, and every trial ends in exactly one of their hands.

A worker whose agent overruns its limit is watched from another thread. When the agent ignores being cancelled, its
attempt ends as `timeout` and another worker goes on in its place. When it blocks the event loop, all workers of that
loop are replaced by others in a fresh loop and thread: the attempt that blocks ends as `timeout`, with its trace so
far; the others of that loop go on record as attempts that the harness broke off, and are made again. Such an attempt
counts against no retry. Whatever a replaced worker still does is no longer taken from it.

A worker for which the source has no trial now waits until one has ended; the run is over once the source has none and
nothing is in flight. Between attempts a worker sleeps, and is then not overdue.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager
from typing import Any, Protocol

from seatrial.core.ports import NOTHING_BEFORE, Earlier, PlannedCase, Sink, TrialSource
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.runner.retrying import backoff_s, worth_retrying
from seatrial.runner.stopping import Stop, UntilStopped
from seatrial.runner.trial import Relieved, seed_of
from seatrial.runner.waiting import Turns
from seatrial.runner.watchdog import LoopThread

__all__ = ["GRACE_S", "Attempt", "Begin", "Repeating", "Running"]

GRACE_S = 2.0
"""How long past its limit an agent may take to stop before it is given up."""
_LOOK_S = 0.25
"""How often the watchdog looks."""


class Attempt(Protocol):
    """One attempt at a trial, wherever it runs."""

    @property
    def deadline(self) -> float | None:
        """When its agent's time is up, on the monotonic clock; None while nobody outside need watch that."""

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Bring it to its end. Raises Relieved when it was cut short meanwhile."""

    def cut_short(self, stop_reason: StopReason, *, detail: str = "", broken: InvalidReason | None = None) -> None:
        """End the agent's part from another thread; the next `run` goes on with what comes after it."""


Begin = Callable[[PlannedCase, int, int], Attempt]
"""Makes an attempt of a case, a trial number and an attempt number, both from 1."""


class _Job:
    """One trial, until its last attempt is on record."""

    pause_s: float = 0.0
    """To wait before the next attempt."""
    attempt: Attempt | None = None
    """In progress."""
    end: Mapping[str, Any] | None = None
    """How that was cut short, when it was."""
    number: int = 1
    """Of the attempt."""
    broken_off: int = 0
    """Attempts so far that count against no retry."""

    def __init__(self, planned: PlannedCase, index: int, before: Earlier) -> None:
        self.planned, self.index = planned, index
        if before.attempts:
            place = planned.case.id, index
            self.number += before.attempts.get(place, 0)
            self.broken_off = before.broken_off.get(place, 0)

    @property
    def name(self) -> str:
        return f"{self.planned.case.id}#{self.index}"

    def cut_short(self, **end: Any) -> None:
        """Cut the attempt short, if there is one; one that was cut short before has ended as it did then."""
        if self.attempt is not None:
            self.end = self.end or end
            self.attempt.cut_short(**self.end)

    def ended(self, record: TrialRecord) -> TrialRecord:
        """The attempt is over; gives its record as it is to be kept."""
        end, self.attempt, self.end = self.end, None, None
        if end is None or end["stop_reason"] is not StopReason.HARNESS_ERROR:
            return record
        self.broken_off += 1
        return record.model_copy(update={"broken_off": True})

    def again(self, record: TrialRecord, run_seed: int) -> bool:
        """Whether there is to be another attempt after this one."""
        retries = self.planned.case.retries
        if not worth_retrying(record, retries, broken_off=self.broken_off):
            return False
        if not record.broken_off:
            seed = seed_of(run_seed, self.planned.case.id, self.index)
            self.pause_s = backoff_s(retries, seed, self.number - self.broken_off)
        self.number += 1
        return True


class _Worker:
    """Whoever works on a job; replaced when it is stuck."""

    def __init__(self, job: _Job | None = None) -> None:
        self.job = job
        self.over = False
        """There was no job left."""
        self.turn: asyncio.Future[None] | None = None
        """What it waits for when there is no job now."""
        self.replaced = False

    def overdue(self, now: float) -> bool:
        attempt = None if self.job is None else self.job.attempt
        deadline = None if attempt is None else attempt.deadline
        return deadline is not None and now > deadline


class Repeating:
    """How attempts are repeated."""

    def __init__(
        self,
        seed: int = 0,
        before: Earlier = NOTHING_BEFORE,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.seed = seed
        """Of the run; pauses are drawn from it."""
        self.before = before
        """Which attempts were made before."""
        self.sleep = sleep
        """How to wait between attempts, in seconds."""


class Running:
    """Trials that run in threads of their own, until the source has no more."""

    def __init__(
        self,
        source: TrialSource,
        sink: Sink,
        begin: Begin,
        *,
        concurrency: int,
        grace_s: float | None = GRACE_S,
        repeating: Repeating | None,
        surroundings: AbstractContextManager[object],
    ) -> None:
        """`surroundings` lasts as long as the run. `grace_s` None: nobody is watched. `repeating` None: whoever asks
        for a trial repeats it."""
        self.done: Future[None] = Future()
        """Resolves when all trials have ended; carries what the work raised."""
        self._stop = Stop()
        self._turns, self._sink, self._begin = Turns(source), UntilStopped(sink, self._stop), begin
        self._grace_s, self._repeats = grace_s, repeating is not None
        self._repeating = repeating or Repeating()
        self._stopped_at: float | None = None
        self._lock = threading.Lock()
        self._workers = [_Worker() for _ in range(concurrency)]
        surroundings.__enter__()
        self._surroundings = surroundings
        self._thread = threading.Thread(target=self._supervise, name="seatrial-watchdog", daemon=True)
        try:
            self._loop = LoopThread(self._work, list(self._workers))
            self._thread.start()
        except BaseException:  # Ctrl-C while threads come up: who asked for them has nothing yet to stop them by
            self._stop.requested = True
            if self._thread.is_alive():
                self.stop()
            raise

    def wait(self) -> None:
        """Wait for the end and raise what it carries. KeyboardInterrupt stops the trials in flight, then passes on."""
        try:
            self.done.result()
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel the trials in flight and wait until they have cleaned up; an agent that will not stop is left.

        Nothing is written, started or retried any more.
        """
        with self._lock:
            self._stop.requested = True
            self._stopped_at = time.monotonic()
            self._loop.cancel()
        self._thread.join()

    # --- the workers' side -------------------------------------------------------------------------------------------

    async def _work(self, worker: _Worker) -> bool:
        """One attempt, or one wait for it; whether there may be more to do. That has a task of its own: an agent may
        cancel the one that it ran in long after its trial, and leave values in its context."""
        attempt, until = self._next_attempt(worker)
        if until is not None:
            await until
            return True
        if attempt is None:
            return False
        try:
            record, trace = await attempt.run()
        except Relieved:
            return False
        self._hand_over(worker, record, trace)
        return True

    def _next_attempt(self, worker: _Worker) -> tuple[Attempt | None, Awaitable[None] | None]:
        """What a worker is to do next, and what it is to wait for before it asks again; neither when it is replaced,
        or nothing is left to do."""
        with self._lock:
            worker.turn = None
            if worker.replaced or self._stop.requested:
                return None, None
            job = worker.job
            if job is None:
                given = self._turns.ask()
                if isinstance(given, asyncio.Future):
                    worker.turn = given
                    return None, given
                if given is None:
                    worker.over = True
                    return None, None
                worker.job = job = _Job(*given, self._repeating.before)
                worker.over = False
            if job.pause_s:
                return None, self._paused(job)
            if job.attempt is None:
                job.attempt = self._begin(job.planned, job.index, job.number)
            return job.attempt, None

    async def _paused(self, job: _Job) -> None:
        await self._repeating.sleep(job.pause_s)
        job.pause_s = 0.0

    def _hand_over(self, worker: _Worker, record: TrialRecord, trace: Trace) -> None:
        """Keep what a worker brings; nothing is taken from a replaced one. Raises CancelledError after a stop."""
        with self._lock:
            job = worker.job
            if worker.replaced or job is None:
                return
            record = job.ended(record)
            kept = self._sink.write(record, trace)
            if not (self._repeats and job.again(record, self._repeating.seed)):
                worker.job = None
                self._turns.finished(kept)

    # --- the watchdog's side -----------------------------------------------------------------------------------------

    def _supervise(self) -> None:
        try:
            with contextlib.ExitStack() as leaving:
                leaving.push(self._surroundings)
                while not self._have_ended():
                    with self._lock:
                        self._look()
        except CancelledError:
            self.done.cancel()
            self.done.set_running_or_notify_cancel()
        except BaseException as error:  # noqa: BLE001  handed to whoever waits
            self.done.set_exception(error)
        else:
            self.done.set_result(None)

    def _have_ended(self) -> bool:
        """Wait a little; whether all workers have ended. Raises what ended them early."""
        ended = self._loop.ended
        try:
            ended.result(_LOOK_S)
        except NotYet:
            if ended.done():
                raise
            return False
        return True

    def _look(self) -> None:
        turning, now = self._loop.turning(), time.monotonic()
        if self._stopped_at is not None:
            self._look_at_stopping(turning=turning, since=now - self._stopped_at)
        elif self._grace_s is not None:
            overdue = [worker for worker in self._workers if worker.overdue(now - self._grace_s)]
            if overdue and turning:
                self._replace_deaf(overdue)
            elif overdue:
                self._replace_blocked(overdue)

    def _look_at_stopping(self, *, turning: bool, since: float) -> None:
        """Once stopped, an agent that does not let go is waited for no longer than the grace."""
        held_up = not turning or any(worker.overdue(math.inf) for worker in self._workers)
        if held_up and since > (self._grace_s or GRACE_S):
            for worker in self._workers:
                worker.replaced = True
            raise CancelledError

    def _replace_deaf(self, overdue: Collection[_Worker]) -> None:
        """The loop turns, but these agents went on when they were cancelled."""
        for worker in overdue:
            self._loop.replace(worker, self._replacement(worker, _timeout(worker, _WENT_ON)))

    def _replace_blocked(self, overdue: Collection[_Worker]) -> None:
        """The loop does not turn. Leave it when what runs in it is over its limit; nobody's code is a callback's."""
        running = self._loop.running()
        stuck = overdue if running is None else {running} & set(overdue)
        if not stuck:
            return
        names = ", ".join(worker.job.name for worker in stuck if worker.job is not None)
        detail = f"{names} blocked the event loop that this attempt ran in; it is made again"
        broken_off = {"stop_reason": StopReason.HARNESS_ERROR, "broken": InvalidReason.HARNESS, "detail": detail}
        fresh = [
            self._replacement(worker, _timeout(worker, _BLOCKED) if worker in stuck else broken_off)
            for worker in list(self._workers)
            if not worker.over
        ]
        self._loop.cancel()
        self._loop = LoopThread(self._work, fresh)

    def _replacement(self, worker: _Worker, end: Mapping[str, Any]) -> _Worker:
        """Another worker for the job of this one, whose attempt is cut short."""
        worker.replaced = True
        if worker.turn is not None:
            self._turns.leave(worker.turn)
        if worker.job is not None:
            worker.job.cut_short(**end)
        fresh = _Worker(worker.job)
        self._workers[self._workers.index(worker)] = fresh
        return fresh


_BLOCKED = "while the agent blocked the event loop (isolation: process ends such agents without disturbing others)"
_WENT_ON = "and the agent went on when it was told to stop"


def _timeout(worker: _Worker, how: str) -> dict[str, Any]:
    limit = "" if worker.job is None else f"the limit of {worker.job.planned.case.limits.timeout_s:g} s"
    return {"stop_reason": StopReason.TIMEOUT, "detail": f"timeout: {limit} was reached {how}"}
