"""Commands that go back to a stored run: `regrade` and `rerun`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from seatrial.cli.output import json_option, print_json, project_option, stderr, stdout
from seatrial.cli.run import show_run
from seatrial.core.model_json import json_of
from seatrial.harness.regrading import Regraded, execute_regrade, plan_regrade
from seatrial.harness.rerunning import Rerun, execute_rerun, plan_rerun
from seatrial.harness.runs import find_run
from seatrial.loading.project_folder import find_root

__all__ = ["regrade", "rerun"]

FOLDER = click.Path(path_type=Path)


@click.command()
@click.argument("run")
@click.argument("select", nargs=-1, metavar="[PATH|SUITE|CASE]...")
@click.option("--output", type=FOLDER, metavar="DIR", help="The new run folder itself (new or empty).")
@click.option("-v", "--verbose", count=True, help="More detail (repeatable).")
@click.option("-q", "--quiet", is_flag=True, help="Only the result line.")
@project_option
@json_option
def regrade(
    run: str,
    select: tuple[str, ...],
    output: Path | None,
    verbose: int,
    quiet: bool,
    project: Path | None,
    as_json: bool,
) -> None:
    """Grade the stored traces of RUN again, under the present cases and graders; calls no agent.

    Writes a new run folder that names RUN, and exits as `run` does. A case whose input or fixture was edited since is
    named, and its trials are invalid: their traces are of another input.
    """
    from seatrial.report.terminal import Progress, print_diagnostics

    folder = find_run(run, find_root(project))
    planned = plan_regrade(folder, project=project, select=select, output=output, command=tuple(sys.argv[1:]))
    if planned.warnings:
        print_diagnostics(stderr(), planned.warnings)
    with Progress(stderr(), planned.total, quiet=quiet or as_json) as progress:
        done = execute_regrade(planned, progress.update)
    show_run(done.run, as_json=as_json, verbosity=-1 if quiet else verbose)
    if not (quiet or as_json):
        _show_flips(done, everything=verbose > 0)
    sys.exit(done.run.exit_code)


def _show_flips(done: Regraded, *, everything: bool) -> None:
    from seatrial.report.terminal import print_flips

    rows = [(str(flip.key), str(flip.before), str(flip.after)) for flip in done.flips]
    print_flips(stdout(), rows, done.flipped, everything=everything)


@click.command()
@click.argument("run")
@click.argument("trial", metavar="CASE[#TRIAL]")
@click.option("--output", type=FOLDER, metavar="DIR", help="The new trial's run folder (default: .seatrial/reruns/ID).")
@click.option("--strict", is_flag=True, help="Refuse when the case or its fixture was edited since.")
@click.option("-v", "--verbose", count=True, help="Equal steps and grades too.")
@project_option
@json_option
def rerun(
    run: str, trial: str, output: Path | None, strict: bool, verbose: int, project: Path | None, as_json: bool
) -> None:
    """Run one trial of RUN again: same case, fixture, seed, faults and build. Shows where the two trials part.

    Exits 0 when the new trial came to the same (status, reason for stopping, required grades), 1 when it did not, 4
    when it alone is invalid and so says nothing.
    """
    from seatrial.report.terminal import print_diagnostics

    folder = find_run(run, find_root(project))
    again = plan_rerun(folder, trial, project=project, output=output, strict=strict, command=tuple(sys.argv[1:]))
    notes = (*again.plan.warnings, *again.notes)
    if notes:
        print_diagnostics(stderr(), notes)
    done = execute_rerun(again)
    if as_json:
        print_json(_json_of(done))
    else:
        from seatrial.report.terminal import print_rerun

        print_rerun(stdout(), done.before, done.after, done.diff, everything=verbose > 0)
        click.echo(f"run folder: {done.run.folder}", err=True)
    sys.exit(done.exit_code)


def _json_of(done: Rerun) -> dict[str, Any]:
    """`{same, first_difference, steps, before, after, notes, run}`; steps are counted from 1."""
    steps = [
        {
            "before": None if pair.baseline is None else json_of(pair.baseline),
            "after": None if pair.candidate is None else json_of(pair.candidate),
            "difference": str(pair.difference),
        }
        for pair in done.diff.pairs
    ]
    return {
        "same": done.same,
        "first_difference": None if done.diff.first is None else done.diff.first + 1,
        "steps": steps,
        "before": json_of(done.before),
        "after": json_of(done.after),
        "notes": [str(note) for note in done.notes],
        "run": str(done.run.folder),
    }
