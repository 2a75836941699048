"""Grading one trial: the same path whether it has just ended or was read back from a run folder."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.figures import figure_of
from seatrial.core.grade import Grade, GraderFailure
from seatrial.core.ports import Grader, GradingContext
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, status_of
from seatrial.environment.cancelling import cancelled_by_us
from seatrial.environment.failure import as_raised
from seatrial.runner.threads import in_thread
from seatrial.runner.waiting import Places

__all__ = ["Grading", "error_text", "grade"]

_ANSWERED, _HARNESS_ERROR = StopReason.ANSWERED, StopReason.HARNESS_ERROR
_NOBODY_WAITS = contextlib.nullcontext()


@dataclass
class Grading:
    """What the graders of one trial said, in their order."""

    grades: list[Grade] = field(default_factory=list)
    failures: list[GraderFailure] = field(default_factory=list)
    judge_costs: list[float | None] = field(default_factory=list)
    """USD of each judge that was asked; None = unknown."""

    @property
    def judge_cost_usd(self) -> float | None:
        """What all judges cost; None when that of one is unknown."""
        if not self.judge_costs:
            return 0.0
        known = [cost for cost in self.judge_costs if cost is not None]
        return figure_of(sum(known, 0.0)) if len(known) == len(self.judge_costs) else None

    def verdict(
        self, stop_reason: StopReason, broken: InvalidReason | None, *, foreseen: bool = False
    ) -> dict[str, Any]:
        """The fields of a record that follow from it; `broken` and `foreseen` as `status_of` has them."""
        status, invalid = status_of(self.grades, self.failures, stop_reason, broken, foreseen=foreseen)
        return {
            "status": status,
            "invalid_reason": invalid,
            "broken": broken,
            "grades": tuple(self.grades),
            "grader_failures": tuple(self.failures),
        }


async def grade(graders: Sequence[Grader], context: GradingContext, judges: Places | None = None) -> Grading:
    """Every grader that applies, in order. One that breaks is on record and stops no other.

    `judges` limits how many judges are asked at once over the whole run; None: no limit of their own.
    """
    grading = Grading()
    stop_reason = context.trace.stop_reason
    if stop_reason is _HARNESS_ERROR:
        return grading
    answered = stop_reason is _ANSWERED
    for grader in graders:
        if grader.needs_answer and not answered:
            continue
        asks = bool(getattr(grader, "judge", False))
        try:
            if grader.blocking or asks:
                said = await _waited_for(grader, context, judges if asks else None)
            else:
                given = grader.grade(context)
                said = given if given is None or isinstance(given, Grade) else await _finished(given)
        except BaseException as error:  # the grader call: what it raises, SystemExit too, is its own failure
            if cancelled_by_us(error):
                raise
            grading.failures.append(_failure(grader, as_raised(error)))
            grading.judge_costs += [None] if asks else []
            continue
        if said is not None:
            grading.judge_costs += [said.cost_usd] if asks else []
            named = said.name == grader.name and (grader.required or not said.required)
            grading.grades.append(said if named else _named(said, grader))
    return grading


async def _waited_for(grader: Grader, context: GradingContext, judges: Places | None) -> Grade | None:
    """What a grader says that takes its time."""
    async with _NOBODY_WAITS if judges is None else judges:
        said = await in_thread(grader.grade, context) if grader.blocking else grader.grade(context)
        return await _finished(said)


async def _finished(said: Grade | Awaitable[Grade | None] | None) -> Grade | None:
    return await said if inspect.isawaitable(said) else said


def _named(said: Grade, grader: Grader) -> Grade:
    """The grade under its grader's name."""
    return said.altered({"name": grader.name, "required": grader.required and said.required})


def _failure(grader: Grader, error: BaseException) -> GraderFailure:
    kind = type(error).__name__
    return GraderFailure(name=grader.name, error=kind, message=error_text(error), required=grader.required)


def error_text(error: BaseException) -> str:
    """The text of an exception, whatever its `__str__` does."""
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  a hostile __str__ must not hide the failure
        return f"<its text raised {type(broken).__name__}>"
