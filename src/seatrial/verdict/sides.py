"""The two sides of a comparison: what each build did, case by case, with its trials and never only its rates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from seatrial.core.case import Case
from seatrial.core.ledger import Counted
from seatrial.core.run import RunInfo
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.errors import StorageError
from seatrial.verdict.metrics import CaseResult, CaseVerdict, case_results
from seatrial.verdict.totals import Totals, totals_of
from seatrial.verdict.trajectories import Detail, TraceOf, Trajectory, representative, trajectory_of
from seatrial.verdict.trials import Deciding

__all__ = ["Side", "SideCase", "side_of_results", "side_of_run"]


@dataclass(frozen=True)
class SideCase:
    """One case as one side ran it."""

    case_id: str
    verdict: CaseVerdict
    passes: int
    valid: int
    trials: int
    """Planned."""
    required: int = 1
    """Passes that the case needs out of `trials`."""
    reason: str = ""
    digest: str = ""
    """Empty when the side knows none: then it compares with any."""
    suite: str = ""
    risk: str = "medium"
    gate: bool = True
    deterministic: bool = False
    curtailed: bool = False
    """Whether its trials stopped once it was decided: then only its verdict compares."""
    records: Sequence[Counted] = ()
    """The deciding attempt of every trial on record; none in a baseline's file."""
    totals: Totals | None = None
    """What a baseline's file says of its trials; None: see `summed`."""
    approved: Trajectory | None = None
    """The trajectory that a baseline's file keeps."""
    detail: Detail = Detail.WHOLE
    """How much of a trajectory this side keeps."""
    trace_of: TraceOf | None = field(default=None, compare=False, repr=False)
    """Reads traces of `records`; None where there are none."""

    @property
    def rate(self) -> float | None:
        """Passes among valid trials; None when there is none, or when they stopped once the case was decided."""
        return self.passes / self.valid if self.valid and not self.curtailed else None

    @property
    def replayed(self) -> bool:
        """Whether models' answers came from cassettes: then it is no evidence beyond the run that recorded them."""
        return any(record.replayed for record in self.records)

    @cached_property
    def summed(self) -> Totals:
        """What its valid trials add up to."""
        return self.totals or totals_of(self.records)

    @property
    def failing(self) -> Counted | None:
        """The first trial that failed."""
        return next((record for record in self.records if record.status is TrialStatus.FAILED), None)

    def usual_trajectory(self) -> Trajectory | None:
        """The trajectory that stands for its passing trials (for all where none passed); None: no trace is there."""
        if self.approved is not None or self.trace_of is None:
            return self.approved
        try:
            return representative(self.records, self.trace_of)
        except StorageError:
            return None

    def trajectory(self, record: Counted) -> Trajectory | None:
        """The trajectory of one of its trials; None: no trace is there."""
        if self.trace_of is None:
            return None
        try:
            return trajectory_of(self.trace_of(record.whole), record.whole)
        except StorageError:
            return None


@dataclass(frozen=True)
class Side:
    """One build's results."""

    label: str
    """What a reader knows it by: build, folder or file."""
    cases: tuple[SideCase, ...]
    problems: tuple[str, ...] = ()
    """Where what was read is not as it was written."""


def side_of_run(
    info: RunInfo,
    cases: Sequence[Case],
    records: Iterable[TrialRecord],
    label: str = "",
    trace_of: TraceOf | None = None,
) -> Side:
    """A side from a run's own records. `label` defaults to the build and the run's id."""
    results = case_results(info, cases, records)
    return side_of_results(results, label or f"{info.build_id} ({info.run_id})", trace_of)


def side_of_results(results: Iterable[CaseResult], label: str, trace_of: TraceOf | None = None) -> Side:
    """A side from the results of cases, which may be pooled over several runs; `trace_of` reads their traces."""
    return Side(label, tuple(_from_result(result, trace_of) for result in results))


def _from_result(result: CaseResult, trace_of: TraceOf | None) -> SideCase:
    return SideCase(
        case_id=result.case_id,
        verdict=result.verdict,
        passes=result.passes,
        valid=result.valid,
        trials=result.trials,
        required=result.required,
        reason=result.reason,
        digest=result.digest,
        suite=result.suite,
        risk=result.risk,
        gate=result.gate,
        deterministic=result.deterministic,
        curtailed=result.curtailed,
        records=Deciding(result.recorded),
        trace_of=trace_of,
    )
