"""A candidate beside a baseline, case by case.

Cases are paired by id on equal digests. A case `broke` when it met its required successes and now certainly does not
(`fixed`: the reverse); otherwise its pass rates decide between `worse`, `better` and `same`. A case without a valid
trial on a side is `incomplete`. Where a side stopped its trials once a case was decided (curtailment), only verdicts
compare: the case broke, is fixed or the same, and `incomplete` when one side has no verdict. `new`, `removed` and
`edited` cases are listed apart; new and edited ones decide nothing, and a removed one leaves the comparison incomplete:
what the baseline promises was not tried.

A broken case decides by itself when chance cannot explain it (the case or both agents are declared deterministic) or
when its risk is critical; any other is within noise and asks for review. Both sides keep their trials, so that tests
of more than rates can be added here.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from seatrial.errors import ExitCode
from seatrial.verdict.metrics import CaseVerdict
from seatrial.verdict.sides import Side, SideCase

__all__ = ["APART", "CaseComparison", "Change", "Comparison", "compare"]


class Change(StrEnum):
    """What became of a case from baseline to candidate, most urgent first."""

    BROKE = "broke"
    INCOMPLETE = "incomplete"
    WORSE = "worse"
    EDITED = "edited"
    REMOVED = "removed"
    NEW = "new"
    FIXED = "fixed"
    BETTER = "better"
    SAME = "same"


APART = frozenset({Change.NEW, Change.REMOVED, Change.EDITED})
_DECIDED = frozenset({CaseVerdict.PASSED, CaseVerdict.FAILED})
_UNTRIED = frozenset({Change.INCOMPLETE, Change.REMOVED})


@dataclass(frozen=True)
class CaseComparison:
    """One case on both sides."""

    case_id: str
    change: Change
    baseline: SideCase | None
    """None for a new case."""
    candidate: SideCase | None
    """None for a removed case."""

    @property
    def paired(self) -> bool:
        """Whether both sides ran it in the same form."""
        return self.change not in APART

    @property
    def gates(self) -> bool:
        """Whether its suite decides anything."""
        return all(side.gate for side in (self.baseline, self.candidate) if side is not None)

    @property
    def grounds(self) -> Literal["deterministic", "critical"] | None:
        """Why a change here counts without further proof; None: it may be chance."""
        both = [side for side in (self.baseline, self.candidate) if side is not None]
        if all(side.deterministic for side in both):
            return "deterministic"
        return "critical" if any(side.risk == "critical" for side in both) else None


@dataclass(frozen=True)
class Comparison:
    """All cases of both sides, most urgent changes first."""

    baseline: str
    candidate: str
    """Labels of the sides."""
    cases: tuple[CaseComparison, ...]
    problems: tuple[str, ...] = ()
    """Where a stored run is not as it was written: then nothing here is sure."""

    @property
    def counts(self) -> dict[Change, int]:
        """Cases by change, those that occur."""
        found = Counter(row.change for row in self.cases)
        return {change: found[change] for change in Change if found[change]}

    @property
    def curtailed(self) -> tuple[str, ...]:
        """Which sides (`baseline`, `candidate`) stopped trials once a case was decided: only verdicts compare."""
        sides = {"baseline": (row.baseline for row in self.cases), "candidate": (row.candidate for row in self.cases)}
        return tuple(name for name, cases in sides.items() if any(case and case.curtailed for case in cases))

    @property
    def replayed(self) -> tuple[str, ...]:
        """Which sides (`baseline`, `candidate`) hold trials that were replayed from cassettes."""
        sides = {"baseline": (row.baseline for row in self.cases), "candidate": (row.candidate for row in self.cases)}
        return tuple(name for name, cases in sides.items() if any(case and case.replayed for case in cases))

    @property
    def in_common(self) -> int:
        """Cases that both sides ran in the same form."""
        return sum(row.paired for row in self.cases)

    def exit_code(self, *, strict: bool = False) -> ExitCode:
        """FAILED on a broken case that counts (`strict`: on any); else INCOMPLETE when a stored run is not as it was
        written, when a case has no valid trial on a side, when the candidate lacks one of the baseline's, or when
        nothing is in common; else REVIEW when a case broke within noise; else PASS.

        Suites that do not gate are listed and decide nothing, unless `strict`.
        """
        broke = [row for row in self.cases if row.change is Change.BROKE and (strict or row.gates)]
        if any(strict or row.grounds for row in broke):
            return ExitCode.FAILED
        if self.problems or not self.in_common or any(row.change in _UNTRIED and row.gates for row in self.cases):
            return ExitCode.INCOMPLETE
        return ExitCode.REVIEW if broke else ExitCode.PASS


def compare(baseline: Side, candidate: Side) -> Comparison:
    """Pair two sides by case id."""
    before = {case.case_id: case for case in baseline.cases}
    after = {case.case_id: case for case in candidate.cases}
    rows = [_compared(case_id, before.get(case_id), after.get(case_id)) for case_id in {**before, **after}]
    urgency = {change: position for position, change in enumerate(Change)}
    rows.sort(key=lambda row: (urgency[row.change], row.grounds is None))
    return Comparison(baseline.label, candidate.label, tuple(rows), baseline.problems + candidate.problems)


def _compared(case_id: str, before: SideCase | None, after: SideCase | None) -> CaseComparison:
    if before is None or after is None:
        change = Change.NEW if before is None else Change.REMOVED
    elif before.digest and after.digest and before.digest != after.digest:
        change = Change.EDITED
    else:
        change = _change(before, after)
    return CaseComparison(case_id, change, before, after)


def _change(before: SideCase, after: SideCase) -> Change:
    if not before.valid or not after.valid:
        return Change.INCOMPLETE
    match before.verdict, after.verdict:
        case CaseVerdict.PASSED, CaseVerdict.FAILED:
            return Change.BROKE
        case CaseVerdict.FAILED, CaseVerdict.PASSED:
            return Change.FIXED
    if before.curtailed or after.curtailed:
        return Change.SAME if before.verdict is after.verdict in _DECIDED else Change.INCOMPLETE
    # counted in whole numbers: 2/3 and 4/6 are the same rate
    now, then = after.passes * before.valid, before.passes * after.valid
    return Change.SAME if now == then else (Change.BETTER if now > then else Change.WORSE)
