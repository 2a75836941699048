"""Hidden cases: kept out of sight of whoever builds the agent. Of them a run keeps ids and verdicts only."""

from __future__ import annotations

from seatrial.core.case import Case
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord

__all__ = ["veiled_case", "veiled_record", "veiled_trace"]


def veiled_case(case: Case) -> Case:
    """The case without what it asks and expects."""
    return Case(id=case.id, suite=case.suite, risk=case.risk, thresholds=case.thresholds)


def veiled_record(record: TrialRecord) -> TrialRecord:
    """The record without any text that would tell of the case; figures and verdicts stay."""
    grades = tuple(grade.model_copy(update={"reason": "", "evidence": (), "tallies": {}}) for grade in record.grades)
    failures = tuple(failure.model_copy(update={"message": ""}) for failure in record.grader_failures)
    gone: dict[str, object] = dict.fromkeys(("error", "output", "outcome"))
    gone |= {"detail": "", "tools": {}, "handoffs": (), "tallies": {}, "leftovers": ()}
    return record.model_copy(update={**gone, "grades": grades, "grader_failures": failures})


def veiled_trace(trace: Trace) -> Trace:
    """A trace that says only why it stopped."""
    return Trace(stop_reason=trace.stop_reason, observes=trace.observes, steps=trace.steps)
