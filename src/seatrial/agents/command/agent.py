"""The adapter for programs in any language.

In a trial:
- The program is started once, in the trial's working folder, with this process's environment; it gets `hello`, then
  `turn` for each turn, and says what it does until `answer`. When its input ends, it ends.
- Lines that do not begin with `{` are prints and go to the trial's log, as standard error does; any other line is a
  message, and one that cannot be read ends the trial with its number.
- What it says after an answer counts like anything else; a second answer to one turn is its error.
- An end before the answer, and an exit code that is not 0, are the agent's error, with the tail of its standard error.
- Whatever happens, its process group is ended with the trial.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.agents.command.process import CommandError, Program
from seatrial.agents.command.sandbox import enforced, inside, without_secrets
from seatrial.agents.command.words import scripts_of
from seatrial.agents.messages import MessageError, checked, hello, read_json, turn_message
from seatrial.agents.remote import RemoteEvents
from seatrial.core.encoding import dumps
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError, nearest

__all__ = ["CommandAgent", "CommandSession"]

_PYTHON = ("python", "python3")
"""The interpreter that runs Seatrial, so that its environment need not be activated; a path names another."""
_SHOWN = 200
"""Characters of a broken line that its message shows."""


class CommandAgent:
    """A program under test."""

    kind = "command"
    blocking = False
    observes = frozenset({Observable.OUTPUT})

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """`target` is the folder in which files that the command names lie; None: the working folder.

        UsageError when there is no such program, a setting does not fit, or the sandbox asked for does not work.
        """
        spec = spec or AgentSpec()
        self._folder = Path(target or ".").absolute()
        if not spec.command:
            raise UsageError("an agent of kind command needs `command: [PROGRAM, ARGUMENT, ...]`")
        if spec.input is not None or spec.output is not None:
            raise UsageError(
                "agent input and output: a command gets the case's input as it is, and answers with `output`"
            )
        self._command = [self._found(word) for word in spec.command]
        if spec.command[0] in _PYTHON:
            self._command[0] = sys.executable or spec.command[0]
        if shutil.which(self._command[0]) is None:
            raise UsageError(
                f"agent command: there is no program {spec.command[0]!r} (looked for in PATH and the project)"
            )
        self._check_scripts(spec.command)
        self.sandbox: Mapping[str, Any] = enforced() if spec.sandbox == "bubblewrap" else {}

    def _found(self, word: str) -> str:
        """A word that is the path of a file in the project, absolute: the program starts in another folder."""
        path = self._folder / word
        return str(path) if word and not word.startswith("-") and _is(path.is_file) else word

    def _check_scripts(self, command: Sequence[str]) -> None:
        for word in scripts_of(command):
            path = self._folder / word
            if not _is(path.exists):
                raise UsageError(f"agent command: {word!r} is not in the project ({self._folder}){_meant(path, word)}")

    def open(self, trial: TrialEnvironment) -> CommandSession:
        """The program in one trial; it starts with the first turn."""
        trial.recorder.observe(*self.observes)
        return CommandSession(self, trial)

    async def start(self, trial: TrialEnvironment) -> Program:
        """Start the program for one trial. CommandError when that cannot be done."""
        folder, command, environment = trial.workdir, self._command, dict(os.environ)
        if self.sandbox:
            program = shutil.which(command[0]) or command[0]
            readable = [str(self._folder), sys.prefix, str(Path(program).parent)]
            command = inside(command, folder=folder, writable=folder.parent, readable=_below_tmp(readable))
            environment = without_secrets(environment)
        return await Program.start(command, folder=folder, environment=environment)


def _below_tmp(paths: Sequence[str]) -> list[str]:
    """Those that a private /tmp would hide."""
    return [path for path in paths if Path(path).is_relative_to("/tmp")]  # noqa: S108  bubblewrap's own


class CommandSession:
    """One program in one trial."""

    blocking = False

    def __init__(self, agent: CommandAgent, trial: TrialEnvironment) -> None:
        self._agent = agent
        self._trial = trial
        self._program: Program | None = None
        self._answered = False
        self._turn = 0
        """Number of the last turn it was given."""
        self._events = RemoteEvents(trial, self._send)

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        self._answered = False
        if self._program is not None:
            await self._hear_between(self._program)
        self._turn = turn.number
        if self._program is None:
            self._program = await self._agent.start(self._trial)
            self._send(hello(self._trial))
        self._send(turn_message(turn))
        answer = await self._answer(self._program)
        self._answered = True
        return answer

    def _send(self, message: dict[str, Any]) -> None:
        if self._program is not None:
            self._program.write(dumps(message))

    async def _hear_between(self, program: Program) -> None:
        """What it has said since its last answer belongs to that answer's turn."""
        recorder = self._trial.recorder
        recorder.turn, now = self._turn, recorder.turn
        try:
            while (line := await program.read_said()) is not None:
                self._hear_late(line)
        finally:
            recorder.turn = now

    def _hear_late(self, line: bytes) -> None:
        """A line after the answer: whatever it tells counts, and a turn has one answer."""
        if self._program is not None and self._heard(self._program, line) is not None:
            raise _of_line(self._program, line, f"a second answer to turn {self._turn}")

    async def _answer(self, program: Program) -> Answer:
        while (line := await program.read()) is not None:
            answer = self._heard(program, line)
            if answer is not None:
                return answer
        raise CommandError(f"the command {await program.ending()}")

    def _heard(self, program: Program, line: bytes) -> Answer | None:
        """The answer that a line holds; None of any other. CommandError naming a line that is broken."""
        if not line.lstrip().startswith(b"{"):
            sys.stdout.write(f"{_text(line)}\n")
            return None
        try:
            return self._taken(line)
        except MessageError as error:
            raise _of_line(program, line, str(error)) from error

    def _taken(self, line: bytes) -> Answer | None:
        """The answer that a line holds; None of any other message."""
        try:
            read = read_json(line)
        except ValueError as error:
            raise MessageError(f"no JSON ({error})") from error
        message = checked(read)
        if message["type"] == "answer":
            return self._events.answer(message)
        if message["type"] == "error":
            kind, said = message.get("kind") or "error", message.get("message")
            trace = message.get("traceback")
            raise CommandError(f"{kind}: {said}" + (f"\n{trace}" if trace else ""))
        self._events.take(message)
        return None

    async def close(self) -> None:
        """End the program, and hear what it says after its last answer.

        CommandError for a broken line, a second answer, and an end by itself with another code than 0.
        """
        program = self._program
        try:
            if program is not None and self._answered:
                await program.dismiss(self._hear_late)
            elif program is not None:
                await program.kill()
        finally:
            self._program = None
            self._events.close()


def _is(asked: Callable[[], bool]) -> bool:
    try:
        return asked()
    except (OSError, ValueError):  # too long for a path, or a program's own text
        return False


def _meant(path: Path, word: str) -> str:
    try:
        close = nearest(path.name, [there.name for there in path.parent.iterdir()])
    except OSError:
        return ""
    return f"; did you mean {str(Path(word).with_name(close))!r}?" if close else ""


def _of_line(program: Program, line: bytes, fault: str) -> CommandError:
    shown = _text(line[: 4 * _SHOWN])
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}..."
    return CommandError(f"line {program.lines} of its standard output: {fault}: {shown}")


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace")
