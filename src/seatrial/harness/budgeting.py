"""What a run may spend, from the request to the hint on how to go on."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import ceil, floor, fsum, log10
from pathlib import Path

from seatrial.core.ledger import Ledger
from seatrial.core.ports import PlannedCase, Sink, TrialSource
from seatrial.core.project import Project
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trial import TrialKey, TrialRecord
from seatrial.errors import UsageError
from seatrial.runner.budget import Budget, WithinBudget, known_cost_of_attempt, own_limit
from seatrial.runner.curtailment import CurtailedTrials
from seatrial.runner.schedule import FixedTrials
from seatrial.store.rundir import RunFolder

__all__ = ["Course", "budget_for_the_rest", "course_of", "refuse_unknown_prices", "trials_of"]

_LIMITS: tuple[str, ...] = ("max_cost", "max_time")
_WAY_OUT = "or go on with --allow-unknown-cost, which counts an unknown cost as nothing"


def refuse_unknown_prices(budget: Budget, project: Project, planned: Sequence[PlannedCase]) -> None:
    """Under a budget of money nothing starts whose cost nobody could know.

    That is a judge whose model has no price, and, in a project without any price, a case without a limit of its own: a
    case with one says that its agent's cost is observed. Raises UsageError.
    """
    if budget.cost_usd is None or budget.allow_unknown_cost:
        return
    for item in planned:
        for model in _judge_models(item):
            if model not in project.prices and model.partition(":")[2] not in project.prices:
                raise UsageError(
                    f"--max-cost: the price of the judge's model {model!r} is unknown (case {item.case.id}); "
                    f"name it under `prices` in seatrial.yaml, {_WAY_OUT}"
                )
    blind = [item.case.id for item in planned if own_limit(item.case) is None]
    if blind and not project.prices:
        raise UsageError(
            f"--max-cost: no price is known, so the cost of {blind[0]} cannot be; name the models under `prices` in "
            "seatrial.yaml, or give cases whose agent reports its cost a limit (thresholds.max_estimated_cost_usd or "
            f"limits.cost_usd), {_WAY_OUT}"
        )


def _judge_models(item: PlannedCase) -> list[str]:
    judges = [grader for grader in item.graders if getattr(grader, "judge", False)]
    models = (getattr(judge, "model", None) for judge in judges)
    return [model for model in models if isinstance(model, str)]


@dataclass(frozen=True)
class Course:
    """The trials of a run on their way: where they come from, where they go."""

    source: TrialSource
    sink: Sink
    guard: WithinBudget | None = None
    """None: nothing is limited."""

    @property
    def status(self) -> RunStatus:
        """How a run ended whose trials all came to their end."""
        ran_out = self.guard is not None and self.guard.ran_out
        return RunStatus.OUT_OF_BUDGET if ran_out else RunStatus.FINISHED

    def check(self, folder: Path) -> None:
        """Raises UsageError when the run had to end because a price is unknown."""
        if self.guard is not None and self.guard.problem:
            raise UsageError(
                f"--max-cost: {self.guard.problem}, so no further trial was started ({folder} keeps what ran); "
                f"{self.guard.remedy}, {_WAY_OUT}"
            )


def trials_of(planned: Sequence[PlannedCase], info: RunInfo, only: Container[TrialKey] | None = None) -> TrialSource:
    """All trials of a plan (`only`: no others than these), or no more than its verdicts need."""
    return CurtailedTrials(planned) if info.curtailed else FixedTrials(planned, only)


def course_of(
    source: TrialSource, sink: Sink, budget: Budget, project: Project, kept: Iterable[TrialRecord] = ()
) -> Course:
    """These trials within the budget. `kept`: every attempt on record already, whose cost counts."""
    if not budget.limited:
        return Course(source, sink)
    guard = WithinBudget(source, sink, budget, prices=project.prices, kept=kept)
    return Course(guard, guard, guard)


def budget_for_the_rest(folder: Path, info: RunInfo, records: Ledger) -> dict[str, float]:
    """A budget in which a run that ran out of it should come to its end, as far as the trials on record tell; by the
    names of the options, those that the run had."""
    asked: dict[str, float] = {name: float(info.options[name]) for name in _LIMITS if name in info.options}
    if "max_cost" in asked:
        asked["max_cost"] = _enough(asked["max_cost"], folder, info, records)
    if "max_time" in asked:
        asked["max_time"] = _time_enough(asked["max_time"], info, records)
    return asked


def _enough(limit: float, folder: Path, info: RunInfo, records: Ledger) -> float:
    """What is spent already, and what all that is left may cost: as the trials on record, else as its case allows."""
    spent, trials = fsum(map(known_cost_of_attempt, records.entries())), records.trials
    limits = {case.id: own_limit(case) or 0.0 for case in RunFolder(folder).cases()}
    if trials and spent:
        whole = spent / trials * max(info.trials_planned, trials) * 1.1
    else:
        whole = max(fsum(limits.get(case_id, 0.0) * planned for case_id, planned in info.trials.items()), 2 * limit)
    return _rounded_up(max(whole, spent + max(limits.values(), default=0.0), limit))


def _time_enough(limit: float, info: RunInfo, records: Ledger) -> float:
    """Seconds for all that is left, at the pace of the session that ran out of time, and half as much again.

    The time of a session is its own: what earlier ones took does not count.
    """
    began = info.resumed[-1].at if info.resumed else info.started
    if info.ended is None:
        return limit
    took = (datetime.fromisoformat(info.ended) - datetime.fromisoformat(began)).total_seconds()
    ran = sum((record.started or "") >= began for record in records) if info.resumed else records.trials
    left = max(info.trials_planned - records.trials, 1)
    return _rounded_up(max(limit, took / max(ran, 1) * left * 1.5))


def _rounded_up(value: float) -> float:
    """To two significant digits."""
    step = 10.0 ** (floor(log10(value)) - 1)
    return round(ceil(value / step - 1e-9) * step, 12)
