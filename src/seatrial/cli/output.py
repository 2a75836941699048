"""Where a command's words go: results to standard output, everything else to standard error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from seatrial.errors import InputError, SeatrialError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "json_option",
    "print_error",
    "print_json",
    "project_option",
    "results_alone_on_stdout",
    "stderr",
    "stdout",
]

F = TypeVar("F", bound=Callable[..., Any])


def project_option(command: F) -> F:
    """`--project DIR`: the project's folder, instead of the one found upward from here."""
    return click.option(
        "--project",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        metavar="DIR",
        help="The project's folder (default: found upward from here).",
    )(command)


def json_option(command: F) -> F:
    """`--json`: exactly one JSON document on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print exactly one JSON document.")(command)


def stdout() -> Console:
    """Results go here."""
    from seatrial.report.terminal import console

    return console(sys.stdout)


def stderr() -> Console:
    """Progress, warnings and errors go here."""
    from seatrial.report.terminal import console

    return console(sys.stderr)


@contextmanager
def results_alone_on_stdout() -> Iterator[None]:
    """While this lasts, what is written to file descriptor 1 goes to standard error: an agent's child processes and C
    libraries write there, past anything that Python can catch."""
    try:
        descriptors = sys.__stdout__.fileno(), sys.__stderr__.fileno()  # type: ignore[union-attr]  # None raises here
    except (AttributeError, OSError, ValueError):  # no real streams, as under a test runner
        yield
        return
    sys.stdout.flush()
    kept = os.dup(descriptors[0])
    os.dup2(descriptors[1], descriptors[0])
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, descriptors[0])
        os.close(kept)


def print_json(data: Any) -> None:
    """One JSON document on standard output, UTF-8 whatever the locale."""
    from seatrial.report.files import json_parts

    sys.stdout.flush()
    sys.stdout.buffer.writelines(part.encode("utf-8") for part in json_parts(data))
    sys.stdout.buffer.flush()


def print_error(error: SeatrialError) -> None:
    """A user's mistake as one clear message, or one a place."""
    from seatrial.report.terminal import print_diagnostics

    if isinstance(error, InputError):
        print_diagnostics(stderr(), error.diagnostics)
    else:
        from seatrial.report.literal import lines

        click.echo("seatrial: " + "\n".join(lines(str(error))), err=True)
