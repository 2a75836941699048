"""How to go on with a run that was cut off: the very command, to be copied."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import click
from click.core import ParameterSource

from seatrial.harness.runs import Run

__all__ = ["hint", "resume_command"]

_AS_THE_RUN_HAD_IT = frozenset(
    {"select", "suite", "tag", "risk", "keyword", "failed_from", "output", "resume", "seed", "list_only"}
)
"""Parameters that a resumed run takes from its folder, or that are said anew."""


def resume_command(folder: str) -> str:
    """The command of this process, as it goes on with the run in `folder`. Needs a click context."""
    context = click.get_current_context()
    given = [word for parameter in context.command.params for word in _words(context, parameter)]
    return shlex.join(["seatrial", str(context.info_name), *given, "--output", folder, "--resume"])


def _words(context: click.Context, parameter: click.Parameter) -> Iterator[str]:
    """The parameter as it was typed."""
    name = str(parameter.name)
    source = context.get_parameter_source(name)
    if source is not ParameterSource.COMMANDLINE or name in _AS_THE_RUN_HAD_IT:
        return
    value, option = context.params[name], max(parameter.opts, key=len)
    if isinstance(parameter, click.Option) and (parameter.is_flag or parameter.count):
        yield from [option] * int(value)
        return
    for item in value if parameter.multiple or parameter.nargs != 1 else [value]:
        yield from (option, str(item)) if isinstance(parameter, click.Option) else (str(item),)


def hint(run: Run, folder: str) -> str:
    """What is kept of a run that did not finish, and how to go on."""
    kept = run.trials.trials
    return (
        f"{kept} of {run.info.trials_planned} trials are on record and will not run again; to go on:\n"
        f"  {resume_command(folder)}"
    )
