"""A release decision on stored runs: the same whether it is made at the end of a run or a year later."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.core.case import Case
from seatrial.core.decision import Decision
from seatrial.core.encoding import digest
from seatrial.core.policy import Exceptions, Policy
from seatrial.core.project import Project
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.errors import InputError, UsageError
from seatrial.loading.cases import load_cases
from seatrial.loading.config import find_root, load_project
from seatrial.loading.policies import load_exceptions, load_policy
from seatrial.report.files import write_json
from seatrial.report.summary import summary
from seatrial.store.rundir import RunFolder
from seatrial.verdict.baseline import Baseline, read_baseline, side_of_baseline
from seatrial.verdict.comparison import Comparison, compare
from seatrial.verdict.gate import decide
from seatrial.verdict.metrics import CaseResult, case_results
from seatrial.verdict.sides import side_of_results

__all__ = ["Candidate", "Gated", "Rulebook", "gate", "judge", "now", "project_or_none", "rulebook"]


def now() -> str:
    """UTC, ISO 8601 with Z, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


class Candidate:
    """One build's trials, from one run folder or several of equal build and digests."""

    def __init__(self, folders: Sequence[Path]) -> None:
        """Raises UsageError when there is no folder, or the runs cannot be pooled."""
        if not folders:
            raise UsageError("name at least one run folder")
        self.folders = tuple(folders)
        self.runs = tuple(RunFolder(folder) for folder in folders)
        self.infos = tuple(run.info for run in self.runs)
        self._refuse_unlike()

    def _refuse_unlike(self) -> None:
        """Runs are pooled only when they are of the same build, and each case was the same in all of them."""
        first = self.infos[0]
        for folder, info in zip(self.folders[1:], self.infos[1:], strict=True):
            if (info.build_id, info.agent) != (first.build_id, first.agent):
                raise UsageError(
                    f"{folder}: is of build {info.build_id!r}, not {first.build_id!r}; they are no one candidate"
                )
            edited = sorted(
                case for case in info.cases.keys() & first.cases.keys() if info.cases[case] != first.cases[case]
            )
            if edited:
                raise UsageError(f"{folder}: case {edited[0]} was edited between these runs; run the older one again")
        if len({info.run_id for info in self.infos}) < len(self.infos):
            raise UsageError("the same run is named twice")
        curtailed = [folder for folder, info in zip(self.folders, self.infos, strict=True) if info.curtailed]
        if curtailed and len(self.folders) > 1:
            what = "stopped cases once they were decided (--stop-when-decided)"
            raise UsageError(f"{curtailed[0]}: {what}; such a run is pooled with no other")

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case of the runs, in order of appearance."""
        return tuple({case.id: case for run in self.runs for case in run.cases()}.values())

    @cached_property
    def records(self) -> tuple[TrialRecord, ...]:
        """Every attempt; trials of a later run are numbered on from those of the ones before."""
        pooled: list[TrialRecord] = []
        offsets: dict[str, int] = {}
        for run, info in zip(self.runs, self.infos, strict=True):
            pooled += [_renumbered(record, offsets.get(record.case_id, 0)) for record in run.records()]
            for case_id, planned in info.trials.items():
                offsets[case_id] = offsets.get(case_id, 0) + planned
        return tuple(pooled)

    @cached_property
    def info(self) -> RunInfo:
        """The runs as one: trials and cases added up."""
        first, last = self.infos[0], self.infos[-1]
        trials: dict[str, int] = {}
        for info in self.infos:
            for case_id, planned in info.trials.items():
                trials[case_id] = trials.get(case_id, 0) + planned
        unfinished = next((info.status for info in self.infos if info.status is not RunStatus.FINISHED), first.status)
        return first.model_copy(
            update={
                "status": unfinished,
                "trials": trials,
                "trials_planned": sum(trials.values()),
                "cases": {case: value for info in self.infos for case, value in info.cases.items()},
                "gating": {suite: value for info in self.infos for suite, value in info.gating.items()},
                "ended": last.ended,
            }
        )

    @cached_property
    def results(self) -> tuple[CaseResult, ...]:
        """The verdict on every case over all pooled trials."""
        return case_results(self.info, self.cases, self.records)

    def trace_of(self, record: TrialRecord) -> Trace:
        """The stored trace of one of `records`."""
        run = next(run for run, info in zip(self.runs, self.infos, strict=True) if info.run_id == record.run_id)
        return run.trace(record)

    def summary(self) -> dict[str, Any]:
        """As `results.json`, over the pooled trials."""
        return summary(self.info, self.cases, self.records)

    def compared_with(self, baseline: Baseline) -> Comparison:
        """The baseline's cases beside its own."""
        return compare(side_of_baseline(baseline), side_of_results(self.results, self.label, trace_of=self.trace_of))

    @property
    def label(self) -> str:
        return f"{self.info.build_id} ({', '.join(info.run_id for info in self.infos)})"


def _renumbered(record: TrialRecord, offset: int) -> TrialRecord:
    return record if not offset else record.model_copy(update={"trial_index": record.trial_index + offset})


@dataclass(frozen=True)
class Rulebook:
    """What a candidate is judged by, and where it was read."""

    policy: Policy
    exceptions: Exceptions
    baseline: Baseline | None
    digests: dict[str, str]


def project_or_none(folder: Path | None) -> Project | None:
    """The project, or None where there is none: a decision on named files needs no project."""
    try:
        find_root(folder)
    except UsageError:
        if folder is not None:
            raise
        return None
    return load_project(folder=folder)


def rulebook(
    project: Project | None, policy: Path | None = None, baseline: Path | None = None, *, with_baseline: bool = True
) -> Rulebook:
    """Policy, exceptions and baseline: as named, else the project's own.

    Raises UsageError when there is no policy, InputError when a file is wrong.
    """
    root = None if project is None else Path(project.root)
    if policy is None and root is None:
        raise UsageError("there is no project here; name the policy with --policy")
    home = project or Project(root=str(Path.cwd()))
    suites = None if project is None else _suites(project)
    read_policy, exceptions = load_policy(home, policy, suites=suites), load_exceptions(home)
    path = baseline if baseline is not None else root and root / "baselines" / "approved.json"
    approved = None
    if with_baseline and path is not None and (baseline is not None or path.is_file()):
        approved = read_baseline(path)
    digests = {
        "policy": digest(read_policy.model_dump(mode="json", exclude_defaults=True)),
        "exceptions": digest(exceptions.model_dump(mode="json", exclude_defaults=True)),
        "baseline": "" if approved is None or path is None else _file_digest(path),
    }
    return Rulebook(read_policy, exceptions, approved, digests)


def _suites(project: Project) -> frozenset[str] | None:
    """Every suite of the project; None (any name may be one) while its case files have errors."""
    try:
        cases = load_cases(project).cases
    except InputError:
        return None
    return frozenset(project.suites) | {case.suite for case in cases}


def _file_digest(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Gated:
    """A decision with what it was made from, for whoever shows it."""

    decision: Decision
    candidate: Candidate
    comparison: Comparison | None
    written: Path


def judge(
    runs: Sequence[Path],
    rules: Rulebook,
    *,
    output: Path | None = None,
    for_approval: bool = False,
) -> Gated:
    """Judge a candidate and write the decision (to `output`, else beside its first run's records), whatever it is."""
    candidate = Candidate(runs)
    comparison = None if rules.baseline is None else candidate.compared_with(rules.baseline)
    decision = decide(
        results=candidate.results,
        infos=candidate.infos,
        policy=rules.policy,
        comparison=comparison,
        baseline=rules.baseline,
        exceptions=rules.exceptions,
        today=datetime.now(UTC).date(),
        digests=rules.digests | _records_digests(candidate),
        for_approval=for_approval,
    )
    decision = decision.model_copy(update={"decided": now()})
    path = output or candidate.folders[0] / "release-decision.json"
    write_json(path, decision.model_dump(mode="json"))
    return Gated(decision, candidate, comparison, path)


def gate(
    runs: Sequence[str | Path] | str | Path,
    policy: str | Path | None = None,
    baseline: str | Path | None = None,
    *,
    project: str | Path | None = None,
    output: str | Path | None = None,
) -> Decision:
    """Decide a release from stored runs of one build; the decision is always written too.

    Policy and baseline default to the project's own; without a project they are named. Raises UsageError and InputError
    for wrong input, never for a bad candidate.
    """
    folders = [Path(run) for run in ([runs] if isinstance(runs, (str, Path)) else runs)]
    found = project_or_none(None if project is None else Path(project))
    named = [None if path is None else Path(path) for path in (policy, baseline)]
    rules = rulebook(found, *named)
    return judge(folders, rules, output=None if output is None else Path(output)).decision


def _records_digests(candidate: Candidate) -> dict[str, str]:
    return {
        f"run {info.run_id}": _file_digest(folder / "trials.jsonl")
        for folder, info in zip(candidate.folders, candidate.infos, strict=True)
    }
