"""Sides of a comparison that stand in a JSON file: approved baselines, `results.json` of runs, results of a Harness."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seatrial.core.case import Risk
from seatrial.core.grade import Grade, GraderFailure
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, Tokens, TrialRecord, TrialStatus
from seatrial.core.wording import first_problem
from seatrial.errors import UsageError
from seatrial.verdict.baseline import parse_baseline, side_of_baseline
from seatrial.verdict.harness_results import HarnessResult, parse_harness_json, read_json
from seatrial.verdict.metrics import CaseVerdict
from seatrial.verdict.sides import Side, SideCase

__all__ = ["read_side", "side_of_harness", "side_of_summary"]


def side_of_harness(results: Iterable[HarnessResult], label: str) -> Side:
    """A side from results of the function-style harness, which its user declares free of chance."""
    return Side(label, tuple(_from_harness(result) for result in results))


def _from_harness(result: HarnessResult) -> SideCase:
    record = TrialRecord(
        case_id=result.name,
        status=TrialStatus(result.status),
        invalid_reason=InvalidReason.GRADER if result.passed is None else None,
        stop_reason=StopReason.ANSWERED,
        detail="" if result.passed else result.detail,
        output=result.output,
    )
    return SideCase(
        case_id=result.name,
        verdict=CaseVerdict(result.status),
        passes=int(result.passed is True),
        valid=int(result.passed is not None),
        trials=1,
        reason=result.detail,
        deterministic=True,
        records=(record,),
    )


class _Lenient(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _FailureRow(_Lenient):
    name: str
    reason: str = ""
    required: bool = True


class _LastAttempt(_Lenient):
    tokens: Tokens = Tokens()
    cost_usd: float | None = None


class _TrialRow(_Lenient):
    trial: int
    status: TrialStatus
    invalid_reason: InvalidReason | None = None
    stop_reason: StopReason
    reason: str = ""
    output: Any = None
    outcome: dict[str, Any] | None = None
    steps: int | None = None
    tools: dict[str, int] = Field(default_factory=dict)
    handoffs: tuple[tuple[str, str], ...] = ()
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    last_attempt: _LastAttempt | None = None
    """Where there were several: then `tokens` and `cost_usd` are of all of them."""
    grades: tuple[Grade, ...] = ()
    grader_failures: tuple[_FailureRow, ...] = ()


class _CaseRow(_Lenient):
    id: str
    suite: str = ""
    risk: Risk = "medium"
    gate: bool = True
    deterministic: bool = False
    verdict: CaseVerdict
    passes: int
    valid: int
    trials: int
    required: int = 1
    reason: str = ""
    digest: str = ""
    trials_detail: tuple[_TrialRow, ...] = ()


class _Time(_Lenient):
    id: str
    trial: int
    ms: float | None = None


class _Times(_Lenient):
    trials: tuple[_Time, ...] = ()


class _Figures(_Lenient):
    steps: dict[str, Any] = Field(default_factory=dict)
    saved: dict[str, Any] | None = None


class _ResultsFile(_Lenient):
    version: Literal[1]
    cases: tuple[_CaseRow, ...]
    figures: _Figures = _Figures()
    times: _Times = _Times()

    @property
    def steps_are_tool_calls(self) -> bool:
        return list(self.figures.steps) == ["tool calls"]


def side_of_summary(data: Any, label: str) -> Side:
    """A side from the content of a run's `results.json`; UsageError naming `label` when it is something else."""
    try:
        file = _ResultsFile.model_validate(data)
    except ValidationError as error:
        raise UsageError(f"{label}: is no summary of a run: {first_problem(error)}") from error
    took = {(time.id, time.trial): time.ms for time in file.times.trials}
    return Side(label, tuple(_from_row(row, took, file) for row in file.cases))


def _from_row(row: _CaseRow, took: Mapping[tuple[str, int], float | None], file: _ResultsFile) -> SideCase:
    more = [
        {"latency_ms": took.get((row.id, trial.trial)), "steps_are_tool_calls": file.steps_are_tool_calls}
        for trial in row.trials_detail
    ]
    return SideCase(
        case_id=row.id,
        verdict=row.verdict,
        passes=row.passes,
        valid=row.valid,
        trials=row.trials,
        required=row.required,
        reason=row.reason,
        digest=row.digest,
        suite=row.suite,
        risk=row.risk,
        gate=row.gate,
        deterministic=row.deterministic,
        curtailed=file.figures.saved is not None,
        records=tuple(_record(row, trial, fields) for trial, fields in zip(row.trials_detail, more, strict=True)),
    )


_SHARED = _TrialRow.model_fields.keys() & TrialRecord.model_fields.keys() - {"grader_failures"}


def _record(row: _CaseRow, trial: _TrialRow, more: Mapping[str, Any]) -> TrialRecord:
    shared = {name: getattr(trial, name) for name in _SHARED}
    if trial.last_attempt is not None:
        shared.update(tokens=trial.last_attempt.tokens, cost_usd=trial.last_attempt.cost_usd)
    return TrialRecord(
        **shared,
        **more,
        case_id=row.id,
        suite=row.suite,
        case_digest=row.digest,
        trial_index=trial.trial,
        detail=trial.reason,
        grader_failures=tuple(
            GraderFailure(name=failure.name, error="", message=failure.reason, required=failure.required)
            for failure in trial.grader_failures
        ),
    )


def read_side(path: Path) -> Side:
    """A side from a JSON file: an approved baseline, a run's `results.json`, or results of a Harness.

    Raises UsageError when the file cannot be read or is none of them.
    """
    data, label = read_json(path), str(path)
    keys = data.keys() if isinstance(data, dict) else set()
    if "approver" in keys:
        return side_of_baseline(parse_baseline(data, label), path)
    if "cases" in keys:
        return side_of_summary(data, label)
    if "results" in keys:
        return side_of_harness(parse_harness_json(data, label), label)
    raise UsageError(
        f"{label}: is neither an approved baseline, nor the results.json of a run, nor results of a Harness"
    )
