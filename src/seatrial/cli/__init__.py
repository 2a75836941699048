"""The `seatrial` command: parse, call, exit code.

Command modules are imported only when their command runs; their one-line help stands here, so that `--help` loads
nothing but click.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from seatrial import __version__
from seatrial.errors import ExitCode, InputError, SeatrialError

__all__ = ["COMMANDS", "cli", "main"]

REPORT_TO = "please report it with the text above to the Seatrial project's issue tracker"

COMMANDS = {
    "approve": ("seatrial.cli.release:approve_run", "Approve the build of a run as the baseline."),
    "baseline": ("seatrial.cli.release:baseline", "Show the approved baseline, or what would change."),
    "check": ("seatrial.cli.project:check", "Check every file of a project and report all errors at once."),
    "compare": ("seatrial.cli.results:compare", "Compare two runs, baselines or harness files case by case."),
    "config": ("seatrial.cli.project:config", "Print every setting with its origin."),
    "export": ("seatrial.cli.export:export", "Write a stored run in another program's format (OpenTelemetry)."),
    "gate": ("seatrial.cli.release:gate_runs", "Decide a release by the policy: pass, block, review or incomplete."),
    "isolate": ("seatrial.cli.proving:isolate", "Find cases that depend on order or company, and what they share."),
    "list": ("seatrial.cli.results:list_runs", "List the runs of a project, newest first."),
    "metrics": ("seatrial.cli.release:metrics", "List every metric that a policy can name."),
    "regrade": ("seatrial.cli.again:regrade", "Grade a stored run again under the present cases; calls no agent."),
    "rerun": ("seatrial.cli.again:rerun", "Run one stored trial again and show where the two part."),
    "report": ("seatrial.cli.report:report", "Write JUnit, Markdown or annotations of stored runs."),
    "run": ("seatrial.cli.run:run", "Run the agent on the selected cases and grade every trial."),
    "schema": ("seatrial.cli.project:schema", "Print the JSON Schema of a file format."),
    "show": ("seatrial.cli.results:show", "Print one trial: its trace, grades and outcome."),
}
"""Name -> (import path, one line of help)."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        from seatrial.registry import load_object

        command = load_object(COMMANDS[cmd_name][0])
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            from seatrial.errors import did_you_mean

            hint = did_you_mean(args[0], list(COMMANDS))
            raise click.UsageError(f"there is no command {args[0]!r}" + (f"; {hint}" if hint else ""), ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in sorted(COMMANDS.items())])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="seatrial")
def cli() -> None:
    """Sea trials for AI agents: run the agent on your cases, observe, grade, and decide a release.

    Exit codes: 0 pass, 1 failed, 2 usage or input wrong, 3 review, 4 incomplete, 5 nothing selected,
    70 internal error, 130 interrupted.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; always leaves with the documented exit code."""
    _outlive_readers()
    _leave(_exit_code(list(sys.argv[1:] if arguments is None else arguments)))


def _exit_code(given: list[str]) -> int:
    try:
        cli.main(args=given, prog_name="seatrial", standalone_mode=False)
    except SystemExit as leaving:  # a command that ended with its own code
        return int(leaving.code or 0)
    except click.exceptions.Exit as leaving:
        return leaving.exit_code
    except click.ClickException as error:
        return _click_error(error, given)
    except SeatrialError as error:
        return _error(error, given)
    except (KeyboardInterrupt, click.Abort):
        click.echo("interrupted", err=True)
        return ExitCode.INTERRUPTED
    except Exception:  # noqa: BLE001  the process top: whatever is left is our own fault
        _internal_error()
        return ExitCode.INTERNAL
    return ExitCode.PASS


def _leave(code: int) -> NoReturn:
    """End the process, also when threads of an agent that never returns would keep it alive."""
    import threading
    from concurrent.futures import thread as pools

    pooled = set(getattr(pools, "_threads_queues", ()))  # waited for at exit though they may be daemons
    others = (thread for thread in threading.enumerate() if thread is not threading.main_thread())
    if any(not thread.daemon or thread in pooled for thread in others):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _click_error(error: click.ClickException, given: Sequence[str]) -> int:
    if "--json" in given:
        _print_json_error(error.format_message(), [])
    else:
        error.show()
    return int(ExitCode.USAGE)


def _error(error: SeatrialError, given: Sequence[str]) -> int:
    from seatrial.cli.output import print_error

    if "--json" in given:
        _print_json_error(str(error), error.diagnostics if isinstance(error, InputError) else [])
    else:
        print_error(error)
    return int(error.exit_code)


def _print_json_error(message: str, diagnostics: Sequence[object]) -> None:
    import dataclasses

    from seatrial.core.encoding import dumps, to_json

    found = [dataclasses.asdict(item) for item in diagnostics if dataclasses.is_dataclass(item)]  # type: ignore[arg-type]
    click.echo(dumps(to_json({"error": message, "diagnostics": found}), indent=2))


def _internal_error() -> None:
    import traceback

    click.echo(traceback.format_exc(), err=True)
    click.echo(f"seatrial {__version__}: internal error; {REPORT_TO}", err=True)


class _Unread(io.FileIO):
    """A pipe on which writing goes on although nobody reads any more."""

    def write(self, data: Any) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _outlive_readers() -> None:
    """From now on a reader that goes away (`| head`) ends nothing: a command does what it does, and its exit code
    says what it always says."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not stream.isatty():
            stream.flush()
            raw = _Unread(stream.fileno(), "w", closefd=False)
            kept = {key: getattr(stream, key) for key in ("encoding", "errors", "line_buffering", "write_through")}
            setattr(sys, name, io.TextIOWrapper(io.BufferedWriter(raw), **kept))
