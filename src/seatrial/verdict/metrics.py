"""What became of every case, and what a run tells the shell.

A case is passed or failed as soon as that is certain, whatever its other trials would give. While it is not:
`invalid` when a trial of it is invalid, else `not_run` when planned trials have no record, else `ungraded`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

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
    suite: str
    risk: str
    gate: bool
    """Whether its suite decides exit codes."""
    deterministic: bool
    """Whether the case or the agent is declared free of chance: then any flip is a change."""
    digest: str
    """Of the case and all it rests on; cases compare on equal digests."""
    verdict: CaseVerdict
    passes: int
    valid: int
    """Trials that passed or failed."""
    trials: int
    """Trials planned, or on record when those are more."""
    required: int
    """Passes that the case needs out of `trials`."""
    reason: str
    """Why it did not pass, from its first trial that says so; empty when it passed."""
    recorded: Trials
    """In order of their numbers, attempts folded."""
    kinds: tuple[Alike, ...]
    """The same, counted by what they have in common."""
    curtailed: bool = False
    """Whether its trials stopped once it was decided: then its rate is estimated, and only its verdict compares."""

    @property
    def run(self) -> int:
        """Trials on record."""
        return len(self.recorded)

    @property
    def rate(self) -> float | None:
        """Passes among valid trials, of a curtailed case the path-count estimate; None when there is no valid trial."""
        if not self.valid:
            return None
        if self.curtailed:
            return _curtailed_rate(self)
        return self.passes / self.valid

    @property
    def saved(self) -> int:
        """Trials that its verdict did not need, and that were not run for that reason."""
        if not self.curtailed or self.verdict not in (CaseVerdict.PASSED, CaseVerdict.FAILED):
            return 0
        return self.trials - self.run

    @property
    def invalid(self) -> dict[str, int]:
        """Invalid trials by reason."""
        if self.valid == len(self.recorded):
            return {}
        reasons: Counter[str] = Counter()
        for kind, trials in self.kinds:
            if kind.status is TrialStatus.INVALID:
                reasons[str(kind.invalid_reason or "harness")] += trials
        return dict(sorted(reasons.items()))


def _curtailed_rate(result: CaseResult) -> float:
    """The estimate from the trials up to the one that decided, in order of their numbers."""
    passes = fails = 0
    for trial in result.recorded:
        passes += trial.passed
        fails += trial.valid and not trial.passed
        if passes == result.required or fails == result.trials - result.required + 1:
            break
    return curtailed_rate(passes, passes + fails, result.required, result.trials)


def case_results(info: RunInfo, cases: Sequence[Case], records: Iterable[TrialRecord]) -> tuple[CaseResult, ...]:
    """The result of every case, in the order of `cases`, whatever the order of `records`.

    Raises StorageError when a record belongs to none of the cases.
    """
    ledger = Ledger.of(records)
    strangers = set(ledger.case_ids) - {case.id for case in cases}
    if strangers:
        raise StorageError(f"there are trials of {min(strangers)!r}, which is none of the run's cases")
    countings = _Countings()
    return tuple([_case_result(info, case, Trials(ledger, case.id), countings) for case in cases])


class _Counting(NamedTuple):
    """The trials of a case, counted."""

    kinds: tuple[Alike, ...]
    passed: int
    failed: int
    invalid: int


class _Countings:
    """Counts trials by what they have in common; equal countings are one object."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, int], ...], _Counting] = {}

    def of(self, trials: Trials) -> _Counting:
        shared = trials.likenesses
        key = ((id(shared[0]), 1),) if len(shared) == 1 else tuple(Counter(map(id, shared)).items())
        found = self._known.get(key)
        if found is None:
            statuses = statuses_of(kinds := alike(trials))
            decided = statuses[TrialStatus.PASSED], statuses[TrialStatus.FAILED]
            found = self._known[key] = _Counting(kinds, *decided, statuses[TrialStatus.INVALID])
        return found


def _case_result(info: RunInfo, case: Case, trials: Trials, countings: _Countings) -> CaseResult:
    run = len(trials)
    planned = max(info.trials.get(case.id, case.thresholds.trials), run)
    required = case.thresholds.successes_needed(planned)
    counted = countings.of(trials)
    verdict = _verdict(counted, run, planned, required)
    return CaseResult(
        case_id=case.id,
        suite=case.suite,
        risk=case.risk,
        gate=info.gating.get(case.suite, True),
        deterministic=case.deterministic or info.agent.get("deterministic") is True,
        digest=info.cases.get(case.id) or _recorded_digest(trials) or case.digest,
        verdict=verdict,
        passes=counted.passed,
        valid=counted.passed + counted.failed,
        trials=planned,
        required=required,
        reason=_reason(info, verdict, trials, planned),
        recorded=trials,
        kinds=counted.kinds,
        curtailed=info.curtailed,
    )


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
