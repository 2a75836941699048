"""Grading a stored run again, under the project's present cases and graders, into a run folder of its own.

- A case whose input or surroundings were edited since is named and its trials say nothing (invalid): their traces are
  of another input. Edited expectations, observers, watches and canaries are what regrading is for.
- Cases that the run's own selection would choose now, but that it has no trial of, stand in the new run as not run.
- Cases that are gone are named and left out. Hidden cases are refused: no trace of them is kept.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from seatrial import __version__
from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.encoding import dumps
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, Project
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trial import TrialKey, TrialRecord, TrialStatus
from seatrial.environment.secrets import Redactor
from seatrial.errors import Diagnostic, NothingSelected, StorageError, UsageError
from seatrial.harness.hidden import veiled_case, veiled_record, veiled_trace
from seatrial.harness.importing import forget_projects, importable
from seatrial.harness.planner import given, planned_cases
from seatrial.harness.request import Request
from seatrial.harness.run_info import rules_on_record, run_id
from seatrial.harness.runs import Run, find_run, remember
from seatrial.harness.selecting import Selected, selected
from seatrial.loading.selection import select as select_cases
from seatrial.report.files import write_results
from seatrial.runner.regrading import Evidence, graded_again, refused
from seatrial.store.rundir import RunFolder, RunWriter, StoredTrial
from seatrial.store.verifying import Verified, verify

__all__ = ["Flip", "Regrade", "Regraded", "execute_regrade", "plan_regrade", "regrade"]

_MARK = re.compile(rb"\[secret:([^\[\]]+)\]")
_HIDDEN = "hidden case: no trace of it is kept, so it cannot be graded again"
_FLIPS_KEPT = 1_000


@dataclass(frozen=True)
class Flip:
    """A trial with another status than before."""

    key: TrialKey
    before: TrialStatus
    after: TrialStatus


@dataclass(frozen=True)
class Regrade:
    """What is to be graded again, resolved before the first grader is called."""

    source: RunFolder
    project: Project
    info: RunInfo
    """Of the new run."""
    folder: Path
    cases: tuple[PlannedCase, ...]
    """Those of the new run, in file order; the ones that were not run too."""
    refused: Mapping[str, str]
    """Why a case's trials say nothing about it now, by case id."""
    redactor: Redactor
    not_run: frozenset[str] = frozenset()
    """Cases that the source has no trial of."""
    at_once: int = 10
    """Trials whose graders are awaited together."""
    warnings: tuple[Diagnostic, ...] = ()

    @property
    def total(self) -> int:
        """Trials that the source planned of these cases."""
        return sum(item.trials for item in self.cases if item.case.id not in self.not_run)


@dataclass(frozen=True)
class Regraded:
    """A run that was graded again."""

    run: Run
    flips: tuple[Flip, ...]
    """Trials with another status than before, at most a thousand of them."""
    flipped: int
    """How many they are."""


def regrade(
    run: str | Path, select: Sequence[str] | str = (), *, project: str | Path = ".", output: str | Path | None = None
) -> Run:
    """Grade a stored run (a folder, an id, or `latest`) again; no agent is called. Gives the new run.

    `select` narrows by path, suite or case id. Raises UsageError, InputError, NothingSelected, StorageError.
    """
    several = (select,) if isinstance(select, str) else tuple(select)
    found = find_run(str(run), Path(project))
    target = None if output is None else Path(output)
    return execute_regrade(
        plan_regrade(found, project=Path(project), select=several, output=target, command=("seatrial.regrade",))
    ).run


# --- planning -------------------------------------------------------------------------------------------------------


def plan_regrade(
    folder: Path,
    *,
    project: Path | None = None,
    select: tuple[str, ...] = (),
    output: Path | None = None,
    command: tuple[str, ...] = (),
) -> Regrade:
    """Resolve what is to be graded again. Every mistake that can be known before the first grader is raised here."""
    source = RunFolder(folder)
    stood = _untouched(source)
    old = stood.info
    request = Request(project=project, set=_set_then(old), timeout_s=old.options.get("timeout_s"))
    present = selected(request)
    root = Path(present.project.root)
    chosen = replace(present, cases=_chosen(present, old, select))
    forget_projects()
    with importable(present.project.root):
        planned = planned_cases(chosen, request, AgentSpec(), lambda: root)
    cases = tuple(_with_trials(item, old) for item in planned)
    redactor = Redactor(present.project.secrets, present.project.redact)
    why = dict(_refusals(cases, stood, present.hidden, redactor))
    gone = () if select else tuple(sorted(old.cases.keys() - {case.id for case in present.cases}))
    info = _info(present, cases, old, command)
    return Regrade(
        source=source,
        project=present.project,
        info=info,
        folder=output or root / "runs" / info.run_id,
        cases=cases,
        refused=why,
        redactor=redactor,
        not_run=frozenset(item.case.id for item in cases if item.case.id not in old.cases),
        at_once=present.project.concurrency,
        warnings=(*present.warnings, *_noticed(cases, old, why, gone)),
    )


def _untouched(source: RunFolder) -> Verified:
    """What the run holds. The new run is whole in itself, so it would hide that its source is not: StorageError then.

    All of it is looked through before anything of it is graded: what is wrong with its last trial has to be known
    before a grader is called, which may be slow, cost money or change something, and before the new folder is begun.
    """
    found = verify(source)
    problems = found.problems
    if problems:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise StorageError(
            f"{source.folder}: is not as its run wrote it, so it is not graded again: {problems[0]}{more}"
        )
    return found


def _set_then(old: RunInfo) -> tuple[str, ...]:
    """The run's `--set` options, which hold for its cases as they did; those with a masked value are left out."""
    return tuple(text for text in old.options.get("set", ()) if "[secret:" not in text)


def _chosen(present: Selected, old: RunInfo, select: tuple[str, ...]) -> tuple[Case, ...]:
    """What `select` names, else the run's cases and those that its own selection would choose now."""
    if select:
        cases = select_cases(present.cases, Request(select=select).selection, Path(present.project.root))
    else:
        now = _by_its_own_selection(present, old)
        cases = tuple(case for case in present.cases if case.id in old.cases or case.id in now)
    if not any(case.id in old.cases for case in cases):
        raise NothingSelected(f"run {old.run_id} has no trial of any selected case")
    return cases


def _by_its_own_selection(present: Selected, old: RunInfo) -> set[str]:
    if old.options.get("named_cases_only"):
        return set()
    names = ("select", "suite", "tag", "risk")
    asked = Request(
        **{name: tuple(old.options.get(name, ())) for name in names},  # type: ignore[arg-type]  # as a run wrote them
        keyword=str(old.options.get("keyword", "")),
    )
    try:
        return {case.id for case in select_cases(present.cases, asked.selection, Path(present.project.root))}
    except NothingSelected:  # what it named is gone
        return set()


def _with_trials(planned: PlannedCase, old: RunInfo) -> PlannedCase:
    """The case with as many trials as were planned of it then."""
    trials = old.trials.get(planned.case.id, planned.trials)
    try:
        planned.case.thresholds.successes_needed(trials)
    except ValueError as error:
        raise UsageError(f"case {planned.case.id}: {error}") from error
    return replace(planned, trials=trials)


def _info(present: Selected, cases: Sequence[PlannedCase], old: RunInfo, command: tuple[str, ...]) -> RunInfo:
    """Of the new run. What is true of the traces stays as it was: build, agent, seed, inputs, prices."""
    now = datetime.now(UTC)
    suites = sorted({item.case.suite for item in cases})
    ids = {item.case.id for item in cases}
    changes: dict[str, Any] = {
        "run_id": run_id(now),
        "status": RunStatus.RUNNING,
        "regraded_from": old.run_id,
        "trials_planned": sum(item.trials for item in cases),
        "cases": {item.case.id: item.digest for item in cases},
        "inputs": {case_id: value for case_id, value in old.inputs.items() if case_id in ids},
        "hidden": tuple(item.case.id for item in cases if item.case.id in {*old.hidden, *present.hidden}),
        "trials": {item.case.id: item.trials for item in cases},
        "policies": rules_on_record(cases),
        "gating": {suite: present.project.gates(suite) for suite in suites},
        "versions": {**old.versions, "seatrial": __version__},
        "command": command,
        "started": _text_of(now),
        "ended": None,
    }
    return old.model_copy(update=changes)


# --- what cannot be graded again ------------------------------------------------------------------------------------


def _refusals(
    cases: Sequence[PlannedCase], stood: Verified, hidden: frozenset[str], redactor: Redactor
) -> Iterator[tuple[str, str]]:
    """Cases of the run whose traces say nothing about them now, with the reason."""
    old = stood.info
    before = {case.id: case for case in stood.cases}
    for item in cases:
        if item.case.id in {*old.hidden, *hidden} and item.case.id in old.cases:
            yield item.case.id, _HIDDEN
        elif item.case.id in before:
            edited = _edited(before[item.case.id], item, old, redactor)
            if edited:
                yield item.case.id, f"{edited} edited since the run: its traces are of another one; run the case again"


def _edited(before: Case, item: PlannedCase, old: RunInfo, redactor: Redactor) -> str:
    """What of that which the agent is given was edited, in words; empty: nothing."""
    known = old.inputs.get(item.case.id)
    if known == item.input_digest:
        return ""
    was, now = redactor.value(given(before)), redactor.value(given(item.case))
    names = [name for name in now if was[name] != now[name]]
    if names:
        return f"its {' and '.join(names)} {'was' if names in (['input'], ['user']) else 'were'}"
    return "" if known is None else f"its fixture ({item.case.environment.fixture or 'what stands in the case'}) was"


def _noticed(
    cases: Sequence[PlannedCase], old: RunInfo, refusals: Mapping[str, str], gone: Sequence[str]
) -> Iterator[Diagnostic]:
    """One warning a case that the new run says nothing about."""
    for item in cases:
        case = item.case
        if case.id in refusals:
            rule = "hidden-case" if refusals[case.id] == _HIDDEN else "input-edited"
            yield _warning(rule, f"case {case.id}: {refusals[case.id]}", case)
        elif case.id not in old.cases:
            yield _warning("not-run", f"case {case.id}: the run has no trial of it; it stands as not run", case)
    for case_id in gone:
        yield _warning("case-removed", f"case {case_id} is no case of the project any more; its trials are left out")


def _warning(rule: str, message: str, case: Case | None = None) -> Diagnostic:
    place = (case.path, case.line) if case is not None else ("", None)
    return Diagnostic(rule, message, *place, severity="warning")


# --- doing it -------------------------------------------------------------------------------------------------------


def execute_regrade(planned: Regrade, on_trial: Callable[[TrialRecord, int, int], None] | None = None) -> Regraded:
    """Grade every stored trial of the plan again, one after another from disk to disk.

    However it ends, the new folder is left readable; what interrupts it is raised again.
    """
    writer = RunWriter.create(planned.folder, planned.info, _definitions(planned), planned.redactor)
    work = _Work(planned, writer, on_trial)
    ended = RunStatus.INTERRUPTED
    try:
        with importable(planned.project.root), ThreadPoolExecutor(1, "seatrial-regrade") as thread:
            done = thread.submit(asyncio.run, work.all())  # a loop of its own: the caller may be in one
            try:
                done.result()
            finally:
                work.stop.set()
        ended = _status_of(planned.source.info)
    finally:
        writer.finish(planned.info.model_copy(update={"status": ended, "ended": _text_of(datetime.now(UTC))}))
    run = Run(planned.folder, writer.info, _definitions(planned), writer.kept, planned.warnings)
    with collector_paused():
        write_results(planned.folder, run.results())
    remember(planned.folder, Path(planned.project.root))
    return Regraded(run, tuple(work.flips), work.flipped)


def _definitions(planned: Regrade) -> tuple[Case, ...]:
    cases = (item.case for item in planned.cases)
    return tuple(veiled_case(case) if case.id in planned.info.hidden else case for case in cases)


def _status_of(source: RunInfo) -> RunStatus:
    """A run that never said how it ended was cut short."""
    return RunStatus.INTERRUPTED if source.status is RunStatus.RUNNING else source.status


@dataclass
class _Work:
    """Reads, grades and writes trials in batches; keeps none of them."""

    planned: Regrade
    writer: RunWriter
    on_trial: Callable[[TrialRecord, int, int], None] | None
    stop: threading.Event = field(default_factory=threading.Event)
    flips: list[Flip] = field(default_factory=list)
    flipped: int = 0
    _done: int = 0

    def __post_init__(self) -> None:
        self._cases = {item.case.id: item for item in self.planned.cases}

    async def all(self) -> None:
        for batch in _batches(self._stored(), self.planned.at_once):
            if self.stop.is_set():
                return
            records = await asyncio.gather(*map(self._graded, batch))
            for stored, record in zip(batch, records, strict=True):
                self._keep(stored, record)

    def _stored(self) -> Iterator[StoredTrial]:
        return (stored for stored in self.planned.source.stored() if stored.record.case_id in self._cases)

    async def _graded(self, stored: StoredTrial) -> TrialRecord:
        record = stored.record
        case = self._cases[record.case_id]
        if record.output_file is not None:
            whole = self.planned.source.output(record)
            record = record.model_copy(update={"output": whole, "output_file": None})
        if record.case_id in self.planned.refused:
            return refused(case, record, self.planned.refused[record.case_id])
        return await graded_again(case, _evidence(stored, record, self.planned.redactor), self.planned.redactor)

    def _keep(self, stored: StoredTrial, record: TrialRecord) -> None:
        if record.case_id in self.planned.info.hidden:
            self.writer.write(veiled_record(record), veiled_trace(stored.trace()))
        else:
            self.writer.write_again(record, stored)
        if record.status is not stored.record.status:
            self.flipped += 1
            if len(self.flips) < _FLIPS_KEPT:
                self.flips.append(Flip(record.key, stored.record.status, record.status))
        self._done += 1
        if self.on_trial is not None:
            self.on_trial(record, self._done, self.planned.total)


def _batches(items: Iterable[StoredTrial], size: int) -> Iterator[list[StoredTrial]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _evidence(stored: StoredTrial, record: TrialRecord, redactor: Redactor) -> Evidence:
    """What is on record of a trial, with the values of known secrets put back. `record` holds its whole output."""
    text = stored.line if record.outcome is None else stored.line + dumps(record.outcome).encode()
    text = text if stored.record.output_file is None else text + dumps(record.output).encode()
    names = {name.decode("utf-8", "replace") for name in _MARK.findall(text)} if b"[secret:" in text else set()
    trace = stored.trace(redactor.unmask(stored.whole)) if names else stored.trace()
    outcome = redactor.unmask(record.outcome) if names else record.outcome
    return Evidence(record, trace, outcome, masked=bool(names), unknown=not names <= set(redactor.names))


def _text_of(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
