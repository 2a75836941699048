"""Commands about what was run: `show`, `compare`, `list`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from seatrial.cli.output import json_option, print_json, project_option, stdout
from seatrial.core.trial import TrialRecord
from seatrial.errors import UsageError, did_you_mean
from seatrial.harness.comparing import compare as compare_paths
from seatrial.harness.comparing import comparison_json
from seatrial.harness.runs import Run, find_run, load, runs_of
from seatrial.loading.config import find_root

__all__ = ["compare", "list_runs", "show"]


@click.command()
@click.argument("run")
@click.argument("trial", metavar="CASE[#TRIAL]")
@project_option
@json_option
def show(run: str, trial: str, project: Path | None, as_json: bool) -> None:
    """Print one trial of RUN (a folder, an id, or `latest`): its trace, grades and outcome."""
    found = load(find_run(run, find_root(project)))
    record = _trial(found, trial)
    case = next(case for case in found.definitions if case.id == record.case_id)
    trace = found.trace(record)
    if as_json:
        print_json({"record": record.model_dump(mode="json"), "trace": trace.model_dump(mode="json")})
    else:
        from seatrial.report.terminal import print_trace

        attempts = [each for each in found.trials if each.key == record.key]
        print_trace(stdout(), case, record, trace, attempts)


def _trial(run: Run, text: str) -> TrialRecord:
    """The trial `CASE#N` means; without a number the first that did not pass, else the first."""
    case_id, number = _split(text, {record.case_id for record in run.trials})
    records = [record for record in run.trials if record.case_id == case_id]
    if not records:
        hint = did_you_mean(case_id, [case.id for case in run.definitions])
        raise UsageError(f"{run.folder} has no trial of {case_id!r}" + (f"; {hint}" if hint else ""))
    if number is None:
        return next((record for record in records if record.status != "passed"), records[0])
    numbered = [record for record in records if record.trial_index == number]
    if not numbered:
        raise UsageError(f"{case_id} has trials 1 to {max(r.trial_index for r in records)}, no trial {number}")
    return numbered[-1]


def _split(text: str, known: set[str]) -> tuple[str, int | None]:
    case_id, mark, number = text.rpartition("#")
    if text in known or not mark or not number.isdecimal():
        return text, None
    return case_id, int(number)


@click.command()
@click.argument("baseline", type=click.Path(path_type=Path))
@click.argument("candidate", type=click.Path(path_type=Path))
@click.option("--strict", is_flag=True, help="Exit 1 when anything broke, proven or not.")
@click.option("-v", "--verbose", count=True, help="Cases without a change too.")
@project_option
@json_option
def compare(baseline: Path, candidate: Path, strict: bool, verbose: int, project: Path | None, as_json: bool) -> None:
    """Compare two run folders (or harness files) case by case: broke, fixed, new or removed, with both reasons.

    Exits 1 when a case broke and that is certain (it is deterministic or critical, or the files are of the
    function-style harness), 3 when a case broke within noise, 4 when a case has no valid trial on one side.
    """
    result = compare_paths(_path(baseline, project), _path(candidate, project), strict=strict)
    if as_json:
        print_json(comparison_json(result))
    else:
        from seatrial.report.terminal import print_comparison

        print_comparison(stdout(), result.comparison, strict=result.strict, verbosity=verbose)
    sys.exit(result.exit_code)


def _path(given: Path, project: Path | None) -> Path:
    return given if given.exists() else find_run(str(given), find_root(project))


@click.command(name="list")
@project_option
@json_option
def list_runs(project: Path | None, as_json: bool) -> None:
    """List the runs of a project, newest first."""
    runs = runs_of(find_root(project))
    rows = [(info.run_id, info.build_id, str(info.status), info.trials_planned, info.started) for info in runs]
    if as_json:
        keys = ("run_id", "build_id", "status", "trials", "started")
        print_json({"runs": [dict(zip(keys, row, strict=True)) for row in rows]})
    else:
        from seatrial.report.terminal import print_runs

        print_runs(stdout(), rows)
