"""Where a plan's trials run."""

from __future__ import annotations

from seatrial.core.ports import Executor
from seatrial.harness.plan import Plan
from seatrial.harness.worker import setup_for
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.executors.process import ProcessExecutor
from seatrial.runner.processes import Launcher
from seatrial.runner.trial import TrialSettings

__all__ = ["executor_for"]

_BENCH = "seatrial.harness.worker:bench"


def executor_for(planned: Plan, settings: TrialSettings) -> Executor:
    """The executor that a plan asks for. UsageError when its agent cannot go there."""
    if planned.isolation == "process":
        launcher = Launcher(_BENCH, setup_for(planned, planned.request))
        return ProcessExecutor(planned.agent, settings, launcher, planned.scratch(), planned.concurrency)
    return LocalExecutor(planned.agent, settings, planned.concurrency, capture=settings.on_agent_error is None)
