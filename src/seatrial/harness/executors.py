"""Where a plan's trials run."""

from __future__ import annotations

from seatrial.core.ports import Executor
from seatrial.errors import UsageError
from seatrial.harness.plan import Plan
from seatrial.harness.worker import setup_for
from seatrial.runner.executors import EXECUTORS, Site, Travel
from seatrial.runner.trial import TrialSettings

__all__ = ["executor_for"]

_BENCH = "seatrial.harness.worker:bench"


def executor_for(planned: Plan, settings: TrialSettings) -> Executor:
    """The executor that a plan asks for. UsageError when there is none of that name, or its agent cannot go there."""
    request = planned.request
    name = "local" if request.debug else request.executor or "local"
    if request.scheduler is not None and name == "local":
        raise UsageError("a scheduler is for trials on other machines; add --executor dask")
    if planned.cassettes is not None and name != "local":
        raise UsageError(f"cassettes need trials on this machine; run without --executor {name}")
    here = name == "local" and planned.isolation == "thread"
    site = Site(
        agent=planned.agent,
        settings=settings,
        concurrency=planned.concurrency,
        capture=settings.on_agent_error is None,
        isolation=planned.isolation,
        travel=None if here else Travel(_BENCH, setup_for(planned, request), planned.scratch()),
        scheduler=request.scheduler,
    )
    try:
        executor: Executor = EXECUTORS.load(name)(site)
    except UsageError:
        planned.scratch.remove()
        raise
    return executor
