"""Records made by hand, for tests of verdicts and reports."""

from __future__ import annotations

from typing import Any

from seatrial.core.case import Case, Thresholds
from seatrial.core.grade import Grade, GraderFailure, Tally, Verdict
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import AgentError, StopReason
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus


def grade(name: str, verdict: str = "pass", reason: str = "", **more: Any) -> Grade:
    return Grade(name=name, verdict=Verdict(verdict), reason=reason, **more)


def tally(hit: float, of: float) -> Tally:
    return Tally(hit=hit, of=of)


def broken(name: str, error: str = "ValueError", message: str = "it broke", *, required: bool = True) -> GraderFailure:
    return GraderFailure(name=name, error=error, message=message, required=required)


def record(case_id: str, trial: int = 1, status: str = "passed", **more: Any) -> TrialRecord:
    fields = {"stop_reason": StopReason.ANSWERED, "suite": "default", "observes": ("output", "tool_calls")} | more
    return TrialRecord(case_id=case_id, trial_index=trial, status=TrialStatus(status), **fields)


def passing(case_id: str, trial: int = 1, **more: Any) -> TrialRecord:
    return record(case_id, trial, **{"grades": (grade("answer"),)} | more)


def failing(case_id: str, trial: int = 1, reason: str = "expected 4, got 5", **more: Any) -> TrialRecord:
    return record(case_id, trial, "failed", **{"grades": (grade("answer", "fail", reason),)} | more)


def raising(case_id: str, trial: int = 1, error: str = "ValueError", message: str = "no data") -> TrialRecord:
    crash = AgentError(type=f"builtins.{error}", message=message, traceback=f"Traceback ...\n{error}: {message}\n")
    return record(case_id, trial, "failed", stop_reason=StopReason.AGENT_ERROR, error=crash)


def invalid(case_id: str, trial: int = 1, reason: str = "fixture", detail: str = "fixture: disk full") -> TrialRecord:
    return record(case_id, trial, "invalid", invalid_reason=InvalidReason(reason), detail=detail)


def ungradable(case_id: str, trial: int = 1, *graders: str) -> TrialRecord:
    """A trial whose graders all broke."""
    failures = tuple(broken(name) for name in graders or ("g",))
    return record(case_id, trial, "invalid", invalid_reason=InvalidReason.GRADER, grader_failures=failures)


def case(case_id: str, trials: int = 1, required: Any = "all", **more: Any) -> Case:
    thresholds = Thresholds(trials=trials, required_successes=required)
    return Case(id=case_id, thresholds=thresholds, **more)


def run(**more: Any) -> RunInfo:
    return RunInfo(**{"run_id": "run-1", "status": RunStatus.FINISHED} | more)
