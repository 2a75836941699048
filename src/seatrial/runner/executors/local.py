"""This process: one event loop in a thread of its own, so that a call works under any other loop.

Concurrency is a number of workers, each taking one trial after another; a trial's agent and graders run inside its
worker, so no more than that many trials are in flight, whatever they are doing. A worker for which the source has no
trial now waits until one has ended. Agents that overrun their limit and do not let go are left behind
(`seatrial.runner.workers`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from seatrial.core.ports import NOTHING_BEFORE, Agent, Earlier, Executor, PlannedCase, Sink, TrialSource
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import captured_output
from seatrial.runner.executors import Site
from seatrial.runner.trial import TrialAttempt, TrialSettings
from seatrial.runner.workers import GRACE_S, Attempt, Repeating, Running

__all__ = ["LocalExecutor", "local_executor"]


class LocalExecutor:
    """Runs trials here, at most `concurrency` at once."""

    def __init__(
        self,
        agent: Agent[TrialEnvironment],
        settings: TrialSettings,
        concurrency: int = 10,
        capture: bool = True,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        grace_s: float = GRACE_S,
    ) -> None:
        self.agent = agent
        self.settings = settings
        self.concurrency = concurrency
        self.capture = capture
        """Whether what agents print goes to their trial's log."""
        self.sleep = sleep
        """How to wait between attempts, in seconds."""
        self.grace_s = grace_s
        """How long past its limit an agent may take to stop before it is given up."""

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
            repeating=Repeating(self.settings.seed, before, self.sleep),
            grace_s=None if self.settings.on_agent_error else self.grace_s,  # a debugger may take its time
            surroundings=captured_output() if self.capture else contextlib.nullcontext(),
        )

    def attempt(self, planned: PlannedCase, index: int, number: int) -> Attempt:
        """An attempt of a trial, not yet begun."""
        return TrialAttempt(self.agent, planned, index, self.settings, number)


def local_executor(site: Site) -> Executor:
    """Trials on this machine: in this process, or each in its own."""
    if site.travel is not None and site.isolation == "process":
        from seatrial.runner.executors.process import ProcessExecutor
        from seatrial.runner.processes import Launcher

        launcher = Launcher(site.travel.bench, site.travel.setup)
        return ProcessExecutor(site.agent, site.settings, launcher, site.travel.scratch, site.concurrency)
    return LocalExecutor(site.agent, site.settings, site.concurrency, site.capture)
