"""Fixtures: `fixtures/NAME/fixture.yaml` with its data, or a generator function NAME in `fixtures/NAME.py`.

- A name is one plain word of letters, digits and `_ . -`; it is never taken as a path.
- The files that a fixture names (`database.sqlite`, `files`, `state: file.json`) are relative to its folder and must
  lie inside the project.
- `state` is JSON data; a text names a JSON or YAML file, in a case's override too.
- `content_digest` covers the normalised fixture and every byte of the files it reads; of a Python fixture its file and
  what lies in the folder `fixtures/NAME/`, but not the modules it imports. Symbolic links are followed.
- A Python fixture is read, never run: a function that plainly is no generator function is refused here, what a
  decorator or another module makes of it shows when it is imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.encoding import digest
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ids import readable
from seatrial.core.model_json import json_of
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.databases import database_problems
from seatrial.loading.files import (
    check_inside,
    file_digest,
    is_there,
    problem_with_kind,
    read_text,
    shown_path,
    unreadable,
)
from seatrial.loading.folders import files_below, names_in
from seatrial.loading.json_text import read_json
from seatrial.loading.located import (
    Map,
    Spot,
    in_file_order,
    located,
    merged,
    plain,
    problem_at,
    shown,
    spot_at,
    without_echoes,
)
from seatrial.loading.rules_of_cases import matcher_problems
from seatrial.loading.validation import problems_in
from seatrial.loading.yaml import read_yaml

__all__ = [
    "FIXTURE_MATCHERS",
    "FixtureFiles",
    "fixture_for",
    "fixture_names",
    "load_fixture",
    "problem_with_overrides",
    "read_fixture",
    "what_was_meant",
]

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
FIXTURE_MATCHERS = (("tools", "*", "*", "when"), ("approvals", "*", "when"))
"""Where a fixture holds matchers."""
_OURS = ("name", "folder", "function", "content_digest", "surroundings_digest")
"""Fields of a fixture that are filled in here, never written by people."""


@dataclass(frozen=True)
class FixtureFiles:
    """A fixture as read, before a case's overrides."""

    name: str
    written: Map
    """Its keys with `state` resolved."""
    folder: Path
    function: str | None
    """`path:NAME` of a Python fixture, the path relative to `folder`."""
    root: Path
    """The project."""
    problems: tuple[Diagnostic, ...] = ()
    """What could not be read of it."""

    @cached_property
    def unchanged(self) -> FixtureSpec:
        """The fixture of cases that override nothing, made once. Raises InputError."""
        return _spec(self, None)


def fixture_names(project: Project) -> list[str]:
    """The names of the project's fixtures, sorted. Raises InputError when a folder cannot be looked into."""
    root = Path(project.root)
    folder = root / "fixtures"
    names = names_in(folder, root)
    modules = {name.removesuffix(".py") for name in names if name.endswith(".py") and not name.startswith("_")}
    described = {name for name in names if is_there(folder / name / "fixture.yaml", f"fixtures/{name}")}
    return sorted(described | modules)


def what_was_meant(name: str, names: Sequence[str], root: Path) -> str:
    """A hint for a name that is no fixture of the project at `root`: the nearest one, or where its file belongs."""
    for file in (f"{name}.yaml", f"{name}.yml"):
        if _NAME.fullmatch(name) and is_there(root / "fixtures" / file, "fixtures"):
            return f"a fixture is a folder: fixtures/{file} belongs into fixtures/{name}/fixture.yaml"
    return did_you_mean(name, names) or ("" if names else "there is none in fixtures/")


def load_fixture(project: Project, name: str) -> FixtureSpec:
    """The fixture called `name`. Raises InputError with every problem, with the nearest name when there is none."""
    return _spec(read_fixture(project, name), None)


def fixture_for(project: Project, case: Case, *, read: dict[str | None, FixtureFiles] | None = None) -> FixtureSpec:
    """The fixture of a case with the case's overrides: mappings merge deeply, lists replace.

    A case without a fixture has an empty one that its overrides fill. `read` keeps fixtures that many cases share from
    being read again. Raises InputError.
    """
    name = case.environment.fixture
    read = {} if read is None else read
    if name not in read:
        read[name] = _no_files(project) if name is None else read_fixture(project, name)
    overrides = case.environment.overrides()
    if not overrides:
        return read[name].unchanged
    return _spec(read[name], located(overrides, Spot(case.path, case.line)))


def _no_files(project: Project) -> FixtureFiles:
    root = Path(project.root)
    return FixtureFiles("", Map(), root, None, root)


def problem_with_overrides(overrides: dict[str, Any]) -> Iterator[ValidationError]:
    """The validation error of a case's overrides taken alone, if there is one."""
    try:
        FixtureSpec.model_validate(overrides)
    except ValidationError as error:
        yield error


# --- reading -------------------------------------------------------------------------------------------------------


def read_fixture(project: Project, name: str) -> FixtureFiles:
    """What stands in the files of a fixture. Raises InputError."""
    root = Path(project.root)
    if not _NAME.fullmatch(name):
        message = f"{readable(name)!r} cannot be a fixture: a name is letters, digits and _ . -, never a path"
        raise InputError(Diagnostic("bad-fixture-name", message))
    folder = root / "fixtures" / name
    described, module = folder / "fixture.yaml", root / "fixtures" / f"{name}.py"
    has_description = is_there(described, shown_path(folder, root))
    has_module = is_there(module, "fixtures")
    if has_description and has_module:
        message = f"the fixture {name!r} exists twice: fixtures/{name}/fixture.yaml and fixtures/{name}.py"
        raise InputError(Diagnostic("duplicate-fixture", message))
    if has_description:
        problems: list[Diagnostic] = []
        written = _read_description(described, folder, root, problems)
        return FixtureFiles(name, written, folder, None, root, tuple(problems))
    if has_module:
        _check_module(module, name, shown_path(module, root))
        return FixtureFiles(name, Map(), folder, f"../{name}.py:{name}", root)
    hint = what_was_meant(name, fixture_names(project), root)
    raise InputError(Diagnostic("unknown-fixture", f"there is no fixture {name!r}", hint=hint))


def _read_description(path: Path, folder: Path, root: Path, problems: list[Diagnostic]) -> Map:
    name = shown_path(path, root)
    written = read_yaml(read_text(path, name), name, problems)
    if written is None:
        return Map(Spot(name))
    if not isinstance(written, Map):
        problems.append(problem_at(Spot(name, 1, 1), "wrong-value", f"a fixture is a mapping, not {shown(written)}"))
        return Map(Spot(name))
    if written.get("version", 1) != 1:
        spot = written.values_at["version"]
        message = f"`version` should be 1, not {shown(written['version'], spot)}"
        problems.append(problem_at(spot, "wrong-value", message))
    return _with_state(written.without("version"), folder, root, problems)


def _check_module(path: Path, name: str, shown_name: str) -> None:
    """That a Python fixture has its function, without running it."""
    try:
        tree = ast.parse(read_text(path, shown_name))
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        message = str(getattr(error, "msg", error))
        raise InputError(Diagnostic("python-syntax", message, shown_name, line, column)) from error
    functions = {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if name in functions:
        _check_function(functions[name], shown_name)
    elif name not in assigned | imported:
        hint = did_you_mean(name, sorted(functions))
        raise InputError(
            Diagnostic("missing-key", f"there is no function {name!r} in this file", shown_name, hint=hint)
        )


def _check_function(function: ast.FunctionDef | ast.AsyncFunctionDef, shown_name: str) -> None:
    """That it is a plain generator function. A decorator, or what it returns, may make anything of it."""
    at = Spot(shown_name, function.lineno, function.col_offset + 1)
    what = f"the fixture {function.name!r} is a plain generator function"
    if function.decorator_list:
        return
    if isinstance(function, ast.AsyncFunctionDef):
        raise InputError(problem_at(at, "no-generator", f"{what}, not an async one", "write `def`, without `async`"))
    own = list(_own_nodes(function))
    gives = any(isinstance(node, ast.Return) and node.value is not None for node in own)
    if not gives and not any(isinstance(node, (ast.Yield, ast.YieldFrom)) for node in own):
        hint = "put `yield` between what sets the trial up and what cleans up after it"
        raise InputError(problem_at(at, "no-generator", f"{what}, but this one has no `yield`", hint))


def _own_nodes(function: ast.AST) -> Iterator[ast.AST]:
    """Everything in a function's body but the bodies of functions and classes in it."""
    for node in ast.iter_child_nodes(function):
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            yield from _own_nodes(node)


def _with_state(written: Map, folder: Path, root: Path, problems: list[Diagnostic]) -> Map:
    """The keys with the file that `state` names read. What is wrong is added to `problems`, and `state` left out."""
    name = written.get("state")
    if not isinstance(name, str):
        return written
    spot = written.values_at["state"]
    try:
        return written.having("state", _read_state(folder, name, root, spot, problems))
    except InputError as error:
        problems.extend(error.diagnostics)
        return written.without("state")


def _read_state(folder: Path, name: str, root: Path, spot: Spot, problems: list[Diagnostic]) -> Any:
    path = _inside(folder, name, root, spot)
    shown_name = shown_path(path, root)
    if not is_there(path, shown_name):
        raise InputError(problem_at(spot, "missing-file", f"`state`: there is no file {readable(name)!r}"))
    read = read_yaml if path.suffix.lower() in (".yaml", ".yml") else read_json
    return read(read_text(path, shown_name), shown_name, problems)


def _inside(folder: Path, name: str, root: Path, spot: Spot) -> Path:
    try:
        return check_inside(folder, name, root)
    except ValueError as error:
        raise InputError(problem_at(spot, "outside-project", str(error))) from error


# --- building ------------------------------------------------------------------------------------------------------


def _spec(files: FixtureFiles, overrides: Map | None) -> FixtureSpec:
    written, problems = files.written, list(files.problems)
    if overrides is not None:
        written = merged(written, _with_state(overrides, files.folder, files.root, problems))
    for key in _OURS:
        if key in written:
            problems.append(problem_at(written.keys_at[key], "unknown-key", f"unknown key {key!r}"))
    spec = _validated(written, problems)
    problems.extend(matcher_problems(written, FIXTURE_MATCHERS))
    if spec is not None:
        problems.extend(_file_problems(spec, written, files))
    if problems or spec is None:
        raise InputError(sorted(without_echoes(problems), key=in_file_order))
    filled = {"name": files.name, "folder": str(files.folder), "function": files.function}
    return spec.model_copy(update=filled | _digests(spec, files))


def _validated(written: Map, problems: list[Diagnostic]) -> FixtureSpec | None:
    try:
        return FixtureSpec.model_validate(plain(written))
    except ValidationError as error:
        problems.extend(problems_in(error, FixtureSpec, written))
        return None


def _file_problems(spec: FixtureSpec, written: Map, files: FixtureFiles) -> Iterator[Diagnostic]:
    """What is wrong with the folder and the database that a fixture names."""
    if spec.files is not None:
        yield from _named_problems(("files",), written, files, is_folder=True)
    if spec.database is not None:
        yield from _named_problems(("database", "sqlite"), written, files, is_folder=False)


def _named_problems(
    loc: tuple[str, ...], written: Map, files: FixtureFiles, *, is_folder: bool
) -> Iterator[Diagnostic]:
    spot, name, _ = spot_at(written, loc)
    key, what = f"`{'.'.join(loc)}`", readable(repr(name))
    try:
        path = check_inside(files.folder, name, files.root)
        kind = problem_with_kind(path)
    except ValueError as error:
        yield problem_at(spot, "outside-project", str(error))
    except FileNotFoundError:
        yield problem_at(spot, "missing-file", f"{key}: there is no {'folder' if is_folder else 'file'} {what}")
    except OSError as error:
        yield problem_at(spot, "unreadable-file", f"{key}: {what} {unreadable(error, '').message}")
    else:
        if is_folder and not path.is_dir():
            yield problem_at(spot, "missing-file", f"{key}: {what} is no folder")
        elif kind is not None and not is_folder:
            yield problem_at(spot, "no-regular-file", f"{key}: {what} {kind}")
        elif not is_folder:
            yield from database_problems(path, shown_path(path, files.root))


_LOOKED_FOR = ("outcome", "watch", "secrets")
"""Keys that give the agent nothing: what is read or searched for after it has ended."""


def _digests(spec: FixtureSpec, files: FixtureFiles) -> dict[str, str]:
    read = {shown_path(path, files.root): _digest(path, files.root) for path in _files_read(spec, files)}
    data = json_of(spec, by_alias=True, exclude_defaults=True)
    given = {key: value for key, value in data.items() if key not in _LOOKED_FOR}
    rest = {"function": files.function, "files": read}
    return {
        "content_digest": digest({"fixture": data, **rest}),
        "surroundings_digest": digest({"fixture": given, **rest}),
    }


def _digest(path: Path, root: Path) -> str:
    name = shown_path(path, root)
    try:
        return file_digest(path)[0]
    except (OSError, ValueError) as error:
        rule = "lfs-pointer" if isinstance(error, ValueError) else "unreadable-file"
        raise InputError(Diagnostic(rule, str(error), name)) from error


def _files_read(spec: FixtureSpec, files: FixtureFiles) -> list[Path]:
    """Every file a trial may read, in a stable order. A state file is part of the fixture's own data.

    Raises InputError naming every folder that cannot be looked into.
    """
    found: list[Path] = []
    folders: list[Path] = []
    if spec.database is not None:
        found.append((files.folder / spec.database.sqlite).resolve())
    if spec.files is not None:
        folders.append((files.folder / spec.files).resolve())
    if files.function is not None:
        found.append(files.folder.with_name(f"{files.name}.py"))
        folders += [files.folder] if is_there(files.folder) else []
    problems: list[Diagnostic] = []
    for folder in folders:
        found.extend(folder / name for name in files_below(folder, files.root, problems, skipped=_is_cache))
    if problems:
        raise InputError(problems)
    return sorted(set(found))


def _is_cache(name: str) -> bool:
    return name == "__pycache__"
