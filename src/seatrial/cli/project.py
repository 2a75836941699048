"""Commands about what people wrote: `check`, `config`, `schema`."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from seatrial.cli.output import json_option, print_json, project_option, stdout
from seatrial.core.grading import count
from seatrial.errors import ExitCode

__all__ = ["check", "config", "schema"]


@click.command()
@project_option
@json_option
def check(project: Path | None, as_json: bool) -> None:
    """Check seatrial.yaml, cases, fixtures, policies and the code they name, and report all errors at once.

    Your modules are imported, the agent is not called. Exits 0 when there is no error (warnings are fine), 2 otherwise.
    """
    from seatrial.harness.checking import check_project
    from seatrial.loading.project_folder import find_root

    found = check_project(find_root(project))
    errors = [item for item in found if item.severity == "error"]
    if as_json:
        import dataclasses

        print_json({"diagnostics": [dataclasses.asdict(item) for item in found]})
    else:
        from seatrial.report.terminal import print_diagnostics

        print_diagnostics(stdout(), found)
        warnings = len(found) - len(errors)
        click.echo(f"{count(len(errors), 'error')}, {count(warnings, 'warning')}" if found else "no errors")
    sys.exit(ExitCode.USAGE if errors else ExitCode.PASS)


@click.command()
@click.option("--set", "set_", multiple=True, metavar="KEY=VALUE", help="Override a setting, as in `run`.")
@project_option
@json_option
def config(project: Path | None, set_: tuple[str, ...], as_json: bool) -> None:
    """Print every setting with its value and where it came from. Secrets are masked."""
    from seatrial.loading.settings import explain

    settings = explain(folder=project, overrides=set_)
    if as_json:
        print_json({"settings": [{"key": s.key, "value": s.value, "origin": s.origin} for s in settings]})
    else:
        from seatrial.report.terminal import print_settings

        print_settings(stdout(), [(s.key, s.value, s.origin) for s in settings])


@click.command()
@click.argument("name")
@json_option
def schema(name: str, as_json: bool) -> None:
    """Print the JSON Schema of a file format (case, fixture, project, permissions), for editors."""
    from seatrial.loading.schema import schema as schema_of

    print_json(schema_of(name))
