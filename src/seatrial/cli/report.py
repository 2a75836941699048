"""`seatrial report`: a stored run as files for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from seatrial.cli.output import json_option, print_json, project_option
from seatrial.core.decision import Decision
from seatrial.core.project import Project
from seatrial.errors import UsageError
from seatrial.harness.gating import DECISION, Candidate, decision_of, project_or_none
from seatrial.harness.runs import find_run
from seatrial.loading.files import is_there
from seatrial.report.files import check_writable
from seatrial.store.atomic import write_text
from seatrial.verdict.baseline import read_baseline
from seatrial.verdict.comparison import Comparison

__all__ = ["report"]

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.option("--junit", type=FILE, metavar="F", help="JUnit XML.")
@click.option("--markdown", type=FILE, metavar="F", help="Markdown, as for a GitHub step summary.")
@click.option("--annotations", is_flag=True, help="Print GitHub annotations of the cases that did not pass.")
@click.option("--decision", type=FILE, metavar="F", help="A decision to show (default: the one in the run folder).")
@click.option("--baseline", "baseline_file", type=FILE, metavar="F", help="Default: baselines/approved.json.")
@project_option
@json_option
def report(
    runs: tuple[str, ...],
    junit: Path | None,
    markdown: Path | None,
    annotations: bool,
    decision: Path | None,
    baseline_file: Path | None,
    project: Path | None,
    as_json: bool,
) -> None:
    """Write reports of stored runs (folders, ids or `latest`; several of one build are pooled)."""
    if junit is None and markdown is None and not annotations:
        raise UsageError("name what to write: --junit F, --markdown F or --annotations")
    found = project_or_none(project)
    root = Path.cwd() if found is None else Path(found.root)
    candidate = Candidate([find_run(name, root) for name in runs])
    for problem in candidate.problems:
        click.echo(f"warning: {problem}", err=True)
    summary = candidate.summary()
    decided = _decision(decision, candidate) if markdown is not None or decision is not None else None
    for path in (junit, markdown):
        if path is not None:
            check_writable(path)
    if junit is not None:
        from seatrial.report.junit import junit_text

        write_text(junit, junit_text(summary, run=runs[0]))
    if markdown is not None:
        from seatrial.report.markdown import markdown_text

        compared = _compared(candidate, baseline_file, found)
        write_text(markdown, markdown_text(summary, decision=decided, comparison=compared))
    lines = _annotations(candidate, summary, root) if annotations else None
    if as_json:
        print_json({"junit": junit and str(junit), "markdown": markdown and str(markdown), "annotations": lines})
    elif lines:
        click.echo("\n".join(lines))


def _annotations(candidate: Candidate, summary: dict[str, Any], root: Path) -> list[str]:
    from seatrial.report.annotations import annotation_lines

    return list(annotation_lines(summary, cases=candidate.cases, folder=_below_here(root)))


def _compared(candidate: Candidate, named: Path | None, project: Project | None) -> Comparison | None:
    """The baseline beside the run; None where there is no baseline."""
    approved = None if project is None else Path(project.root) / "baselines" / "approved.json"
    path = named or (approved if approved is not None and is_there(approved) else None)
    return None if path is None else candidate.compared_with(read_baseline(path))


def _below_here(root: Path) -> str:
    """The project's folder as seen from the working folder, which in CI is the repository's."""
    relative = os.path.relpath(root, Path.cwd())
    return "" if relative.startswith("..") or relative == "." else relative


def _decision(named: Path | None, candidate: Candidate) -> Decision | None:
    """The decision to show: the one that was named, else the one in the run's folder when it is on these very runs."""
    if named is not None:
        return decision_of(named, candidate)
    usual = candidate.folders[0] / DECISION
    if not usual.is_file():
        return None
    try:
        return decision_of(usual, candidate)
    except UsageError as error:
        click.echo(f"note: left out, {error}", err=True)
        return None
