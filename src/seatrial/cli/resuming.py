"""How to go on with a run that was cut off or ran out of budget: the very command, to be copied."""

from __future__ import annotations

from collections.abc import Mapping

import click
from click.core import ParameterSource

from seatrial.harness.going_on import resume_command
from seatrial.harness.runs import Run

__all__ = ["command_to_go_on", "hint"]


def command_to_go_on(folder: str, budget: Mapping[str, float] | None = None) -> str:
    """The command of this process, as it goes on with the run in `folder`; with this budget in place of its own.

    Needs a click context.
    """
    context = click.get_current_context()
    names = [str(parameter.name) for parameter in context.command.params]
    typed = [name for name in names if context.get_parameter_source(name) is ParameterSource.COMMANDLINE]
    return resume_command(folder, {name: context.params[name] for name in typed}, budget)


def hint(run: Run, folder: str) -> str:
    """What is kept of a run that did not finish, and how to go on."""
    kept = run.trials.trials
    return (
        f"{kept} of {run.info.trials_planned} trials are on record and will not run again; to go on:\n"
        f"  {command_to_go_on(folder)}"
    )
