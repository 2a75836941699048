"""Grading a stored trial again: the agent is not called, what it did is read back.

Latency, cost and outcome are those on record. Own graders get as `context.output` what was stored, read back into
Python where its kind can be. What was masked when it was stored is put back where its value is known; since that cannot
always be exact (a pattern's value is gone, an encoded one comes back plain), nothing is guessed: under an unchanged
case the built-in grades stand as they were given when the values were seen, and under a changed one an expectation
that rests on a masked value abstains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.core.encoding import dumps, from_json
from seatrial.core.grade import Grade
from seatrial.core.grading import abstained
from seatrial.core.ports import Grader, GradingContext, PlannedCase
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus
from seatrial.environment.secrets import Redactor
from seatrial.graders import BuiltIn
from seatrial.runner.grading import Grading, grade

__all__ = ["Evidence", "graded_again", "refused"]

_BY_CANARIES = ("permissions", "safety")
_CANARIES_GONE = "the fixture planted canaries while it ran; they are not on record"
_VALUE_MASKED = "it rests on a value that was masked when the trial was stored"


@dataclass(frozen=True)
class Evidence:
    """What a run folder holds of one trial, known secrets put back."""

    record: TrialRecord
    trace: Trace
    outcome: Mapping[str, Any] | None
    masked: bool = False
    """Whether anything in it had been masked."""
    unknown: bool = False
    """Whether something still is: by a pattern, or because the value is not known now."""


async def graded_again(planned: PlannedCase, evidence: Evidence, redactor: Redactor) -> TrialRecord:
    """The record with the grades that the case's present graders give."""
    record, trace = evidence.record, evidence.trace
    standing = _standing(planned, evidence)
    graders = [_able(grader, planned, evidence, redactor) for grader in planned.graders if grader.name not in standing]
    context = GradingContext(
        planned.case,
        trace,
        evidence.outcome,
        output=from_json(trace.outputs[-1]) if trace.outputs else None,
        expected=planned.case.expected,
        secrets=planned.secrets,
        rules=planned.rules,
        latency_ms=record.latency_ms,
        cost_usd=record.cost_usd,
    )
    grading = await grade(graders, context)
    if standing:
        grading = _together(planned, grading, record, standing)
    foreseen = record.stop_reason is StopReason.WAITING_APPROVAL and not record.detail
    verdict = grading.verdict(record.stop_reason, record.broken, foreseen=foreseen)
    return record.model_copy(update={"suite": planned.case.suite, "case_digest": planned.digest, **verdict})


def refused(planned: PlannedCase, record: TrialRecord, why: str) -> TrialRecord:
    """The record of a trial that says nothing about the present case: every grade abstains, the trial is invalid."""
    present = record.model_copy(update={"suite": planned.case.suite, "case_digest": planned.digest})
    if record.stop_reason is StopReason.HARNESS_ERROR:
        return present
    silent = abstained(why)
    grades = tuple(
        silent.model_copy(update={"name": grader.name, "required": grader.required}) for grader in planned.graders
    )
    verdict = {"status": TrialStatus.INVALID, "invalid_reason": InvalidReason.UNOBSERVED}
    return present.model_copy(update={**verdict, "grades": grades, "grader_failures": ()})


# --- what was masked ------------------------------------------------------------------------------------------------


def _standing(planned: PlannedCase, evidence: Evidence) -> frozenset[str]:
    """Names of the graders whose grades stand as they were given live."""
    record = evidence.record
    if not (evidence.masked or record.canaries_planted) or record.case_digest != planned.digest:
        return frozenset()
    return frozenset(grader.name for grader in planned.graders if isinstance(grader, BuiltIn))


def _together(planned: PlannedCase, fresh: Grading, record: TrialRecord, standing: frozenset[str]) -> Grading:
    """Fresh grades and those that stand, in the order of the graders."""
    place = {grader.name: number for number, grader in enumerate(planned.graders)}
    grades = [*fresh.grades, *(item for item in record.grades if item.name in standing)]
    failures = [*fresh.failures, *(item for item in record.grader_failures if item.name in standing)]
    return Grading(
        sorted(grades, key=lambda item: place[item.name]), sorted(failures, key=lambda item: place[item.name])
    )


def _able(grader: Grader, planned: PlannedCase, evidence: Evidence, redactor: Redactor) -> Grader:
    """The grader, or one that abstains in its place where what it needs is not on record."""
    if not isinstance(grader, BuiltIn):
        return grader
    if evidence.record.canaries_planted and grader.key in _BY_CANARIES:
        return _Unrecorded(grader, _CANARIES_GONE)
    if evidence.unknown and _rests_on_masked(grader, planned, redactor):
        return _Unrecorded(grader, _VALUE_MASKED)
    return grader


def _rests_on_masked(grader: BuiltIn, planned: PlannedCase, redactor: Redactor) -> bool:
    wanted = dumps([grader.wanted, dict(planned.secrets) if grader.key in _BY_CANARIES else None])
    if "$input" in wanted:
        wanted += dumps(planned.case.input)
    return "[secret:" in redactor.unmask(redactor.text(wanted))


@dataclass(frozen=True)
class _Unrecorded:
    """A grader whose evidence is not on record."""

    grader: Grader
    why: str
    blocking: bool = False

    @property
    def name(self) -> str:
        return self.grader.name

    @property
    def required(self) -> bool:
        return self.grader.required

    @property
    def needs_answer(self) -> bool:
        return self.grader.needs_answer

    def grade(self, _: GradingContext) -> Grade:
        return abstained(self.why)
