"""Trials on a Dask cluster: the same trials, wherever a worker has room.

What travels is data: how to load the project, and which trial. A worker loads the project once and runs each trial as
this machine would, in a thread or a process of its own; record and trace come back. When a worker dies Dask starts its
trials again elsewhere, so a trial may begin twice. It counts once: each attempt is one task, with an id of its own, and
a task has one result, that of the start that finished first.

Rate limits and the limit for judges hold over all workers (`seatrial.runner.executors.dask_limits`); what trials leave
behind is not looked for.

Without a scheduler's address a cluster is made on this machine, listening on the loopback interface only.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import platform
import threading
import uuid
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from seatrial.core.encoding import dumps
from seatrial.core.ledger import Counted
from seatrial.core.model_json import json_of
from seatrial.core.ports import NOTHING_BEFORE, Earlier, PlannedCase, Sink, TrialSource
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.errors import SeatrialError, UsageError
from seatrial.registry import load_object
from seatrial.runner.capture import captured_output
from seatrial.runner.executors import Site, Travel
from seatrial.runner.executors.dask_limits import asking_the_scheduler, kept_by_the_scheduler, refuse_unkept
from seatrial.runner.executors.process import ProcessExecutor
from seatrial.runner.processes import Launcher
from seatrial.runner.threads import in_thread
from seatrial.runner.trial import TrialAttempt
from seatrial.runner.trial_process import Bench
from seatrial.runner.workers import Attempt, Repeating, Running

__all__ = ["DaskExecutor", "dask_executor", "run_job"]

_CONNECT_S = 15


def dask_executor(site: Site) -> DaskExecutor:
    """Connected to the scheduler, if an address was given.

    UsageError when that, or Dask, is not there, or when the scheduler cannot keep the project's rate limits.
    """
    try:
        import distributed  # noqa: F401  whether it is there
    except ImportError as error:
        raise UsageError("--executor dask needs Dask; install it with: pip install 'seatrial[dask]'") from error
    if site.travel is None:
        raise UsageError("trials on a cluster need a project")
    client = None if site.scheduler is None else _connected(site.scheduler)
    if client is not None:
        refuse_unkept(client, site.settings.rates)
    return DaskExecutor(site, site.travel, client)


@dataclass
class DaskExecutor:
    """Hands trials to a cluster, at most `site.concurrency` at once."""

    site: Site
    travel: Travel
    client: Any = None
    """Connected already; None = a cluster on this machine, made when the run starts."""
    run_id: str = field(default_factory=lambda: uuid.uuid4().hex[:12])

    def run(self, source: TrialSource, sink: Sink) -> None:
        """Run every trial of the source. KeyboardInterrupt stops the trials in flight, then passes on."""
        self.start(source, sink).wait()

    def start(self, source: TrialSource, sink: Sink, before: Earlier = NOTHING_BEFORE) -> Running:
        """Begin in threads; gives the handle to wait on or stop."""
        with ExitStack() as opening:
            if self.client is None:
                self.client = _on_this_machine(self.site.concurrency, opening)
            opening.enter_context(self.client)
            opening.enter_context(kept_by_the_scheduler(self.client, self.run_id, self.site.settings.rates))
            connected = opening.pop_all()
        return Running(
            source,
            sink,
            self.attempt,
            concurrency=self.site.concurrency,
            repeating=Repeating(self.site.settings.seed, before),
            surroundings=connected,
        )

    def attempt(self, planned: PlannedCase, index: int, number: int) -> Attempt:
        """An attempt of a trial, not yet begun."""
        return _DaskAttempt(self, planned, index, number)

    def submit(self, job: Mapping[str, Any]) -> Any:
        """A task for the job; its key is the attempt's id."""
        given = {"bench": self.travel.bench, "setup": {**self.travel.setup, "scratch": ""}, "run_id": self.run_id}
        key = "-".join(("seatrial", self.run_id, *(str(job[part]) for part in ("case_id", "trial_index", "attempt"))))
        return self.client.submit(run_job, dumps(given), dict(job), self.site.isolation, key=key, pure=False)


def _connected(address: str) -> Any:
    from distributed import Client

    client = Client.__new__(Client)
    try:
        Client.__init__(client, address, timeout=_CONNECT_S, set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError, TypeError, ImportError) as error:  # nobody there, no address, no certificates
        _give_up(client)
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UsageError(f"there is no Dask scheduler at {address}: {reason}") from error
    return client


def _give_up(client: Any) -> None:
    """End a client that never was connected: its own `close` would wait half a minute, then complain."""
    if client.status == "connecting":
        client.status = "closed"
        client.loop.add_callback(client.loop.stop)


def _on_this_machine(concurrency: int, stack: ExitStack) -> Any:
    """A client of a cluster here, a thread a trial in flight. Nothing of it listens beyond loopback."""
    from distributed import Client, LocalCluster

    workers = min(os.cpu_count() or 1, concurrency)
    threads = math.ceil(concurrency / workers)
    local = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    cluster = stack.enter_context(
        LocalCluster(n_workers=workers, threads_per_worker=threads, **local)  # type: ignore[no-untyped-call]
    )
    return Client(cluster, set_as_default=False)  # type: ignore[no-untyped-call]


@dataclass(eq=False)
class _DaskAttempt:
    """One attempt, run by whichever worker."""

    executor: DaskExecutor
    planned: PlannedCase
    index: int
    number: int
    deadline: float | None = field(default=None, init=False)
    """None: the worker keeps the time."""

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Wait for the task. A worker that died too often makes the trial invalid, nobody's failure."""
        from distributed import KilledWorker

        job = {"case_id": self.planned.case.id, "trial_index": self.index, "attempt": self.number}
        task = self.executor.submit({**job, "digest": self.planned.digest})
        try:
            result = await in_thread(task.result)
        except KilledWorker as error:
            return await self._invalid(str(error))
        finally:
            task.release()
        return TrialRecord.model_validate(result["record"]), Trace.model_validate(result["trace"])

    async def _invalid(self, detail: str) -> tuple[TrialRecord, Trace]:
        site = self.executor.site
        here = TrialAttempt(site.agent, self.planned, self.index, site.settings, self.number)
        here.cut_short(StopReason.HARNESS_ERROR, broken=InvalidReason.HARNESS, detail=" ".join(detail.split()))
        return await here.run()

    def cut_short(self, stop_reason: StopReason, *, detail: str = "", broken: InvalidReason | None = None) -> None:
        """Never asked for: no agent runs in this process, so nothing is over its limit here."""
        raise NotImplementedError


# --- on the worker ---------------------------------------------------------------------------------------------------


def run_job(given: str, job: dict[str, Any], isolation: str) -> dict[str, Any]:
    """Run one trial on this worker; gives record and trace as JSON data.

    `given` is JSON, `{"bench", "setup", "run_id"}`, and the same for a whole run: what it names is loaded once. Raises
    UsageError when it cannot be loaded here.
    """
    try:
        with _desk(given, isolation) as desk:
            record, trace = desk.run(job)
    except SeatrialError as error:  # some kinds cannot travel
        raise UsageError(f"on worker {platform.node()}, process {os.getpid()}: {error}") from None
    return {"record": json_of(record), "trace": json_of(trace)}


@dataclass
class _Desk:
    """A run's project, loaded in this worker, and the trials that use it."""

    bench: Bench
    isolation: str
    scratch: Path
    launcher: Launcher
    users: int = 0
    open: ExitStack = field(default_factory=ExitStack)

    def __post_init__(self) -> None:
        self.open.enter_context(self.bench.surroundings())
        if self.isolation == "process":
            self._loop = asyncio.new_event_loop()
            threading.Thread(target=self._loop.run_forever, name="seatrial-loop", daemon=True).start()
            self.open.enter_context(self.launcher)
            self.open.callback(self._loop.call_soon_threadsafe, self._loop.stop)

    def run(self, job: Mapping[str, Any]) -> tuple[TrialRecord, Trace]:
        """One trial, in a thread or process of its own."""
        planned = self.bench.planned(job["case_id"], job["digest"])
        if self.isolation == "process":
            there = ProcessExecutor(self.bench.agent, self.bench.settings, self.launcher, self.scratch)
            running = there.attempt(planned, job["trial_index"], job["attempt"]).run()
            return asyncio.run_coroutine_threadsafe(running, self._loop).result()
        one = _One((planned, job["trial_index"]))
        attempt = TrialAttempt(self.bench.agent, planned, job["trial_index"], self.bench.settings, job["attempt"])
        Running(one, one, lambda *_: attempt, concurrency=1, repeating=None, surroundings=nullcontext()).wait()
        return one.ended[0]


@dataclass
class _One:
    """The source and the sink of a single trial."""

    waiting: tuple[PlannedCase, int] | None
    ended: list[tuple[TrialRecord, Trace]] = field(default_factory=list)

    def next(self) -> tuple[PlannedCase, int] | None:
        waiting, self.waiting = self.waiting, None
        return waiting

    def finished(self, record: Counted) -> None:
        return

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.ended.append((record, trace))
        return record


_DESKS: dict[tuple[str, str], _Desk] = {}
_AT_DESKS = threading.Lock()


@contextmanager
def _desk(given: str, isolation: str) -> Iterator[_Desk]:
    """The run's desk on this worker. A new one clears away those that nobody uses: their code may be old by now."""
    with _AT_DESKS:
        if (given, isolation) not in _DESKS:
            for key in [key for key, desk in _DESKS.items() if not desk.users]:
                _DESKS.pop(key).open.close()
            _DESKS[given, isolation] = _new_desk(json.loads(given), isolation)
        desk = _DESKS[given, isolation]
        desk.users += 1
    try:
        yield desk
    finally:
        with _AT_DESKS:
            desk.users -= 1


def _new_desk(given: dict[str, Any], isolation: str) -> _Desk:
    from distributed import get_worker

    _capture_prints()
    scratch = Path(get_worker().local_directory)
    setup = {**given["setup"], "scratch": str(scratch)}
    bench: Bench = load_object(given["bench"])(setup)
    bench.settings = asking_the_scheduler(bench.settings, given["run_id"])
    return _Desk(bench, isolation, scratch, Launcher(given["bench"], setup))


@cache
def _capture_prints() -> AbstractContextManager[None]:
    """For as long as the worker lives: its trials overlap, so that none of them may put things back."""
    capturing = captured_output()
    capturing.__enter__()
    return capturing
