"""Approving a baseline: its absolute gates hold, and its figures were measured after the build was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

from seatrial.core.decision import Decision, DecisionVerdict
from seatrial.core.project import Project
from seatrial.core.run import RunStatus
from seatrial.core.trial import TrialRecord
from seatrial.errors import UsageError
from seatrial.harness.gating import Rulebook, judge, now
from seatrial.harness.plan import Plan, plan
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute
from seatrial.harness.stored import agent_of
from seatrial.report.files import check_writable
from seatrial.store.atomic import write_text
from seatrial.store.rundir import RunFolder
from seatrial.store.verifying import verify
from seatrial.verdict.baseline import Baseline, baseline_of, baseline_text

__all__ = ["FRESH_TRIALS", "WITHOUT_FRESH", "Approval", "approve", "check_terms", "fresh_plan", "is_fit"]

FRESH_TRIALS = 10
"""Trials a case that an approval runs, unless told otherwise."""
WITHOUT_FRESH = (
    "approved on the trials that it was chosen by: chosen figures are lucky ones, so an unchanged candidate will look "
    "worse than it is; without --no-fresh the build is measured anew"
)
"""What it costs to approve without fresh trials (see the documentation of statistics)."""


@dataclass(frozen=True)
class Approval:
    """What an approval came to."""

    decision: Decision
    run: Path
    """The run whose trials the baseline holds."""
    baseline: Baseline | None
    """None: refused, for the decision's reasons."""
    written: Path | None = None


def fresh_plan(project: Project, folder: Path, trials: int) -> Plan:
    """The plan of fresh trials of a run's build on its cases.

    Raises UsageError when the build cannot be run again, or a case was edited since.
    """
    info = RunFolder(folder).info
    spec = agent_of(info, project, otherwise="approve with --no-fresh")
    again = frozenset(info.cases)
    request = Request(project=Path(project.root), ids=again, agent=spec, build_id=info.build_id, trials=trials)
    planned = plan(request)
    edited = sorted(item.case.id for item in planned.cases if item.digest != info.cases[item.case.id])
    gone = sorted(info.cases.keys() - {item.case.id for item in planned.cases})
    if edited or gone:
        what = f"case {edited[0]} was edited" if edited else f"case {gone[0]} was removed"
        raise UsageError(f"{what} since {folder} was run; run the build again and approve that run")
    return planned


def approve(
    folder: Path,
    rules: Rulebook,
    *,
    approver: str,
    reason: str,
    output: Path,
    fresh: Plan | None,
    expires: date | None = None,
    on_trial: Callable[[TrialRecord, int, int], None] | None = None,
) -> Approval:
    """Approve a run's build as the baseline in `output`; nothing is written when it is refused.

    `fresh` is the plan of fresh trials, None to take the run's own. Refused are a run that did not finish or is not as
    it was written (then nothing is run), and one of which a gate, of level review too, does not hold or cannot be
    decided; review conditions are shown. Raises UsageError for wrong words, a curtailed run and a replayed one,
    StorageError for an output that cannot be written, all before any trial.
    """
    check_terms(approver, reason, output, expires)
    _refuse_curtailed(folder)
    if fresh is None:
        _refuse_replayed(folder)
    if fresh is not None and is_fit(folder):
        folder = _finished(execute(fresh, on_trial)).folder
    gated = judge([folder], rules, for_approval=True)
    if not _holds(gated.decision):
        return Approval(gated.decision, folder, None)
    baseline = baseline_of(
        gated.candidate.results,
        gated.candidate.infos,
        trace_of=gated.candidate.trace_of,
        approver=approver,
        reason=reason,
        expires=expires,
        digests={"policy": rules.digests["policy"]},
        fresh=fresh is not None,
        now=now(),
    )
    write_text(output, baseline_text(baseline))
    return Approval(gated.decision, folder, baseline, output)


def check_terms(approver: str, reason: str, output: Path, expires: date | None) -> None:
    """Refuse what would only be refused after the trials. Raises UsageError, or StorageError naming the output."""
    for name, text in (("--by", approver), ("--reason", reason)):
        if not text.strip():
            raise UsageError(f"{name} is empty; a baseline says who approved it and why")
    today = datetime.now(UTC).date()
    if expires is not None and expires < today:
        raise UsageError(f"--expires {expires} has passed (today is {today})")
    check_writable(output)


def is_fit(folder: Path) -> bool:
    """Whether a run may be approved at all: it finished, and its folder is as it was written."""
    stored = verify(RunFolder(folder))
    return stored.info.status is RunStatus.FINISHED and not stored.problems


def _holds(decision: Decision) -> bool:
    """Whether every gate holds. What a review condition says is for the person who approves."""
    if decision.verdict in (DecisionVerdict.BLOCK, DecisionVerdict.INCOMPLETE):
        return False
    return all(gate.verdict is DecisionVerdict.PASS for gate in decision.gates if gate.decides and not gate.condition)


def _refuse_curtailed(folder: Path) -> None:
    if RunFolder(folder).info.curtailed:
        raise UsageError(
            f"{folder}: the run stopped cases once they were decided (--stop-when-decided), so which trials it has "
            "depends on their outcomes; approve a run without it"
        )


def _refuse_replayed(folder: Path) -> None:
    if verify(RunFolder(folder)).replayed:
        raise UsageError(
            f"{folder}: the run was replayed from cassettes, so its trials are no fresh evidence; approve the run that "
            "recorded them, or without --no-fresh"
        )


def _finished(run: Run) -> Run:
    if run.info.status is not RunStatus.FINISHED:
        raise KeyboardInterrupt
    return run
