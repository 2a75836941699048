"""Approving a baseline: its absolute gates hold, and its figures were measured after the build was chosen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from seatrial.core.decision import Decision, DecisionVerdict
from seatrial.core.project import Project
from seatrial.core.run import RunStatus
from seatrial.core.trial import TrialRecord
from seatrial.errors import UsageError
from seatrial.harness.gating import Candidate, Rulebook, judge, now
from seatrial.harness.plan import Plan, Request, plan
from seatrial.harness.runs import Run, execute
from seatrial.harness.stored import agent_of
from seatrial.store.atomic import write_text
from seatrial.store.rundir import RunFolder
from seatrial.verdict.baseline import Baseline, baseline_of, baseline_text

__all__ = ["FRESH_TRIALS", "WITHOUT_FRESH", "Approval", "approve", "fresh_plan"]

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

    `fresh` is the plan of fresh trials, None to take the run's own. Raises UsageError for a run that did not finish
    or was curtailed.
    """
    info = RunFolder(folder).info
    if info.status is not RunStatus.FINISHED:
        raise UsageError(f"{folder}: the run is {info.status}; only a finished run can be approved")
    if info.curtailed:
        raise UsageError(
            f"{folder}: the run stopped cases once they were decided (--stop-when-decided), so which trials it has "
            "depends on their outcomes; approve a run without it"
        )
    measured = folder if fresh is None else _finished(execute(fresh, on_trial)).folder
    gated = judge([measured], rules, for_approval=True)
    if gated.decision.verdict in (DecisionVerdict.BLOCK, DecisionVerdict.INCOMPLETE):
        return Approval(gated.decision, measured, None)
    candidate = Candidate([measured])
    baseline = baseline_of(
        candidate.results,
        candidate.infos,
        trace_of=candidate.trace_of,
        approver=approver,
        reason=reason,
        expires=expires,
        digests={"policy": rules.digests["policy"]},
        fresh=fresh is not None,
        now=now(),
    )
    write_text(output, baseline_text(baseline))
    return Approval(gated.decision, measured, baseline, output)


def _finished(run: Run) -> Run:
    if run.info.status is not RunStatus.FINISHED:
        raise KeyboardInterrupt
    return run
