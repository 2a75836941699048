"""The workers of a run: each takes one trial after another, and every trial ends in exactly one of their hands.

A worker whose agent overruns its limit is watched from another thread. When the agent ignores being cancelled, its
attempt ends as `timeout` and another worker goes on in its place. When it blocks the event loop, all workers of that
loop are replaced by others in a fresh loop and thread: the attempt that blocks ends as `timeout`, with its trace so
far; the others of that loop go on record as attempts that the harness broke off, and are made again. Such an attempt
counts against no retry. Whatever a replaced worker still does is no longer taken from it.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from seatrial.core.ports import PlannedCase, Sink, TrialSource
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.runner.trial import Relieved
from seatrial.runner.watchdog import LoopThread

__all__ = ["GRACE_S", "Attempt", "Begin", "Running"]

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


@dataclass(eq=False)
class _Job:
    """One trial, until its last attempt is on record."""

    planned: PlannedCase
    index: int
    number: int = 1
    """Of the attempt."""
    tries: int = 0
    """Attempts so far that count against the case's retries."""
    attempt: Attempt | None = None
    """In progress."""
    end: Mapping[str, Any] | None = None
    """How that was cut short, when it was."""

    @property
    def name(self) -> str:
        return f"{self.planned.case.id}#{self.index}"

    def cut_short(self, **end: Any) -> None:
        """Cut the attempt short, if there is one; one that was cut short before has ended as it did then."""
        if self.attempt is not None:
            self.end = self.end or end
            self.attempt.cut_short(**self.end)

    def again(self, record: TrialRecord, trace: Trace) -> bool:
        """Whether there is to be another attempt after this one."""
        self.attempt, end, self.end = None, self.end, None
        self.number += 1
        if end is not None and end["stop_reason"] is StopReason.HARNESS_ERROR:
            return True
        self.tries += 1
        retries = self.planned.case.retries
        return self.tries < retries.attempts and _worth_retrying(record, trace, retries.on)


def _worth_retrying(record: TrialRecord, trace: Trace, named: tuple[str, ...]) -> bool:
    """Whether the trial ended in one of the named faults: `timeout`, or the class name of what the agent raised."""
    if record.stop_reason is StopReason.TIMEOUT:
        return "timeout" in named
    return trace.error is not None and bool({trace.error.type, trace.error.type.rpartition(".")[2]} & set(named))


@dataclass(eq=False)
class _Worker:
    """Whoever works on a job; replaced when it is stuck."""

    job: _Job | None = None
    over: bool = False
    """There was no job left."""
    replaced: bool = False

    def overdue(self, now: float) -> bool:
        attempt = None if self.job is None else self.job.attempt
        deadline = None if attempt is None else attempt.deadline
        return deadline is not None and now > deadline


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
        retry: bool = True,
        surroundings: AbstractContextManager[object],
    ) -> None:
        """`surroundings` lasts as long as the run. `grace_s` None: nobody is watched. `retry` False: whoever asks for
        a trial repeats it."""
        self.done: Future[None] = Future()
        """Resolves when all trials have ended; carries what the work raised."""
        self._source, self._sink, self._begin = source, sink, begin
        self._grace_s, self._retry = grace_s, retry
        self._stopped_at: float | None = None
        self._lock = threading.Lock()
        self._workers = [_Worker() for _ in range(concurrency)]
        surroundings.__enter__()
        self._surroundings = surroundings
        self._loop = LoopThread(self._work, list(self._workers))
        self._thread = threading.Thread(target=self._supervise, name="seatrial-watchdog", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Wait for the end and raise what it carries. KeyboardInterrupt stops the trials in flight, then passes on."""
        try:
            self.done.result()
        except KeyboardInterrupt:
            self.stop()
            raise

    def stop(self) -> None:
        """Cancel the trials in flight and wait until they have cleaned up; an agent that will not stop is left."""
        with self._lock:
            self._stopped_at = time.monotonic()
            self._loop.cancel()
        self._thread.join()

    # --- the workers' side -------------------------------------------------------------------------------------------

    async def _work(self, worker: _Worker) -> None:
        if worker.job is None:
            self._take(worker)
        while (job := worker.job) is not None:
            job.attempt = job.attempt or self._begin(job.planned, job.index, job.number)
            try:
                record, trace = await job.attempt.run()
            except Relieved:
                return
            if not self._hand_over(worker, job, record, trace):
                return

    def _take(self, worker: _Worker) -> None:
        with self._lock:
            if not worker.replaced:
                self._next_job(worker)

    def _next_job(self, worker: _Worker) -> None:
        trial = self._source.next()
        worker.job, worker.over = (None, True) if trial is None else (_Job(*trial), False)

    def _hand_over(self, worker: _Worker, job: _Job, record: TrialRecord, trace: Trace) -> bool:
        """Keep what a worker brings and give it its next job, in one step; nothing is taken from a replaced one."""
        with self._lock:
            if worker.replaced:
                return False
            kept = self._sink.write(record, trace)
            if not (job.again(record, trace) and self._retry):
                self._source.finished(kept)
                self._next_job(worker)
            return True

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
