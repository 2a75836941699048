"""One stored trial run again: the same case, fixture, seed, faults and build, and both trials side by side.

The new trial goes into a run folder of its own, below `.seatrial/reruns/` unless told otherwise: it is for looking at,
no evidence on its case, so `latest` and `list` pass over it. What was edited since is said, and with `strict` refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.core.grade import Verdict
from seatrial.core.ports import PlannedCase
from seatrial.core.run import RunInfo
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.errors import Diagnostic, ExitCode, NothingSelected, UsageError
from seatrial.harness.plan import Plan, plan
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute, find_run, load
from seatrial.harness.stored import agent_of, trial_of
from seatrial.loading.config import load_project
from seatrial.report.trace_diff import TraceDiff, align
from seatrial.verdict.trajectories import trajectory_of

__all__ = ["Again", "Rerun", "execute_rerun", "plan_rerun", "rerun"]


@dataclass(frozen=True)
class Again:
    """A trial that is to be run again, resolved."""

    source: Run
    record: TrialRecord
    """As it was."""
    plan: Plan
    notes: tuple[Diagnostic, ...]
    """What is not as it was."""


@dataclass(frozen=True)
class Rerun:
    """A trial as it was and as it is now."""

    before: TrialRecord
    after: TrialRecord
    diff: TraceDiff
    """Both trajectories, aligned."""
    run: Run
    """The new trial's own run."""
    notes: tuple[Diagnostic, ...] = ()

    @property
    def same(self) -> bool:
        """Whether it came to the same: status, reason for stopping, verdict of each required grade that both have."""
        before, after = self.before, self.after
        verdicts, now = _verdicts(before), _verdicts(after)
        alike = all(verdicts[name] == now[name] for name in verdicts.keys() & now.keys())
        return (before.status, before.stop_reason) == (after.status, after.stop_reason) and alike

    @property
    def exit_code(self) -> int:
        """0: it came to the same. 4: the new trial alone is invalid, so it says nothing. 1: to something else."""
        if self.same:
            return int(ExitCode.PASS)
        silent = self.after.status is TrialStatus.INVALID and self.before.status is not TrialStatus.INVALID
        return int(ExitCode.INCOMPLETE if silent else ExitCode.FAILED)


def _verdicts(record: TrialRecord) -> dict[str, Verdict]:
    return {grade.name: grade.verdict for grade in record.grades if grade.required}


def rerun(
    run: str | Path,
    trial: str,
    *,
    project: str | Path = ".",
    agent: Any = None,
    output: str | Path | None = None,
    strict: bool = False,
) -> Rerun:
    """Run one trial (`CASE#N`) of a stored run again. `agent`: the agent itself, where the run was given an object.

    Raises UsageError when it cannot be run as it was; with `strict` also when the case or its fixture was edited.
    """
    found = find_run(str(run), Path(project))
    target = None if output is None else Path(output)
    again = plan_rerun(
        found, trial, project=Path(project), agent=agent, output=target, strict=strict, command=("seatrial.rerun",)
    )
    return execute_rerun(again)


def plan_rerun(
    folder: Path,
    trial: str,
    *,
    project: Path | None = None,
    agent: Any = None,
    output: Path | None = None,
    strict: bool = False,
    command: tuple[str, ...] = (),
) -> Again:
    """Resolve one trial of a stored run. Every mistake that can be known before the agent is called is raised here."""
    source = load(folder)
    record, info = trial_of(source, trial), source.info
    if record.case_id in info.hidden:
        raise UsageError(f"{record.case_id} is a hidden case: nothing is kept of its trials to compare with")
    if agent is None:
        home = load_project(folder=project, overrides=_options(info)["set"])
        agent = agent_of(info, home, otherwise="give the agent itself to seatrial.rerun(..., agent=)")
    request = Request(
        project=project,
        ids=frozenset([record.case_id]),
        agent=agent,
        build_id=info.build_id,
        trials=info.trials.get(record.case_id),
        seed=info.seed,
        command=command,
        concurrency=1,
        **_options(info),
    )
    planned = _planned(request, record)
    if record.case_id in planned.hidden:
        raise UsageError(f"{record.case_id} is a hidden case: its trials are not shown")
    edits = tuple(_edits(planned.cases[0], record, info))
    if strict and edits:
        raise UsageError(f"{edits[0].message}; without --strict it is run all the same")
    root = Path(planned.project.root)
    changed = planned.info.model_copy(update={"rerun_of": info.run_id})
    return Again(
        source,
        record,
        replace(
            planned,
            info=changed,
            folder=output or root / ".seatrial" / "reruns" / changed.run_id,
            only=frozenset([record.key]),
        ),
        (*edits, *_other_code(changed, info)),
    )


def _options(info: RunInfo) -> dict[str, Any]:
    """What the run was asked besides its selection, as it holds for one trial."""
    kept = {name: info.options[name] for name in ("timeout_s", "tools", "isolation") if name in info.options}
    return kept | {"set": tuple(text for text in info.options.get("set", ()) if "[secret:" not in text)}


def _planned(request: Request, record: TrialRecord) -> Plan:
    try:
        return plan(request)
    except NothingSelected as error:
        raise UsageError(f"{record.case_id} is no case of the project any more, so it cannot be run again") from error


def _edits(case: PlannedCase, record: TrialRecord, info: RunInfo) -> Iterator[Diagnostic]:
    """What was edited of the case and its surroundings since the trial ran."""
    was, path, line = case.case.id, case.case.path, case.case.line
    known = info.inputs.get(was)
    if record.fixture_digest and record.fixture_digest != case.fixture_digest:
        name = case.case.environment.fixture or "what stands in the case"
        yield _note("fixture-edited", f"the fixture of {was} ({name}) was edited since this trial ran", path, line)
    elif known is not None and known != case.input_digest:
        yield _note("input-edited", f"the input of {was} was edited since this trial ran", path, line)
    elif record.case_digest != case.digest:
        yield _note("case-edited", f"what {was} expects was edited since this trial ran", path, line)


def _other_code(now: RunInfo, before: RunInfo) -> Iterator[Diagnostic]:
    """Code that is not the one of then: the same build name does not make it the same."""
    if before.git_commit != now.git_commit:
        old, new = (commit[:12] if commit else "no commit" for commit in (before.git_commit, now.git_commit))
        yield _note("other-commit", f"the project stands at another commit: {old} then, {new} now")
    for name in sorted(before.versions.keys() & now.versions.keys()):
        if before.versions[name] != now.versions[name]:
            yield _note("other-version", f"{name} {before.versions[name]} then, {now.versions[name]} now")


def _note(rule: str, message: str, path: str = "", line: int | None = None) -> Diagnostic:
    return Diagnostic(rule, message, path, line, severity="warning")


def execute_rerun(again: Again) -> Rerun:
    """Run the trial and put both side by side. Raises KeyboardInterrupt when it was interrupted."""
    run = execute(again.plan)
    if not run.trials:
        raise KeyboardInterrupt
    after = run.trials[-1]
    before, now = again.source.trace(again.record), run.trace(after)
    diff = align(trajectory_of(before, again.record), trajectory_of(now, after), names=("recorded trial", "new trial"))
    return Rerun(again.record, after, diff, run, again.notes)
