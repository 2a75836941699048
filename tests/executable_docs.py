"""Documentation that runs: every fenced block of a page is written, executed or checked, or says why not.

A page starts in an empty folder of its own, and its blocks happen in order. What a block is for is told by its
language and by HTML comments right above it, which a rendered page does not show:

- a `console` block runs its `$ command` lines; the lines below a command must occur in its output, in that order.
  `...` stands for any text within a line, alone on a line for any lines. `<!-- exit: 1 -->` is the exit code of the
  last command, `<!-- exit: 0, 1 -->` those of all; unsaid, every command exits 0
- a `python` block runs as a program
- `<!-- output -->` marks what the block before printed
- `<!-- file: NAME -->` writes the block to a file; one that Seatrial reads must be used by a later block
- `<!-- check: KIND -->` has the loader check a fragment: case, fixture, project, permissions, policy, exceptions, or
  expected (the value of that key of a case)
- `<!-- project: FOLDER -->` goes on in a copy of a folder of this repository, `<!-- project: new -->` in an empty one
- `<!-- not run: REASON -->` leaves a block out; tests list these

Any other block is an error, so nothing is passed over in silence.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from seatrial.errors import Diagnostic
from seatrial.graders import graders_for
from seatrial.loading.cases import load_cases
from seatrial.loading.check import check
from seatrial.loading.config import load_project

__all__ = ["REPOSITORY", "Block", "PageError", "blocks_of", "pages", "run_page"]

REPOSITORY = Path(__file__).resolve().parent.parent
ACTIONS = ("file", "check", "not run", "output", "project", "exit")
_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")
_COMMENT = re.compile(r"^ *<!-- *(?P<name>[a-z ]+?)(?: *: *(?P<value>.*?))? *-->$")
_READ = re.compile(r"(cases|fixtures|policies)/|seatrial\.yaml$|.*\.py$")
"""Files that Seatrial reads, so that a page that writes one has to use it."""
_PLACES = {
    "case": "cases/example/block.yaml",
    "fixture": "fixtures/block/fixture.yaml",
    "project": "seatrial.yaml",
    "permissions": "policies/tool_permissions.yaml",
    "policy": "policies/release_policy.yaml",
    "exceptions": "policies/exceptions.yaml",
}
"""Where a fragment of each kind stands in a project."""


class PageError(AssertionError):
    """A block does not do what its page says."""


@dataclass(frozen=True)
class Block:
    """One fenced block with the comments right above it."""

    page: str
    line: int
    """Of its opening fence, from 1."""
    language: str
    text: str
    marks: dict[str, str] = field(default_factory=dict)

    @property
    def action(self) -> str:
        """What is done with it: run, python, file, check, output or not run. PageError when nothing says."""
        named = [name for name in ("file", "check", "not run", "output") if name in self.marks]
        if len(named) > 1:
            raise self.error(f"marked both {named[0]!r} and {named[1]!r}")
        if named:
            return named[0]
        if self.language in ("console", "python"):
            return "run" if self.language == "console" else "python"
        raise self.error(f"a {self.language or 'bare'} block needs a mark: file, check, output or not run")

    def error(self, message: str) -> PageError:
        return PageError(f"{self.page}:{self.line}: {message}")


def pages() -> tuple[Path, ...]:
    """README and every page of the documentation, decision notes apart."""
    found = sorted((REPOSITORY / "docs").rglob("*.md"))
    return (REPOSITORY / "README.md", *(page for page in found if "decisions" not in page.parts))


def blocks_of(text: str, page: str = "page") -> Iterator[Block]:
    """The fenced blocks of a page, in order. PageError for a fence that is not closed or an unknown mark."""
    lines, marks, at = text.splitlines(), dict[str, str](), 0
    while at < len(lines):
        fence, comment = _FENCE.match(lines[at]), _COMMENT.match(lines[at])
        if fence:
            end = _closing(lines, at, fence["fence"], page)
            body = textwrap.dedent("\n".join(lines[at + 1 : end]) + "\n")
            yield Block(page, at + 1, (fence["info"].split() or [""])[0], body, marks)
            marks, at = {}, end
        elif comment:
            if comment["name"] not in ACTIONS:
                raise PageError(f"{page}:{at + 1}: unknown mark {comment['name']!r}")
            marks = {**marks, comment["name"]: comment["value"] or ""}
        elif lines[at].strip():
            _check_used(marks, page, at)
        at += 1


def _closing(lines: Sequence[str], start: int, fence: str, page: str) -> int:
    for at in range(start + 1, len(lines)):
        if lines[at].strip() == fence:
            return at
    raise PageError(f"{page}:{start + 1}: this block is not closed")


def _check_used(marks: dict[str, str], page: str, at: int) -> None:
    if marks:
        raise PageError(f"{page}:{at + 1}: the mark {next(iter(marks))!r} above belongs to no block")


# --- running --------------------------------------------------------------------------------------------------------


@dataclass
class _Course:
    """A page being run."""

    scratch: Path
    folder: Path
    """The page's own project."""
    printed: str = ""
    """What the last command or program printed."""
    idle: dict[str, Block] = field(default_factory=dict)
    """Files of a project that were written and that nothing has read since."""

    def check_used(self) -> None:
        """What a page only shows is not known to be true."""
        for name, block in self.idle.items():
            raise block.error(f"{name} is written, and no command, program or check comes after it")

    def move(self, project: str, block: Block) -> None:
        """Go on in a folder of its own: empty, or a copy."""
        self.check_used()
        self.folder = Path(tempfile.mkdtemp(dir=self.scratch)) / "project"
        if project == "new":
            self.folder.mkdir()
            return
        source = REPOSITORY / project
        if not source.is_dir():
            raise block.error(f"there is no folder {project}")
        shutil.copytree(
            source, self.folder, ignore=shutil.ignore_patterns("runs", ".seatrial", "__pycache__", "eval_results*")
        )

    def do(self, block: Block) -> None:
        if "project" in block.marks:
            self.move(block.marks["project"], block)
        if block.action in ("check", "python", "run"):
            self.idle.clear()
        match block.action:
            case "file":
                _write(self.folder / block.marks["file"], block.text)
                if _READ.match(block.marks["file"]):
                    self.idle[block.marks["file"]] = block
            case "check":
                self._check(block)
            case "output":
                _compare(block, block.text.splitlines(), self.printed)
            case "python":
                self._python(block)
            case "run":
                self._run(block)

    def _check(self, block: Block) -> None:
        problems = _problems(self.folder, block)
        if problems:
            raise block.error("\n".join(map(str, problems)))

    def _python(self, block: Block) -> None:
        program = Path(tempfile.mkdtemp(dir=self.scratch), "block.py")
        program.write_text(block.text, encoding="utf-8")
        path = os.pathsep.join(filter(None, (str(self.folder), os.environ.get("PYTHONPATH"))))
        self.printed = self._command(f"{sys.executable} -W error {program}", 0, block, {"PYTHONPATH": path})

    def _run(self, block: Block) -> None:
        commands = list(_commands(block))
        for (command, shown), code in zip(commands, _exit_codes(block, len(commands)), strict=True):
            self.printed = self._command(command, code, block, {})
            _compare(block, shown, self.printed, command)

    def _command(self, command: str, code: int, block: Block, more: dict[str, str]) -> str:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=_environment() | more,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            check=False,
            timeout=180,
        )
        if done.returncode != code:
            raise block.error(f"`{command}` exits {done.returncode}, not {code}:\n{done.stdout}")
        return done.stdout


def run_page(text: str, page: str, scratch: Path) -> None:
    """Do everything a page says, in folders below `scratch`. PageError at the first block that is not true."""
    course = _Course(scratch, scratch)
    course.move("new", Block(page, 1, "", ""))
    for block in blocks_of(text, page):
        course.do(block)
    course.check_used()


def _environment() -> dict[str, str]:
    """A reader's shell: the installed command first, nothing that colours or redirects."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SEATRIAL", "GITHUB", "CI"))}
    path = os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")])
    return {**kept, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONUTF8": "1"}


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _commands(block: Block) -> Iterator[tuple[str, list[str]]]:
    """Each command with the output lines shown below it."""
    command, shown = "", list[str]()
    for line in block.text.splitlines():
        if line.startswith("$ "):
            if command:
                yield command, shown
            command, shown = line[2:], []
        elif command.endswith("\\") and not shown:
            command += f"\n{line}"
        elif command:
            shown.append(line)
        else:
            raise block.error("a console block begins with `$ command`")
    if command:
        yield command, shown


def _exit_codes(block: Block, count: int) -> list[int]:
    codes = [int(code) for code in block.marks.get("exit", "0").split(",")]
    if len(codes) not in (1, count):
        raise block.error(f"{len(codes)} exit codes for {count} commands")
    return codes if len(codes) == count else [0] * (count - 1) + codes


def _compare(block: Block, shown: Sequence[str], printed: str, command: str = "the block before") -> None:
    """That the lines shown occur in what was printed, in their order."""
    real = [line.rstrip() for line in printed.splitlines()]
    at, anywhere = 0, True
    for line in shown:
        if line.strip() in ("...", ""):
            anywhere = True
            continue
        found = next((n for n in range(at, len(real)) if _is_like(line, real[n])), None)
        if found is None or not (anywhere or found == at):
            raise block.error(f"{command!r} does not print this line there:\n  {line}\nIt prints:\n{printed}")
        at, anywhere = found + 1, False


def _is_like(shown: str, real: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in shown.rstrip().split("..."))
    return re.fullmatch(pattern, real) is not None


def _problems(folder: Path, block: Block) -> Sequence[Diagnostic | str]:
    """What the loader says of a fragment, beside the fixtures and settings that the page has written so far."""
    kind, text = block.marks["check"], block.text
    if kind == "expected":
        kind, text = "case", "id: block\ninput: {user_id: u, message: hello}\nexpected:\n" + textwrap.indent(text, "  ")
    if kind not in _PLACES:
        raise block.error(f"there is no kind {kind!r} to check; known: {', '.join((*_PLACES, 'expected'))}")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        project = Path(scratch, "project")
        alone = ("runs", "cases") if kind == "case" else ("runs",)
        shutil.copytree(folder, project, ignore=shutil.ignore_patterns(*alone))
        (project / "cases").mkdir(exist_ok=True)
        if not (project / "seatrial.yaml").exists():
            _write(project / "seatrial.yaml", "version: 1\n")
        _write(project / _PLACES[kind], text)
        found = [problem for problem in check(project) if kind == "case" or problem.severity == "error"]
        return found or _grader_problems(project)


def _grader_problems(project: Path) -> list[str]:
    """Graders that the cases ask for must exist; this imports own graders from the page's project."""
    loaded = set(sys.modules)
    sys.path.insert(0, str(project))
    try:
        for case in load_cases(load_project(folder=project)).cases:
            if not case.judges:
                graders_for(case)
    except Exception as error:  # whatever it is, the page is wrong
        return [f"{type(error).__name__}: {error}"]
    finally:
        sys.path.remove(str(project))
        for name in set(sys.modules) - loaded:  # another page, or test, may have a module of that name
            if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(project)):
                del sys.modules[name]
    return []
