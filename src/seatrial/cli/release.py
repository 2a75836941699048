"""Commands that lead to a release decision: `gate`, `approve`, `baseline`, `metrics`."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from seatrial.cli.output import json_option, print_json, project_option, stderr, stdout
from seatrial.core.decision import DecisionVerdict
from seatrial.core.model_json import json_of
from seatrial.core.project import Project
from seatrial.errors import ExitCode, UsageError
from seatrial.harness.approving import FRESH_TRIALS, WITHOUT_FRESH, Approval, approve, check_terms, fresh_plan, is_fit
from seatrial.harness.comparing import side_at
from seatrial.harness.gating import Gated, judge, project_or_none, rulebook, set_aside
from seatrial.harness.plan import Plan
from seatrial.harness.runs import find_run
from seatrial.loading.files import is_there
from seatrial.report.files import check_writable
from seatrial.store.rundir import RunFolder
from seatrial.verdict.baseline import read_baseline
from seatrial.verdict.baseline_diff import baseline_diff, run_diff

__all__ = ["approve_run", "baseline", "gate_runs", "metrics", "show_decision"]

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(name="gate")
@click.option(
    "--candidate", "candidates", multiple=True, required=True, metavar="RUN", help="Run folder, id or latest."
)
@click.option("--policy", type=FILE, metavar="F", help="Default: policies/release_policy.yaml of the project.")
@click.option("--baseline", "baseline_file", type=FILE, metavar="F", help="Default: baselines/approved.json.")
@click.option("--output", type=FILE, metavar="F", help="Where the decision goes (default: into the first run folder).")
@click.option("-v", "--verbose", count=True, help="Every case that counts against a gate.")
@click.option("-q", "--quiet", is_flag=True, help="Only the verdict.")
@project_option
@json_option
def gate_runs(
    candidates: tuple[str, ...],
    policy: Path | None,
    baseline_file: Path | None,
    output: Path | None,
    verbose: int,
    quiet: bool,
    project: Path | None,
    as_json: bool,
) -> None:
    """Decide a release: PASS 0, BLOCK 1, REVIEW 3, INCOMPLETE 4. The decision is always written.

    Several candidates of one build, with equal cases, are pooled.
    """
    if output is not None:
        check_writable(output)
    first, *others = candidates
    folders = [find_run(first, project)]
    set_aside(folders, output)
    folders += [find_run(name, project) for name in others]
    gated = judge(folders, rulebook(project_or_none(project), policy, baseline_file), output=output)
    show_decision(gated, as_json=as_json, verbosity=-1 if quiet else verbose)
    sys.exit(gated.decision.exit_code)


def show_decision(gated: Gated, *, as_json: bool, verbosity: int) -> None:
    """Print a decision, as a report or as its own document."""
    if as_json:
        print_json(json_of(gated.decision))
        return
    from seatrial.report.terminal import print_decision

    summary = gated.candidate.summary()
    print_decision(stdout(), gated.decision, summary=summary, comparison=gated.comparison, verbosity=verbosity)
    if verbosity >= 0:
        click.echo(f"decision: {gated.written}", err=True)


@click.command(name="approve")
@click.argument("run")
@click.option("--by", "approver", required=True, metavar="NAME", help="Who approves.")
@click.option("--reason", required=True, metavar="TEXT", help="Why this build is the one to compare with.")
@click.option("--no-fresh", is_flag=True, help="Take the run's own trials instead of fresh ones (says what it costs).")
@click.option(
    "--trials", type=click.IntRange(min=1), default=FRESH_TRIALS, show_default=True, help="Fresh trials a case."
)
@click.option("--expires", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="The last day on which it holds.")
@click.option("--policy", type=FILE, metavar="F", help="Default: policies/release_policy.yaml of the project.")
@click.option("--output", type=FILE, metavar="F", help="Default: baselines/approved.json of the project.")
@project_option
@json_option
def approve_run(
    run: str,
    approver: str,
    reason: str,
    no_fresh: bool,
    trials: int,
    expires: datetime | None,
    policy: Path | None,
    output: Path | None,
    project: Path | None,
    as_json: bool,
) -> None:
    """Approve the build of RUN as the baseline, when the policy's absolute gates hold; refused: exit 1.

    Gates of level review must hold too; review conditions are shown. Its figures are measured anew, so that the
    baseline is not the lucky one of several.
    """
    found = project_or_none(project)
    if found is None and output is None:
        raise UsageError("there is no project here; name the file to write with --output")
    root = Path.cwd() if found is None else Path(found.root)
    folder, target = find_run(run, root), output or root / "baselines" / "approved.json"
    last_day = None if expires is None else expires.date()
    check_terms(approver, reason, target, last_day)
    rules = rulebook(found, policy, with_baseline=False)
    fresh = None if no_fresh or not is_fit(folder) else _fresh(found, folder, trials)
    from seatrial.report.terminal import Progress

    with Progress(stderr(), 0 if fresh is None else fresh.total, quiet=as_json or fresh is None) as progress:
        approval = approve(
            folder,
            rules,
            approver=approver,
            reason=reason,
            output=target,
            fresh=fresh,
            expires=last_day,
            on_trial=progress.update,
        )
    _tell(approval, as_json=as_json, fresh=not no_fresh)


def _fresh(project: Project | None, folder: Path, trials: int) -> Plan:
    if project is None:
        raise UsageError("fresh trials need the project; run this inside it, or approve with --no-fresh")
    return fresh_plan(project, folder, trials)


def _tell(approval: Approval, *, as_json: bool, fresh: bool) -> None:
    refused = approval.baseline is None
    if as_json:
        document = {"approved": not refused, "baseline": None if refused else str(approval.written)}
        print_json({**document, "fresh": fresh, "decision": json_of(approval.decision)})
    else:
        from seatrial.report.terminal import print_decision

        if refused or not fresh or approval.decision.verdict is not DecisionVerdict.PASS:
            print_decision(stdout(), approval.decision)
        if not fresh and not refused:
            click.echo(f"note: {WITHOUT_FRESH}", err=True)
        said = "refused: see the decision above" if refused else f"approved: {approval.written}"
        click.echo(f"{said}\nmeasured on: {approval.run}")
    sys.exit(ExitCode.FAILED if refused else ExitCode.PASS)


@click.group(name="baseline")
def baseline() -> None:
    """Show the approved baseline, or what would change."""


@baseline.command(name="show")
@click.option("--file", "file", type=FILE, metavar="F", help="Default: baselines/approved.json of the project.")
@project_option
@json_option
def show(file: Path | None, project: Path | None, as_json: bool) -> None:
    """Show who approved what, when and why, and its cases."""
    found = read_baseline(file or _approved(project))
    if as_json:
        print_json(json_of(found))
    else:
        from seatrial.report.terminal import print_baseline

        print_baseline(stdout(), found, today=datetime.now(UTC).date())


@baseline.command(name="diff")
@click.argument("other", metavar="RUN|FILE")
@click.option("--file", "file", type=FILE, metavar="F", help="Default: baselines/approved.json of the project.")
@project_option
@json_option
def diff(other: str, file: Path | None, project: Path | None, as_json: bool) -> None:
    """Show what would change in the baseline if RUN (or another baseline file) took its place."""
    from seatrial.report.terminal import print_baseline_diff

    before = read_baseline(file or _approved(project))
    path = Path(other) if Path(other).exists() else find_run(other, _root(project))
    if path.is_dir():
        difference = run_diff(before, RunFolder(path).info, side_at(path))
    else:
        difference = baseline_diff(before, read_baseline(path))
    if as_json:
        from seatrial.report.baseline_view import baseline_diff_data

        print_json(baseline_diff_data(difference))
    else:
        print_baseline_diff(stdout(), difference)


def _root(project: Path | None) -> Path:
    found = project_or_none(project)
    return Path.cwd() if found is None else Path(found.root)


def _approved(project: Path | None) -> Path:
    path = _root(project) / "baselines" / "approved.json"
    if not is_there(path):
        raise UsageError(f"{path}: there is no approved baseline yet; `seatrial approve` makes one")
    return path


@click.command(name="metrics")
@json_option
def metrics(as_json: bool) -> None:
    """List every metric that a policy can name: its usual group and its definition."""
    from seatrial.core.metric import METRICS

    if as_json:
        known = METRICS.values()
        print_json({"metrics": [{"name": m.name, "group": m.group, "definition": m.definition} for m in known]})
    else:
        from seatrial.report.terminal import print_metrics

        print_metrics(stdout(), tuple(METRICS.values()))
