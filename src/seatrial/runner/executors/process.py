"""A process a trial (`isolation: process`): for agents that block, crash the interpreter, leak state or ignore limits.

The whole trial runs in its process: fixture, agent, observation, graders. What it records is told as it happens, so
that it is kept when the process dies. The limit holds: a process that is over its limit is ended with its process
group, and the trial is a timeout. What is left of the group after a trial is ended too. A trial whose process died is
graded here, by the calls that it told of; its outcome was not observed.

Rate limits and the limit for judges hold over all trials of the run: they are kept here, and the processes ask.

A process serves one trial and is ended, so that nothing in it can reach another trial: variables, working folder,
threads, module globals. What trials leave behind is therefore looked for here, where only files can be left.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from seatrial.core.ports import NOTHING_BEFORE, Agent, Earlier, PlannedCase, Sink, TrialSource
from seatrial.core.trace import AgentError, StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.environment.failure import FixtureError
from seatrial.environment.folder import remove_tree
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.processes import Launcher, TrialProcess
from seatrial.runner.threads import in_thread
from seatrial.runner.trial import TrialAttempt, TrialSettings, Watch
from seatrial.runner.workers import GRACE_S, Attempt, Repeating, Running

__all__ = ["ProcessAttempt", "ProcessExecutor"]


@dataclass(frozen=True)
class ProcessExecutor:
    """Runs each trial in a process of its own on this machine, at most `concurrency` at once."""

    agent: Agent[TrialEnvironment]
    """Read for what it observes; never called here."""
    settings: TrialSettings
    launcher: Launcher
    scratch: Path
    """Where trials make their folders; what a process that died left there is removed."""
    concurrency: int = 10
    grace_s: float = GRACE_S
    """How long past its limit a process may take to end the trial itself."""

    def run(self, source: TrialSource, sink: Sink) -> None:
        """Run every trial of the source. KeyboardInterrupt stops the trials in flight, then passes on."""
        self.start(source, sink).wait()

    def start(self, source: TrialSource, sink: Sink, before: Earlier = NOTHING_BEFORE) -> Running:
        """Begin in threads; gives the handle to wait on or stop."""
        return Running(
            source,
            sink,
            self.attempt,
            concurrency=self.concurrency,
            repeating=Repeating(self.settings.seed, before),
            surroundings=self.launcher,
        )

    def attempt(self, planned: PlannedCase, index: int, number: int) -> Attempt:
        """An attempt of a trial, not yet begun."""
        return ProcessAttempt(self, planned, index, number)


@dataclass
class _Seen:
    """What a process told of its trial."""

    result: Mapping[str, Any] | None = None
    failed: str = ""
    """What went wrong in the harness's part of it."""
    agent_began: float | None = None
    """On the performance counter."""
    agent_took: float | None = None
    """Seconds; None while its part lasts, or before it began."""
    waited_s: float = 0.0
    """How long its calls waited for their turn."""
    timed_out: bool = False


@dataclass(eq=False)
class ProcessAttempt:
    """One attempt in a process of its own."""

    executor: ProcessExecutor
    planned: PlannedCase
    index: int
    number: int
    deadline: float | None = field(default=None, init=False)
    """None: it keeps its own time."""

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Start the process, follow it, and end it with all that it left."""
        settings = self.executor.settings
        watch = Watch(settings.surroundings, self.planned.case.id, self.index)
        here = TrialAttempt(
            self.executor.agent, self.planned, self.index, replace(settings, surroundings=None), self.number
        )
        watch.begin()
        try:
            record, trace = await self._there(here)
        finally:
            leftovers = watch.end(here.environment)
        return record.model_copy(update={"leftovers": leftovers}), trace

    async def _there(self, here: TrialAttempt) -> tuple[TrialRecord, Trace]:
        job = {"case_id": self.planned.case.id, "trial_index": self.index, "attempt": self.number}
        process = await self.executor.launcher.launch({**job, "digest": self.planned.digest})
        seen = _Seen()
        try:
            await self._follow(process, here, seen)
        finally:
            status = await process.end()
            if seen.result is None:
                await in_thread(_remove_folders, self.executor.scratch, process.pid)
        if seen.result is not None:
            trace = Trace.model_validate(seen.result["trace"]).model_copy(update={"log": process.log.text})
            return TrialRecord.model_validate(seen.result["record"]), trace
        here.cut_short(**self._end(seen, status), log=process.log)
        return await here.run()

    def cut_short(self, stop_reason: StopReason, *, detail: str = "", broken: InvalidReason | None = None) -> None:
        """Never asked for: no agent runs in this process, so nothing is over its limit here."""
        raise NotImplementedError

    async def _follow(self, process: TrialProcess, here: TrialAttempt, seen: _Seen) -> None:
        loop, limit_s = asyncio.get_running_loop(), self.planned.case.limits.timeout_s
        try:
            async with AsyncExitStack() as judging, asyncio.timeout(None) as limit:
                async for message in process.told():
                    match message:
                        case {"turn": _} | {"judge": _}:
                            await self._answer(process, message, judging)
                        case {"change": change}:
                            here.environment.recorder.apply(change)
                        case {"agent": True}:
                            seen.agent_began = time.perf_counter()
                            limit.reschedule(loop.time() + limit_s + self.executor.grace_s)
                        case {"waits": float(seconds)}:
                            seen.waited_s += seconds
                            if (when := limit.when()) is not None:
                                limit.reschedule(when + seconds)
                        case {"agent": False}:
                            seen.agent_took = time.perf_counter() - (seen.agent_began or 0)
                            limit.reschedule(None)
                        case {"failed": failed}:
                            seen.failed = failed
                        case _:
                            seen.result = message
                            return
        except TimeoutError:
            seen.timed_out = True

    async def _answer(self, process: TrialProcess, message: Mapping[str, Any], judging: AsyncExitStack) -> None:
        """What it asks for: the turn of a call, or a place for a judge (False: it needs that no more)."""
        match message:
            case {"turn": [kind, name]}:
                process.answer({"seconds": self._seconds(kind, name)})
            case {"judge": True}:
                await judging.enter_async_context(self.executor.settings.judges or nullcontext())
                process.answer({})
            case _:
                await judging.aclose()

    def _seconds(self, kind: Any, name: str) -> float:
        """Until the turn of such a call comes."""
        rates = self.executor.settings.rates
        if rates is None or not rates.limited(kind, name):
            return 0.0
        now, at = rates.turn(kind, name)
        return at - now

    def _end(self, seen: _Seen, status: int) -> dict[str, Any]:
        """How a trial ended whose process gave no record."""
        if seen.agent_began is not None and seen.agent_took is None:
            took = time.perf_counter() - seen.agent_began - seen.waited_s
            latency = {"latency_ms": max(took, 0.0) * 1000}
            return {**self._end_of_agent(seen, status), **latency}
        how = seen.failed or f"the trial's process {_ended(status)}"
        if seen.agent_began is None:
            return _broken(InvalidReason.HARNESS if seen.failed else InvalidReason.FIXTURE, f"{how} before the agent")
        return _broken(InvalidReason.HARNESS, f"{how} after the agent had ended")

    def _end_of_agent(self, seen: _Seen, status: int) -> dict[str, Any]:
        if seen.timed_out:
            limit = f"the limit of {self.planned.case.limits.timeout_s:g} s was reached"
            return {"stop_reason": StopReason.TIMEOUT, "detail": f"timeout: {limit} and its process was ended"}
        if seen.failed:
            return _broken(InvalidReason.HARNESS, seen.failed)
        text = f"the agent's process {_ended(status)}"
        error = AgentError(type="ProcessEnded", message=text)
        return {"stop_reason": StopReason.AGENT_ERROR, "detail": text, "error": error}


def _broken(reason: InvalidReason, detail: str) -> dict[str, Any]:
    return {"stop_reason": StopReason.HARNESS_ERROR, "broken": reason, "detail": detail}


def _ended(status: int) -> str:
    if status >= 0:
        return f"exited with code {status}"
    try:
        return f"was ended by signal {signal.Signals(-status).name}"
    except ValueError:
        return f"was ended by signal {-status}"


def _remove_folders(scratch: Path, pid: int) -> None:
    """Remove what a process that died left of its trial. What will not go goes with the run's folder, or stays."""
    for folder in scratch.glob(f"trial-{pid}-*"):
        with contextlib.suppress(FixtureError):
            remove_tree(folder)
