"""Fixtures: `fixtures/NAME/fixture.yaml` with its data, or a generator function NAME in `fixtures/NAME.py`.

- A name is one plain word of letters, digits and `_ . -`; it is never taken as a path.
- The files that a fixture names (`database.sqlite`, `files`, `state: file.json`) are relative to its folder and must
  lie inside the project.
- `state` is JSON data; a text names a JSON or YAML file, in a case's override too.
- `content_digest` covers the normalised fixture and every byte of the files it reads; of a Python fixture its file and
  what lies in the folder `fixtures/NAME/`, but not the modules it imports.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.encoding import digest
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ids import readable
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.files import check_inside, file_digest, read_text, shown_path
from seatrial.loading.json_text import read_json
from seatrial.loading.located import Map, Spot, located, merged, problem_at, shown, spot_at
from seatrial.loading.rules_of_cases import matcher_problems
from seatrial.loading.validation import validated
from seatrial.loading.yaml import read_yaml

__all__ = [
    "FIXTURE_MATCHERS",
    "FixtureFiles",
    "fixture_for",
    "fixture_names",
    "load_fixture",
    "problem_with_overrides",
    "read_fixture",
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


def fixture_names(project: Project) -> list[str]:
    """The names of the project's fixtures, sorted."""
    folder = Path(project.root) / "fixtures"
    if not folder.is_dir():
        return []
    folders = [path.parent.name for path in folder.glob("*/fixture.yaml")]
    modules = [path.stem for path in folder.glob("*.py") if not path.name.startswith("_")]
    return sorted({*folders, *modules})


def load_fixture(project: Project, name: str) -> FixtureSpec:
    """The fixture called `name`. Raises InputError with every problem, with the nearest name when there is none."""
    return _spec(read_fixture(project, name), None)


def fixture_for(project: Project, case: Case, *, read: dict[str, FixtureFiles] | None = None) -> FixtureSpec:
    """The fixture of a case with the case's overrides: mappings merge deeply, lists replace.

    A case without a fixture has an empty one that its overrides fill. `read` keeps fixtures that many cases share from
    being read again. Raises InputError.
    """
    name = case.environment.fixture
    read = {} if read is None else read
    if name is None:
        root = Path(project.root)
        files = FixtureFiles("", Map(), root, None, root)
    else:
        if name not in read:
            read[name] = read_fixture(project, name)
        files = read[name]
    overrides = case.environment.overrides()
    at = Spot(case.path, case.line)
    return _spec(files, located(overrides, at) if overrides else None)


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
    if described.is_file() and module.is_file():
        message = f"the fixture {name!r} exists twice: fixtures/{name}/fixture.yaml and fixtures/{name}.py"
        raise InputError(Diagnostic("duplicate-fixture", message))
    if described.is_file():
        return FixtureFiles(name, _read_description(described, folder, root), folder, None, root)
    if module.is_file():
        _check_module(module, name, shown_path(module, root))
        return FixtureFiles(name, Map(), folder, f"../{name}.py:{name}", root)
    hint = did_you_mean(name, fixture_names(project))
    raise InputError(Diagnostic("unknown-fixture", f"there is no fixture {name!r}", hint=hint))


def _read_description(path: Path, folder: Path, root: Path) -> Map:
    name = shown_path(path, root)
    written = read_yaml(read_text(path, name), name)
    if written is None:
        return Map(Spot(name))
    if not isinstance(written, Map):
        raise InputError(problem_at(Spot(name, 1, 1), "wrong-value", f"a fixture is a mapping, not {shown(written)}"))
    if written.get("version", 1) != 1:
        spot = written.values_at["version"]
        raise InputError(
            problem_at(spot, "wrong-value", f"`version` should be 1, not {shown(written['version'], spot)}")
        )
    return _with_state(written.without("version"), folder, root)


def _check_module(path: Path, name: str, shown_name: str) -> None:
    """That a Python fixture has its function, without running it."""
    try:
        tree = ast.parse(read_text(path, shown_name))
    except (SyntaxError, ValueError) as error:
        line, column = getattr(error, "lineno", None), getattr(error, "offset", None)
        message = str(getattr(error, "msg", error))
        raise InputError(Diagnostic("python-syntax", message, shown_name, line, column)) from error
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}
    assigned = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    imported = {
        alias.asname or alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    if name not in names | assigned | imported:
        hint = did_you_mean(name, sorted(names))
        raise InputError(
            Diagnostic("missing-key", f"there is no function {name!r} in this file", shown_name, hint=hint)
        )


def _with_state(written: Map, folder: Path, root: Path) -> Map:
    """The keys with the file that `state` names read."""
    name = written.get("state")
    if not isinstance(name, str):
        return written
    spot = written.values_at["state"]
    path = _inside(folder, name, root, spot)
    if not path.is_file():
        raise InputError(problem_at(spot, "missing-file", f"`state`: there is no file {readable(name)!r}"))
    shown_name = shown_path(path, root)
    read = read_yaml if path.suffix.lower() in (".yaml", ".yml") else read_json
    return written.having("state", read(read_text(path, shown_name), shown_name))


def _inside(folder: Path, name: str, root: Path, spot: Spot) -> Path:
    try:
        return check_inside(folder, name, root)
    except ValueError as error:
        raise InputError(problem_at(spot, "outside-project", str(error))) from error


# --- building ------------------------------------------------------------------------------------------------------


def _spec(files: FixtureFiles, overrides: Map | None) -> FixtureSpec:
    written = files.written
    if overrides is not None:
        written = merged(written, _with_state(overrides, files.folder, files.root))
    unknown = [
        problem_at(written.keys_at[key], "unknown-key", f"unknown key {key!r}") for key in _OURS if key in written
    ]
    if unknown:
        raise InputError(unknown)
    spec = validated(FixtureSpec, written)
    problems = [*matcher_problems(written, FIXTURE_MATCHERS), *_file_problems(spec, written, files)]
    if problems:
        raise InputError(problems)
    filled = {"name": files.name, "folder": str(files.folder), "function": files.function}
    return spec.model_copy(update=filled | _digests(spec, files))


def _file_problems(spec: FixtureSpec, written: Map, files: FixtureFiles) -> Iterator[Diagnostic]:
    named = [("files",)] if spec.files is not None else []
    locs: list[tuple[str, ...]] = [*named, *([("database", "sqlite")] if spec.database is not None else [])]
    for loc in locs:
        spot, name, _ = spot_at(written, loc)
        try:
            path = check_inside(files.folder, name, files.root)
        except ValueError as error:
            yield problem_at(spot, "outside-project", str(error))
            continue
        kind, exists = ("folder", path.is_dir()) if loc == ("files",) else ("file", path.is_file())
        if not exists:
            yield problem_at(spot, "missing-file", f"`{'.'.join(loc)}`: there is no {kind} {readable(name)!r}")


_LOOKED_FOR = ("outcome", "watch", "secrets")
"""Keys that give the agent nothing: what is read or searched for after it has ended."""


def _digests(spec: FixtureSpec, files: FixtureFiles) -> dict[str, str]:
    read = {shown_path(path, files.root): _digest(path, files.root) for path in _files_read(spec, files)}
    data = spec.model_dump(mode="json", by_alias=True, exclude_defaults=True)
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
    """Every file a trial may read, in a stable order. A state file is part of the fixture's own data."""
    found: list[Path] = []
    if spec.database is not None:
        found.append((files.folder / spec.database.sqlite).resolve())
    if spec.files is not None:
        found.extend((files.folder / spec.files).resolve().rglob("*"))
    if files.function is not None:
        found.append(files.folder.with_name(f"{files.name}.py"))
        found.extend(files.folder.rglob("*"))
    return sorted({path for path in found if path.is_file() and "__pycache__" not in path.parts})
