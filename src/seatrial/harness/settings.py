"""What of a plan holds for each of its trials, wherever they run."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from seatrial.environment.pace import Rates
from seatrial.environment.surroundings import Surroundings
from seatrial.harness.cassettes import model_urls
from seatrial.harness.plan import Plan
from seatrial.runner.trial import TrialSettings
from seatrial.runner.waiting import Places

__all__ = ["settings_for"]


def settings_for(
    planned: Plan,
    debugger: Callable[[BaseException], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> TrialSettings:
    """Settings of the plan's trials; `debugger` is called with what an agent raised.

    By `clock`, in seconds, looks at what the trials share are spaced.
    """
    project, budget = planned.project, planned.budget
    return TrialSettings(
        model_urls=model_urls(project),
        proxy=None if planned.cassettes is None else planned.cassettes.address,
        prices=project.prices,
        seed=planned.info.seed,
        priced_only=budget.cost_usd is not None and not budget.allow_unknown_cost,
        rates=Rates(project.rates),
        judges=None if project.judge_concurrency is None else Places(project.judge_concurrency),
        on_agent_error=debugger,
        surroundings=Surroundings(
            {"the project's folder": Path(project.root), "the working folder": Path()},
            expected=_certain(planned),
            clock=clock,
        ),
    )


def _certain(planned: Plan) -> int:
    """How many trials will begin for certain; 0 where they run one by one, or nobody knows."""
    open_ended = planned.resumes or planned.info.curtailed or planned.budget.limited
    return 0 if planned.concurrency == 1 or open_ended else planned.total
