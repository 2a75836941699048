"""A release decision on stored runs: the same whether it is made at the end of a run or a year later."""

from __future__ import annotations

import contextlib
import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.core.case import Case
from seatrial.core.decision import Decision
from seatrial.core.encoding import digest
from seatrial.core.ledger import Ledger
from seatrial.core.model_json import json_of, model_of
from seatrial.core.policy import Exceptions, Policy
from seatrial.core.project import Project
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.errors import InputError, StorageError, UsageError
from seatrial.loading.cases import load_cases
from seatrial.loading.config import load_project
from seatrial.loading.files import is_there
from seatrial.loading.policies import load_exceptions, load_policy
from seatrial.loading.project_folder import find_root
from seatrial.report.files import write_json
from seatrial.report.summary import summary_of
from seatrial.store.rundir import RunFolder, is_run_folder
from seatrial.store.verifying import Verified, verify
from seatrial.verdict.baseline import Baseline, read_baseline, side_of_baseline
from seatrial.verdict.comparison import Comparison, compare
from seatrial.verdict.gate import decide
from seatrial.verdict.metrics import CaseResult, case_results
from seatrial.verdict.sides import side_of_results

__all__ = [
    "DECISION",
    "Candidate",
    "Gated",
    "Rulebook",
    "decision_of",
    "gate",
    "judge",
    "now",
    "project_or_none",
    "rulebook",
    "set_aside",
]


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
        self.stored = tuple(verify(run) for run in self.runs)
        """What each folder holds, and what is wrong with it."""
        self.infos = tuple(stored.info for stored in self.stored)
        self._refuse_unlike()

    def _refuse_unlike(self) -> None:
        """Runs are pooled only when they are of the same build, measured alike, and each case was the same in all."""
        first = self.stored[0]
        for folder, stored in zip(self.folders[1:], self.stored[1:], strict=True):
            if (stored.info.build_id, stored.info.agent) != (first.info.build_id, first.info.agent):
                raise UsageError(
                    f"{folder}: is of build {stored.info.build_id!r}, not {first.info.build_id!r}; "
                    "they are no one candidate"
                )
            what = next(_unlike(first, stored), None)
            if what is not None:
                raise UsageError(f"{folder}: {what}; run the older one again")
        if len({info.run_id for info in self.infos}) < len(self.infos):
            raise UsageError("the same run is named twice")
        doubled = next(_not_independent(self.stored), None)
        if doubled is not None:
            raise UsageError(f"{doubled}; pooled runs are independent evidence, so name only one of them")
        curtailed = [folder for folder, info in zip(self.folders, self.infos, strict=True) if info.curtailed]
        if curtailed and len(self.folders) > 1:
            what = "stopped cases once they were decided (--stop-when-decided)"
            raise UsageError(f"{curtailed[0]}: {what}; such a run is pooled with no other")

        replayed = [folder for folder, stored in zip(self.folders, self.stored, strict=True) if stored.replayed]
        if replayed and len(self.folders) > 1:
            what = "was replayed from cassettes, so its trials are those that were recorded"
            raise UsageError(f"{replayed[0]}: {what}; such a run is pooled with no other")

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """Every case of the runs, in order of appearance."""
        return tuple({case.id: case for stored in self.stored for case in stored.cases}.values())

    @cached_property
    def records(self) -> Ledger:
        """Every attempt; trials of a later run are numbered on from those of the ones before."""
        parts: list[tuple[Ledger, Mapping[str, int]]] = []
        offsets: Counter[str] = Counter()
        for stored in self.stored:
            parts.append((stored.records, dict(offsets)))
            offsets.update(stored.info.trials)
        return Ledger.pooled(parts)

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

    @property
    def problems(self) -> tuple[str, ...]:
        """Where the folders are not as their runs wrote them."""
        return tuple(f"run {stored.info.run_id}: {text}" for stored in self.stored for text in stored.problems)

    @property
    def digests(self) -> dict[str, str]:
        """Of the files that the verdicts rest on, by `RUN/FILE`; empty text for one that is missing."""
        return {
            f"{info.run_id}/{name}": _file_digest(folder / name)
            for folder, info in zip(self.folders, self.infos, strict=True)
            for name in ("run.json", "cases.jsonl", "trials.jsonl")
        }

    def trace_of(self, record: TrialRecord) -> Trace:
        """The stored trace of one of `records`."""
        run = next(run for run, info in zip(self.runs, self.infos, strict=True) if info.run_id == record.run_id)
        return run.trace(record)

    def summary(self) -> dict[str, Any]:
        """As `results.json`, over the pooled trials; rows of cases and trials are made as they are looked at."""
        return summary_of(self.info, self.cases, self.results)

    def compared_with(self, baseline: Baseline) -> Comparison:
        """The baseline's cases beside its own."""
        return compare(side_of_baseline(baseline), side_of_results(self.results, self.label, trace_of=self.trace_of))

    @property
    def label(self) -> str:
        return f"{self.info.build_id} ({', '.join(info.run_id for info in self.infos)})"


def _unlike(first: Verified, other: Verified) -> Iterator[str]:
    """What was not the same in two runs of one build."""
    before, now = first.info, other.info
    for case_id in sorted(before.cases.keys() & now.cases.keys()):
        if before.cases[case_id] != now.cases[case_id]:
            yield f"case {case_id} was edited between these runs"
    terms = {case.id: _terms(case) for case in first.cases}
    for case in other.cases:
        if terms.get(case.id, _terms(case)) != _terms(case):
            yield f"case {case.id} has another suite, risk, thresholds or limits than in the run before"
    for suite in sorted(before.gating.keys() & now.gating.keys()):
        if before.gating[suite] != now.gating[suite]:
            yield f"the suite {suite} gates in one of these runs and not in the other"
    for name, what in (("judge", "judge"), ("prices", "price table"), ("policies", "set of permission rules")):
        if getattr(before, name) != getattr(now, name):
            yield f"another {what} held than in the run before"


def _not_independent(stored: Sequence[Verified]) -> Iterator[str]:
    """Which of these runs hold the same trials: graded again, or run again."""
    sources: dict[str, str] = {run.info.run_id: run.info.run_id for run in stored}
    seen: dict[tuple[object, ...], str] = {}
    spans: dict[object, str] = {}
    for info, records in ((run.info, run.records) for run in stored):
        if info.rerun_of and len(stored) > 1:
            yield f"run {info.run_id} is a trial of {info.rerun_of} that was run again to be looked at"
        if info.regraded_from:
            other = sources.setdefault(info.regraded_from, info.run_id)
            if other != info.run_id:
                both = "is" if other == info.regraded_from else "and run " + other + " are"
                yield f"run {info.run_id} {both} graded again from the trials of {info.regraded_from}"
        if info.agent_kind == "otel" and ":" not in str(info.agent.get("target")):
            other = spans.setdefault(info.agent.get("target"), info.run_id)
            if other != info.run_id:
                yield f"runs {other} and {info.run_id} are both of the spans in {info.agent.get('target')}"
        for record in (record for record in records if record.started) if len(stored) > 1 else ():
            other = seen.setdefault(_identity(record), info.run_id)
            if other != info.run_id:
                yield f"runs {other} and {info.run_id} hold the same trial {record.key}"


def _identity(record: TrialRecord) -> tuple[object, ...]:
    """What no two trials that ran have in common: not even of one case, number and seed."""
    return record.case_id, record.trial_index, record.attempt, record.seed, record.started, record.latency_ms


def _terms(case: Case) -> tuple[object, ...]:
    return case.suite, case.risk, case.deterministic, case.thresholds, case.limits


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
    if with_baseline and path is not None and (baseline is not None or is_there(path)):
        approved = read_baseline(path)
    digests = {
        "policy": digest(json_of(read_policy, exclude_defaults=True)),
        "exceptions": digest(json_of(exceptions, exclude_defaults=True)),
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
    """Of a file's content; empty text where there is none."""
    try:
        with path.open("rb") as file:
            return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return ""


@dataclass(frozen=True)
class Gated:
    """A decision with what it was made from, for whoever shows it."""

    decision: Decision
    candidate: Candidate
    comparison: Comparison | None
    written: Path


DECISION = "release-decision.json"
"""The file of a decision in a run's folder."""
APPROVAL = "approval-decision.json"
"""The file of what an approval rests on: gates that need a baseline are not in it, so it is no release decision."""


def set_aside(folders: Sequence[Path], output: Path | None = None) -> None:
    """Rename the decision that stands where a new one is to be written: whatever comes of that, it is not current.

    Called before anything else can fail. It goes to `FILE.old`. Raises StorageError naming the file.
    """
    path = output or folders[0] / DECISION
    try:
        with contextlib.suppress(FileNotFoundError):
            path.replace(path.with_name(f"{path.name}.old"))
    except OSError as error:
        raise StorageError(f"{path}: the older decision cannot be set aside ({error.strerror or error})") from error


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
        digests=rules.digests | candidate.digests,
        for_approval=for_approval,
        problems=candidate.problems,
    )
    decision = decision.model_copy(update={"decided": now()})
    path = output or candidate.folders[0] / (APPROVAL if for_approval else DECISION)
    write_json(path, json_of(decision))
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
    named = [None if path is None else Path(path) for path in (policy, baseline)]
    target = None if output is None else Path(output)
    if folders and is_run_folder(folders[0]):
        set_aside(folders, target)
    rules = rulebook(project_or_none(None if project is None else Path(project)), *named)
    return judge(folders, rules, output=target).decision


def decision_of(path: Path, candidate: Candidate) -> Decision:
    """The decision in a file, on this very candidate. UsageError when it is none, or one on other runs or records."""
    try:
        decision = model_of(Decision, path.read_bytes())
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror or error})") from error
    except ValueError as error:
        raise UsageError(f"{path}: is no release decision") from error
    runs = sorted(info.run_id for info in candidate.infos)
    if sorted(map(str, decision.candidate.get("run_ids", []))) != runs:
        raise UsageError(f"{path}: is a decision on other runs than {', '.join(runs)}")
    changed = [name for name, value in candidate.digests.items() if decision.digests.get(name) != value]
    if changed:
        raise UsageError(f"{path}: was made on another {changed[0]}; decide anew with `seatrial gate`")
    return decision
