"""What became of every case, and what a run tells the shell.

A case is passed or failed as soon as that is certain, whatever its other trials would give. While it is not:
`invalid` when a trial of it is invalid, else `not_run` when planned trials have no record, else `ungraded`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

from seatrial.core.case import Case
from seatrial.core.ledger import Ledger
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.errors import ExitCode, StorageError
from seatrial.stats.sequential import curtailed_rate
from seatrial.verdict.trials import Alike, Trial, Trials, alike, reason_of, together

__all__ = ["CaseResult", "CaseVerdict", "case_results", "exit_code", "kinds_of", "statuses_of"]


class CaseVerdict(StrEnum):
    """What all trials of a case say together."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"
    INVALID = "invalid"
    NOT_RUN = "not_run"


class CaseResult(NamedTuple):
    """One case of a run."""

    case_id: str
    digest: str
    """Of the case and all it rests on; cases compare on equal digests."""
    reason: str
    """Why it did not pass, from its first trial that says so; empty when it passed."""
    recorded: Trials
    """In order of their numbers, attempts folded."""
    rate: float | None
    """Passes among valid trials, of a curtailed case the path-count estimate; None when there is no valid trial."""
    suite: str
    risk: str
    gate: bool
    """Whether its suite decides exit codes."""
    deterministic: bool
    """Whether the case or the agent is declared free of chance: then any flip is a change."""
    verdict: CaseVerdict
    passes: int
    valid: int
    """Trials that passed or failed."""
    trials: int
    """Trials planned, or on record when those are more."""
    run: int
    """Trials on record."""
    required: int
    """Passes that the case needs out of `trials`."""
    kinds: tuple[Alike, ...]
    """Its trials, counted by what they have in common."""
    curtailed: bool
    """Whether its trials stopped once it was decided: then its rate is estimated, and only its verdict compares."""

    @property
    def saved(self) -> int:
        """Trials that its verdict did not need, and that were not run for that reason."""
        if not self.curtailed or self.verdict not in (CaseVerdict.PASSED, CaseVerdict.FAILED):
            return 0
        return self.trials - self.run

    @property
    def invalid(self) -> dict[str, int]:
        """Invalid trials by reason."""
        if self.valid == self.run:
            return {}
        reasons: Counter[str] = Counter()
        for kind, trials in self.kinds:
            if kind.status is TrialStatus.INVALID:
                reasons[str(kind.invalid_reason or "harness")] += trials
        return dict(sorted(reasons.items()))


_OWN = CaseResult._fields.index("suite")
"""Columns that a case has for itself; all that stand behind them are those of its kind."""


def case_results(info: RunInfo, cases: Sequence[Case], records: Iterable[TrialRecord]) -> tuple[CaseResult, ...]:
    """The result of every case, in the order of `cases`, whatever the order of `records`.

    Raises StorageError when a record belongs to none of the cases.
    """
    ledger = Ledger.of(records)
    strangers = set(ledger.case_ids) - {case.id for case in cases}
    if strangers:
        raise StorageError(f"there are trials of {min(strangers)!r}, which is none of the run's cases")
    making = _Making(info)
    return tuple([making.result(case, Trials(ledger, case.id)) for case in cases])


class _Counting(NamedTuple):
    """The trials of a case, counted."""

    kinds: tuple[Alike, ...]
    passed: int
    failed: int
    invalid: int


class _Making:
    """Makes the results of cases; of those that went alike, what they have in common once."""

    def __init__(self, info: RunInfo) -> None:
        self._info, self._planned, self._digests = info, info.trials, info.cases
        self._countings: dict[tuple[tuple[int, int], ...], _Counting] = {}
        """Equal countings are one object."""
        self._firsts: dict[tuple[Any, ...], CaseResult] = {}
        """The first result of each kind, by all that the columns behind _OWN depend on."""

    def result(self, case: Case, trials: Trials) -> CaseResult:
        """The result of a case with these trials."""
        case_id, run, counted = case.id, len(trials), self._counting(trials)
        planned = max(self._planned.get(case_id, case.thresholds.trials), run)
        required = case.thresholds.successes_needed(planned)
        key = id(counted), run, planned, required, case.suite, case.risk, case.deterministic
        first = self._firsts.get(key)
        if first is None:
            first = self._firsts[key] = self._first(case, trials, counted, planned, required)
        digest = self._digests.get(case_id) or _recorded_digest(trials) or case.digest
        reason = _reason(self._info, first.verdict, trials, planned)
        rate = _curtailed_rate(trials, required, planned) if first.curtailed and first.valid else first.rate
        return CaseResult._make((case_id, digest, reason, trials, rate, *first[_OWN:]))

    def _first(self, case: Case, trials: Trials, counted: _Counting, planned: int, required: int) -> CaseResult:
        info, valid = self._info, counted.passed + counted.failed
        return CaseResult(
            case_id=case.id,
            digest="",
            reason="",
            recorded=trials,
            rate=counted.passed / valid if valid else None,
            suite=case.suite,
            risk=case.risk,
            gate=info.gating.get(case.suite, True),
            deterministic=case.deterministic or info.agent.get("deterministic") is True,
            verdict=_verdict(counted, len(trials), planned, required),
            passes=counted.passed,
            valid=valid,
            trials=planned,
            run=len(trials),
            required=required,
            kinds=counted.kinds,
            curtailed=info.curtailed,
        )

    def _counting(self, trials: Trials) -> _Counting:
        shared = trials.likenesses
        key = ((id(shared[0]), 1),) if len(shared) == 1 else tuple(Counter(map(id, shared)).items())
        found = self._countings.get(key)
        if found is None:
            statuses = statuses_of(kinds := alike(trials))
            decided = statuses[TrialStatus.PASSED], statuses[TrialStatus.FAILED]
            found = self._countings[key] = _Counting(kinds, *decided, statuses[TrialStatus.INVALID])
        return found


def _curtailed_rate(recorded: Iterable[Trial], required: int, planned: int) -> float:
    """The estimate from the trials up to the one that decided, in order of their numbers."""
    passes = fails = 0
    for trial in recorded:
        passes += trial.passed
        fails += trial.valid and not trial.passed
        if passes == required or fails == planned - required + 1:
            break
    return curtailed_rate(passes, passes + fails, required, planned)


_NONE = dict.fromkeys(TrialStatus, 0)


def statuses_of(kinds: Iterable[Alike]) -> dict[TrialStatus, int]:
    """How many of the trials ended so."""
    statuses = {**_NONE}
    for kind, trials in kinds:
        statuses[kind.status] += trials
    return statuses


def _recorded_digest(trials: Sequence[Trial]) -> str:
    return trials[0].last.whole.case_digest if trials else ""


def kinds_of(results: Iterable[CaseResult]) -> tuple[Alike, ...]:
    """The trials of all these cases, counted by what they have in common."""
    every = [result.kinds for result in results]
    cases = Counter(map(id, every))  # those that went alike share one counting
    one = {id(kinds): kinds for kinds in every}
    return together(Alike(kind, trials * cases[number]) for number, kinds in one.items() for kind, trials in kinds)


def _verdict(counted: _Counting, run: int, planned: int, required: int) -> CaseVerdict:
    if counted.passed >= required:
        return CaseVerdict.PASSED
    if planned - counted.failed < required:
        return CaseVerdict.FAILED
    if counted.invalid:
        return CaseVerdict.INVALID
    return CaseVerdict.NOT_RUN if run < planned else CaseVerdict.UNGRADED


_TELLING = {
    CaseVerdict.FAILED: TrialStatus.FAILED,
    CaseVerdict.INVALID: TrialStatus.INVALID,
    CaseVerdict.UNGRADED: TrialStatus.UNGRADED,
}


def _reason(info: RunInfo, verdict: CaseVerdict, trials: Sequence[Trial], planned: int) -> str:
    if verdict is CaseVerdict.PASSED:
        return ""
    if verdict is CaseVerdict.NOT_RUN:
        cut_off = "interrupted: " if info.status is RunStatus.INTERRUPTED else ""
        return f"{cut_off}{planned - len(trials)} of {planned} trials did not run"
    return next(reason_of(trial.last.whole) for trial in trials if trial.last.status is _TELLING[verdict])


def exit_code(info: RunInfo, results: Sequence[CaseResult]) -> ExitCode:
    """What `run` tells the shell. Cases of suites that do not gate change nothing.

    FAILED when a gating case failed; else INCOMPLETE when one is invalid, ungraded or did not run, when the run
    ended before its time, or when there is no case at all; else PASS.
    """
    verdicts = {result.verdict for result in results if result.gate}
    if CaseVerdict.FAILED in verdicts:
        return ExitCode.FAILED
    cut_short = info.status in (RunStatus.INTERRUPTED, RunStatus.OUT_OF_BUDGET)
    if verdicts - {CaseVerdict.PASSED} or cut_short or not results:
        return ExitCode.INCOMPLETE
    return ExitCode.PASS
