"""Commands that test the evaluation itself: `isolate`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from seatrial.cli.numbers import AMOUNT
from seatrial.cli.output import json_option, print_json, project_option, stdout
from seatrial.harness.request import Request
from seatrial.harness.selecting import selected
from seatrial.proving.bench import Bench, copyable
from seatrial.proving.isolation import Orders
from seatrial.proving.isolation import isolate as examine

__all__ = ["isolate"]


@click.command()
@click.argument("select", nargs=-1, metavar="[PATH|SUITE|CASE]...")
@click.option("--suite", multiple=True, metavar="NAME", help="Only cases of this suite (repeatable).")
@click.option("--tag", multiple=True, metavar="TAG", help="Only cases with this tag (repeatable).")
@click.option("-k", "keyword", default="", metavar="TEXT", help="Only cases whose id holds TEXT, as in `run`.")
@click.option("--agent", metavar="SPEC", help="module:object instead of the project's agent.")
@click.option("--build", metavar="NAME", help="One of the project's builds.")
@click.option("--orders", type=click.IntRange(min=0), default=3, show_default=True, help="Shuffled orders to try.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the shuffles, and of every trial.")
@click.option(
    "--concurrency", type=click.IntRange(min=1), metavar="N", help="Trials at once side by side; 1 leaves that out."
)
@click.option("--timeout", "timeout_s", type=AMOUNT, metavar="S", help="Seconds a trial.")
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="Override a setting of seatrial.yaml.")
@click.option("--in-place", is_flag=True, help="Run in the project's own folder instead of fresh copies of it.")
@click.option("-v", "--verbose", count=True, help="All suspects, and the orders tried.")
@project_option
@json_option
def isolate(
    *,
    set_: tuple[str, ...],
    orders: int,
    seed: int,
    in_place: bool,
    verbose: int,
    as_json: bool,
    **given: Any,
) -> None:
    """Find cases whose result depends on the order of trials or on company, and what they share.

    Runs every case alone in a fresh process, then all in file order twice over, reversed, shuffled, and side by side:
    1 + 4 + N trials a case, more for what comes out differently. Exits 0 when every case is independent, 1 when one
    depends on others, 4 when flaky cases hide the answer.
    """
    request = Request(**given, set=set_, seed=seed)
    found = selected(request)
    root = Path(found.project.root)
    copied = not in_place and copyable(root)
    tried = Orders(orders, seed, request.concurrency or found.project.concurrency)
    with Bench(replace(request, project=root), found.cases, in_place=not copied) as bench:
        result = examine(bench, {case.id: case.suite for case in found.cases}, tried, _teller(quiet=as_json))
    if not copied and not in_place:
        result = replace(result, notes=(*result.notes, _TOO_LARGE))
    _show(result, as_json=as_json, verbosity=verbose)
    sys.exit(result.exit_code)


_TOO_LARGE = (
    "the project is too large to be copied for every order: files that trials leave in it "
    "reach from one order to the next"
)


def _teller(*, quiet: bool) -> Callable[[str], None]:
    return lambda text: None if quiet else click.echo(f"  {text}", err=True)


def _show(result: Any, *, as_json: bool, verbosity: int) -> None:
    from seatrial.report.isolation_view import isolation_data
    from seatrial.report.terminal import print_isolation

    if as_json:
        print_json(isolation_data(result))
    else:
        print_isolation(stdout(), result, verbosity=verbosity)
