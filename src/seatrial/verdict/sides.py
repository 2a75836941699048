"""The sides of a comparison, and where one comes from: a run, its `results.json`, or results of a Harness."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from seatrial.core.case import Case, Risk
from seatrial.core.grade import Grade, GraderFailure
from seatrial.core.run import RunInfo
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, Tokens, TrialRecord, TrialStatus
from seatrial.errors import UsageError
from seatrial.verdict.harness_results import HarnessResult, parse_harness_json, read_json
from seatrial.verdict.metrics import CaseResult, CaseVerdict, case_results

__all__ = ["Side", "SideCase", "read_side", "side_of_harness", "side_of_results", "side_of_run"]


@dataclass(frozen=True)
class SideCase:
    """One case as one side ran it."""

    case_id: str
    verdict: CaseVerdict
    passes: int
    valid: int
    trials: int
    """Planned."""
    reason: str = ""
    digest: str = ""
    """Empty when the side knows none: then it compares with any."""
    suite: str = ""
    risk: str = "medium"
    gate: bool = True
    deterministic: bool = False
    records: tuple[TrialRecord, ...] = ()
    """The deciding attempt of every trial on record."""

    @property
    def rate(self) -> float | None:
        """Passes among valid trials; None when there is none."""
        return self.passes / self.valid if self.valid else None


@dataclass(frozen=True)
class Side:
    """One build's results."""

    label: str
    """What a reader knows it by: build, folder or file."""
    cases: tuple[SideCase, ...]


def side_of_run(info: RunInfo, cases: Sequence[Case], records: Iterable[TrialRecord], label: str = "") -> Side:
    """A side from a run's own records. `label` defaults to the build and the run's id."""
    results = case_results(info, cases, records)
    return Side(label or f"{info.build_id} ({info.run_id})", tuple(_from_result(result) for result in results))


def _from_result(result: CaseResult) -> SideCase:
    return SideCase(
        case_id=result.case_id,
        verdict=result.verdict,
        passes=result.passes,
        valid=result.valid,
        trials=result.trials,
        reason=result.reason,
        digest=result.digest,
        suite=result.suite,
        risk=result.risk,
        gate=result.gate,
        deterministic=result.deterministic,
        records=tuple(trial.last for trial in result.recorded),
    )


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
    reason: str = ""
    digest: str = ""
    trials_detail: tuple[_TrialRow, ...] = ()


class _ResultsFile(_Lenient):
    version: Literal[1]
    cases: tuple[_CaseRow, ...]


def side_of_results(data: Any, label: str) -> Side:
    """A side from the content of a run's `results.json`; UsageError naming `label` when it is something else."""
    try:
        rows = _ResultsFile.model_validate(data).cases
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{label}: is no summary of a run: {place}: {first['msg']}") from error
    return Side(label, tuple(_from_row(row) for row in rows))


def _from_row(row: _CaseRow) -> SideCase:
    return SideCase(
        case_id=row.id,
        verdict=row.verdict,
        passes=row.passes,
        valid=row.valid,
        trials=row.trials,
        reason=row.reason,
        digest=row.digest,
        suite=row.suite,
        risk=row.risk,
        gate=row.gate,
        deterministic=row.deterministic,
        records=tuple(_record(row, trial) for trial in row.trials_detail),
    )


_SHARED = _TrialRow.model_fields.keys() & TrialRecord.model_fields.keys() - {"grader_failures"}


def _record(row: _CaseRow, trial: _TrialRow) -> TrialRecord:
    return TrialRecord(
        **{name: getattr(trial, name) for name in _SHARED},
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
    """A side from a JSON file: results of a Harness or a run's `results.json`.

    Raises UsageError when the file cannot be read or is neither.
    """
    data, label = read_json(path), str(path)
    if isinstance(data, dict) and "cases" in data:
        return side_of_results(data, label)
    if isinstance(data, dict) and "results" in data:
        return side_of_harness(parse_harness_json(data, label), label)
    raise UsageError(f"{label}: is neither results of a Harness nor the results.json of a run")
