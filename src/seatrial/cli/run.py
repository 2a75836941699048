"""`seatrial run`."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from seatrial.cli.numbers import AMOUNT
from seatrial.cli.output import json_option, print_json, project_option, results_alone_on_stdout, stderr, stdout
from seatrial.cli.release import show_decision
from seatrial.cli.resuming import command_to_go_on, hint
from seatrial.core.run import RunStatus
from seatrial.errors import ExitCode, NothingSelected, SeatrialError, StorageError
from seatrial.harness.gating import Rulebook, judge, project_or_none, rulebook
from seatrial.harness.plan import Plan, plan
from seatrial.harness.request import Request
from seatrial.harness.runs import Run, execute, failed_ids, find_run, load
from seatrial.harness.selecting import selected

__all__ = ["run", "show_run"]

FILE = click.Path(path_type=Path, dir_okay=False)


@click.command()
@click.argument("select", nargs=-1, metavar="[PATH|SUITE|CASE]...")
@click.option("--suite", multiple=True, metavar="NAME", help="Only cases of this suite (repeatable).")
@click.option("--tag", multiple=True, metavar="TAG", help="Only cases with this tag (repeatable).")
@click.option("--risk", multiple=True, type=click.Choice(["low", "medium", "high", "critical"]), help="Only this risk.")
@click.option(
    "-k", "keyword", default="", metavar="TEXT", help="Only cases whose id holds TEXT; and, or, not and ( ) work."
)
@click.option("--failed-from", metavar="RUN", help="Only cases that did not pass in that run (folder, id or latest).")
@click.option("--agent", metavar="SPEC", help="module:object instead of the project's agent.")
@click.option("--build", metavar="NAME", help="One of the project's builds.")
@click.option("--trials", type=click.IntRange(min=1), metavar="N", help="Trials a case, instead of its own number.")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="N", help="Trials in flight at once.")
@click.option("--timeout", "timeout_s", type=AMOUNT, metavar="S", help="Seconds a trial.")
@click.option("--seed", type=int, metavar="N", help="Seed of the run (default: random, on record).")
@click.option("--tools", type=click.Choice(["stand_in", "real"]), help="Whether stand-ins answer for tools.")
@click.option(
    "--cassettes",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Folder of recorded model calls.",
)
@click.option(
    "--cassette-mode",
    type=click.Choice(["off", "record", "replay"]),
    help="Record model calls into --cassettes, or answer them from there and never live.",
)
@click.option("--isolation", type=click.Choice(["thread", "process"]), help="Where each trial runs.")
@click.option("--executor", metavar="NAME", help="local, or dask: trials on a cluster.")
@click.option("--scheduler", metavar="ADDRESS", help="The cluster's scheduler (tcp://...); without it one on loopback.")
@click.option(
    "--max-cost",
    type=AMOUNT,
    metavar="USD",
    help="Start no trial that may not fit into this much money.",
)
@click.option("--max-time", type=AMOUNT, metavar="S", help="Start no trial after S seconds.")
@click.option("--allow-unknown-cost", is_flag=True, help="With --max-cost: go on where a price is unknown.")
@click.option("--stop-when-decided", is_flag=True, help="End a case once it is decided; only verdicts compare.")
@click.option("--output", type=click.Path(path_type=Path), metavar="DIR", help="The run folder itself (new or empty).")
@click.option("--resume", is_flag=True, help="Go on with the run in --output: only what is not on record runs.")
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="Override a setting of seatrial.yaml.")
@click.option("--list", "list_only", is_flag=True, help="List the selected cases and run nothing.")
@click.option("--policy", type=FILE, metavar="F", help="Decide a release by this policy in the end (see `gate`).")
@click.option("--baseline", "baseline_file", type=FILE, metavar="F", help="The baseline for --policy.")
@click.option("--debug", is_flag=True, help="One trial, nothing captured, a debugger where the agent raises.")
@click.option("-v", "--verbose", count=True, help="More detail (repeatable).")
@click.option("-q", "--quiet", is_flag=True, help="Only the result line.")
@project_option
@json_option
def run(
    *,
    set_: tuple[str, ...],
    failed_from: str | None,
    list_only: bool,
    policy: Path | None,
    baseline_file: Path | None,
    verbose: int,
    quiet: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Run the agent on the selected cases, each trial in a freshly reset environment, and grade every trial.

    Selects by path, suite or case id; without a selection every case runs. Exits 0 when all passed, 1 when a case of
    a gating suite failed, 4 when one is invalid or ungraded or the budget ran out, 5 when nothing was selected. With
    --policy or --baseline it decides a release as `gate` does, and exits as that does.
    """
    request = Request(**given, set=set_, ids=_ids(failed_from, given["project"]), command=tuple(sys.argv[1:]))
    if list_only:
        _list_cases(request, as_json=as_json)
        return
    rules = _rules(given["project"], policy, baseline_file)
    finished = _run(request, quiet=quiet or as_json)
    verbosity = -1 if quiet else verbose
    if rules is None:
        show_run(finished, as_json=as_json, verbosity=verbosity)
        sys.exit(finished.exit_code)
    if not as_json:
        show_run(finished, as_json=False, verbosity=verbosity)
    gated = judge([finished.folder], rules)
    show_decision(gated, as_json=as_json, verbosity=verbosity)
    interrupted = finished.exit_code == ExitCode.INTERRUPTED
    sys.exit(ExitCode.INTERRUPTED if interrupted else gated.decision.exit_code)


def _rules(project: Path | None, policy: Path | None, baseline: Path | None) -> Rulebook | None:
    """What to decide by, read before the first agent call; None when no decision is asked for."""
    if policy is None and baseline is None:
        return None
    return rulebook(project_or_none(project), policy, baseline)


def _ids(failed_from: str | None, project: Path | None) -> frozenset[str] | None:
    if failed_from is None:
        return None
    run = load(find_run(failed_from, project))
    ids = failed_ids(run)
    if not ids:
        raise NothingSelected(f"every case passed in {run.folder}; there is nothing to run again")
    return ids


def _list_cases(request: Request, *, as_json: bool) -> None:
    from seatrial.report.terminal import print_cases

    cases = selected(request).cases
    if as_json:
        print_json({"cases": [{"id": case.id, "suite": case.suite, "risk": case.risk} for case in cases]})
    else:
        print_cases(stdout(), cases)


def _run(request: Request, *, quiet: bool) -> Run:
    from seatrial.report.terminal import Progress, print_diagnostics

    planned = plan(request)
    if planned.warnings:
        print_diagnostics(stderr(), planned.warnings)
    if planned.complete and not quiet:
        click.echo(f"{_short(planned.folder)}: this run is complete; nothing is run again", err=True)
    try:
        if request.debug:
            return execute(planned, debugger=_post_mortem())
        with results_alone_on_stdout(), Progress(stderr(), planned.total, quiet=quiet) as progress:
            return execute(planned, progress.update)
    except KeyboardInterrupt:  # the second one
        _end_at_once(planned)
        raise
    except StorageError as error:
        raise StorageError(f"{error}{_how_to_go_on(planned)}") from error


def _how_to_go_on(planned: Plan) -> str:
    """A line of its own when there is something to go on with."""
    with contextlib.suppress(SeatrialError):
        return f"\n{hint(load(planned.folder), _short(planned.folder))}"
    return ""


def _end_at_once(planned: Plan) -> None:
    """Leave without waiting for whatever an agent left running; the folder is closed."""
    click.echo(f"interrupted{_how_to_go_on(planned)}", err=True)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ExitCode.INTERRUPTED)


def _post_mortem() -> Callable[[BaseException], None]:
    import pdb
    import traceback

    def at(error: BaseException) -> None:
        traceback.print_exception(error)
        pdb.post_mortem(error.__traceback__)

    return at


def show_run(finished: Run, *, as_json: bool, verbosity: int) -> None:
    """Print a run's summary, or the text of its results."""
    from seatrial.report.terminal import print_summary

    if finished.info.status is RunStatus.INTERRUPTED and not finished.info.regraded_from:
        click.echo(hint(finished, _short(finished.folder)), err=True)
    if as_json:
        print_json(finished.results())
    else:
        print_summary(stdout(), finished.results(), verbosity=verbosity, run=_short(finished.folder))
        if verbosity >= 0:
            click.echo(f"run folder: {_short(finished.folder)}", err=True)
    budget = finished.budget_for_the_rest
    if budget is not None:
        command = command_to_go_on(_short(finished.folder), budget)
        click.echo(f"the budget ran out; to run the rest: {command}", err=True)


def _short(folder: Path) -> str:
    """The path as short as it can be typed from here."""
    here = Path.cwd()
    return str(folder.relative_to(here)) if folder.is_relative_to(here) else str(folder)
