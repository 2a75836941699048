"""Commands about what was run: `show`, `compare`, `list`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from seatrial.cli.output import json_option, print_json, project_option, stdout
from seatrial.core.model_json import json_of
from seatrial.errors import StorageError
from seatrial.harness.comparing import compare as compare_paths
from seatrial.harness.comparing import comparison_json
from seatrial.harness.runs import find_run, load, runs_of
from seatrial.harness.stored import trial_of
from seatrial.loading.project_folder import find_root

__all__ = ["compare", "list_runs", "show"]


@click.command()
@click.argument("run")
@click.argument("trial", metavar="CASE[#TRIAL]")
@project_option
@json_option
def show(run: str, trial: str, project: Path | None, as_json: bool) -> None:
    """Print one trial of RUN (a folder, an id, or `latest`): its trace, grades and outcome."""
    found = load(find_run(run, project))
    record = trial_of(found, trial)
    case = next((case for case in found.definitions if case.id == record.case_id), None)
    if case is None:
        raise StorageError(f"{found.folder / 'cases.jsonl'}: has no case {record.case_id!r}")
    trace = found.trace(record)
    if as_json:
        print_json({"record": json_of(record), "trace": json_of(trace)})
    else:
        from seatrial.report.terminal import print_trace

        ledger = found.trials
        entries = ledger.entries(ledger.of_case(record.case_id))
        attempts = [each.whole for each in entries if each.trial_index == record.trial_index]
        print_trace(stdout(), case, record, trace, attempts)


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
    return given if given.exists() else find_run(str(given), project)


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
