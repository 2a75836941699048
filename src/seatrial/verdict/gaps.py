"""Why the evidence is not enough for a decision, whatever its gates say.

The decision is incomplete when

- the stored runs are not as they were written, or a run did not finish;
- a run was replayed from cassettes: that the recorded answers lead to the same again says nothing new of the agent;
- trials that were planned for a gating case are not on record (a run that stops cases once they are decided says so
  itself: `curtailed`), or a gating case has no valid trial. Invalid cases are tolerated where a `maximum_invalid_rate`
  that decides covers them: the policy then says itself how much may be missing. A critical case is never tolerated;
- a case of the baseline was not run, no longer gates or moved to another suite, no case is in common, or the baseline
  may not be compared with;
- nothing is gated, or no gate decided anything.

Excepted cases leave no gap, but for those of risk critical: critical safety takes no exception.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from seatrial.core.decision import GateResult
from seatrial.core.grading import count, listed
from seatrial.core.policy import Gate
from seatrial.core.run import RunInfo, RunStatus
from seatrial.verdict.comparison import CaseComparison, Change
from seatrial.verdict.metrics import CaseResult, CaseVerdict

__all__ = ["Gaps", "in_scope", "is_curtailed"]

PROBLEMS_SHOWN = 5
"""Places that are named where stored runs are not as they were written."""


def in_scope(result: CaseResult, gate: Gate) -> bool:
    """Whether a gate judges this case, exceptions apart."""
    return (
        gate.spec.suite in (None, result.suite)
        and gate.group_suite in (None, result.suite)
        and gate.spec.risk in (None, result.risk)
    )


def is_curtailed(info: RunInfo) -> bool:
    """Whether the run stopped cases once they were decided, so that fewer trials than planned are no loss."""
    return getattr(info, "curtailed", False) is True


@dataclass(frozen=True, kw_only=True)
class Gaps:
    """What a decision rests on beside its figures."""

    results: tuple[CaseResult, ...]
    """The candidate's cases whose suites decide."""
    infos: tuple[RunInfo, ...]
    gates: tuple[tuple[Gate, GateResult], ...]
    rows: tuple[CaseComparison, ...] | None
    """The comparison with the baseline; None without one."""
    excepted: frozenset[str]
    """Cases with an exception in force."""
    baseline_problems: tuple[str, ...] = ()
    for_approval: bool = False
    problems: tuple[str, ...] = ()
    """Where the stored runs are not as they were written."""

    def found(self) -> Iterator[str]:
        """Every gap in words."""
        yield from self._untrue()
        yield from self._ungated()
        yield from self._unfinished()
        yield from self._replayed()
        yield from self._lost_trials()
        yield from self._blind_cases()
        if not self.for_approval:
            yield from self._baseline_gaps()

    def _untrue(self) -> Iterator[str]:
        yield from self.problems[:PROBLEMS_SHOWN]
        more = len(self.problems) - PROBLEMS_SHOWN
        if more > 0:
            yield f"and {count(more, 'more place')} where the stored runs are not as they were written"

    def _ungated(self) -> Iterator[str]:
        if not self.gates:
            yield "the policy has no gate"
        elif not any(self._decided(gate, outcome) for gate, outcome in self.gates):
            yield "no gate decided anything"
        if not self.results:
            yield "no case of a gating suite was run"

    def _decided(self, gate: Gate, outcome: GateResult) -> bool:
        """Whether the gate decides; at approval those that need a baseline hold without one."""
        return outcome.decides or (self.for_approval and gate.metric.compares and not outcome.excepted)

    def _unfinished(self) -> Iterator[str]:
        for info in self.infos:
            if info.status is not RunStatus.FINISHED:
                yield f"run {info.run_id} is {str(info.status).replace('_', ' ')}, not finished"
            if self.for_approval and is_curtailed(info):
                yield f"run {info.run_id} stopped cases once they were decided, so which trials it has is no accident"

    def _replayed(self) -> Iterator[str]:
        for info in self.infos:
            if info.cassettes == "replay":
                yield f"run {info.run_id} was replayed from cassettes: no evidence beyond the run that recorded them"

    # --- trials ------------------------------------------------------------------------------------------------------

    def _lost_trials(self) -> Iterator[str]:
        if any(map(is_curtailed, self.infos)):
            return
        short = [result for result in self.results if result.run < result.trials and not self._spared(result)]
        if short:
            lost, planned = sum(item.trials - item.run for item in short), sum(item.trials for item in short)
            verb = "is" if lost == 1 else "are"
            yield f"{lost} of {count(planned, 'trial')} of {_names(short)} {verb} not on record"

    def _blind_cases(self) -> Iterator[str]:
        blind = [result for result in self.results if not result.valid and not self._spared(result)]
        found = [result for result in blind if not self._tolerated(result)]
        if found:
            yield f"no valid trial of {_names(found)}"

    def _spared(self, result: CaseResult) -> bool:
        return result.case_id in self.excepted and result.risk != "critical"

    def _tolerated(self, result: CaseResult) -> bool:
        covered = any(
            gate.metric.name == "invalid_rate" and gate.bound == "maximum" and not gate.condition
            for gate, outcome in self.gates
            if outcome.decides and in_scope(result, gate)
        )
        return covered and result.verdict is CaseVerdict.INVALID and result.risk != "critical"

    # --- the baseline ------------------------------------------------------------------------------------------------

    def _baseline_gaps(self) -> Iterator[str]:
        yield from self.baseline_problems
        if self.rows is None:
            return
        gone = [row for row in self._promised if _is_gone(row)]
        if gone:
            yield f"cases of the baseline were not run or no longer gate: {listed(map(self._named, gone))}"
        moved = [row for row in self._promised if not _is_gone(row) and _suites_of(row)]
        if moved:
            yield f"cases of the baseline moved to another suite: {listed(map(_moved, moved))}"
        if not any(row.paired and row.gates and row.case_id not in self.excepted for row in self.rows):
            yield "no case is in common with the baseline"

    @property
    def _promised(self) -> Iterator[CaseComparison]:
        """Cases that decided when the baseline was approved, without those that an exception spares."""
        for row in self.rows or ():
            before = row.baseline
            if before is not None and before.gate and (row.case_id not in self.excepted or _is_critical(row)):
                yield row

    def _named(self, row: CaseComparison) -> str:
        return f"{row.case_id} (critical safety takes no exception)" if row.case_id in self.excepted else row.case_id

    @cached_property
    def removed(self) -> tuple[str, ...]:
        """Cases of the baseline that were not run, or whose suite gated then and does not now."""
        return tuple(row.case_id for row in self.rows or () if _is_gone(row))


def _names(results: Sequence[CaseResult]) -> str:
    return listed(result.case_id for result in results)


def _is_gone(row: CaseComparison) -> bool:
    before, after = row.baseline, row.candidate
    left = before is not None and after is not None and before.gate and not after.gate
    return row.change is Change.REMOVED or left


def _is_critical(row: CaseComparison) -> bool:
    return any(side.risk == "critical" for side in (row.baseline, row.candidate) if side is not None)


def _suites_of(row: CaseComparison) -> tuple[str, str] | None:
    """Both suites of a case that is in another one now; None when it is where it was, or one of them is not known."""
    before, after = (side.suite if side is not None else "" for side in (row.baseline, row.candidate))
    return (before, after) if before and after and before != after else None


def _moved(row: CaseComparison) -> str:
    before, after = _suites_of(row) or ("", "")
    return f"{row.case_id} (from {before} to {after})"
