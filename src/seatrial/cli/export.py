"""`seatrial export`: a stored run in another program's format."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli.output import json_option, print_json, project_option
from seatrial.harness.runs import find_run, load
from seatrial.report.files import check_writable
from seatrial.report.otlp import otlp_lines
from seatrial.store.atomic import write_parts

__all__ = ["export"]


@click.command()
@click.argument("run")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--to", type=click.Choice(["otlp"]), default="otlp", show_default=True, help="The format.")
@project_option
@json_option
def export(run: str, file: Path, to: str, project: Path | None, as_json: bool) -> None:
    """Write RUN (a folder, an id, or `latest`) to FILE for another program.

    `otlp` is OpenTelemetry's JSON, one trial a line, with the names of the GenAI conventions: any viewer that reads
    OTLP files shows every trial as a trace. Nothing is sent anywhere.
    """
    check_writable(file)
    found = load(find_run(run, project))
    missing = found.info.trials_planned - len({record.key for record in found.trials})
    if missing > 0:
        click.echo(f"note: {missing} of {found.info.trials_planned} planned trials are not on record", err=True)
    traced = ((record, found.trace(record)) for record in found.trials)
    write_parts(file, (line + "\n" for line in otlp_lines(found.info, traced)))
    written = len(found.trials)
    if as_json:
        print_json({"file": str(file), "format": to, "trials": written})
    else:
        click.echo(f"{file}: {written} trials of run {found.info.run_id}")
