"""Everything wrong in a project's files, in one list: settings, cases, fixtures, policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.cases import load_cases
from seatrial.loading.config import load_project
from seatrial.loading.files import read_text
from seatrial.loading.fixtures import FixtureFiles, fixture_for, fixture_names, load_fixture
from seatrial.loading.located import in_file_order
from seatrial.loading.policies import load_rules
from seatrial.loading.yaml import read_yaml

__all__ = ["check"]

_POLICIES = ("release_policy", "exceptions")


def check(folder: Path) -> tuple[Diagnostic, ...]:
    """Every error and warning in the files of a project, by file and line; empty when all is well.

    Nothing of the project's own code is imported. Raises UsageError when the folder is no project.
    """
    found: list[Diagnostic] = []
    project = Project(root=str(folder.resolve()))
    try:
        project = load_project(folder=folder)
    except InputError as error:
        found.extend(error.diagnostics)
    for part in (_cases, _fixtures, _policies):
        found.extend(part(project))
    return tuple(sorted(dict.fromkeys(found), key=in_file_order))


def _problems(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    try:
        read()
    except InputError as error:
        return error.diagnostics
    return ()


def _cases(project: Project) -> Iterator[Diagnostic]:
    try:
        loaded = load_cases(project)
    except InputError as error:
        yield from error.diagnostics
        return
    yield from loaded.warnings
    read: dict[str, FixtureFiles] = {}
    for case in loaded.cases:
        if case.environment.overrides():
            yield from _problems(lambda case=case: fixture_for(project, case, read=read))  # type: ignore[misc]


def _fixtures(project: Project) -> Iterator[Diagnostic]:
    for name in fixture_names(project):
        yield from _problems(lambda name=name: load_fixture(project, name))  # type: ignore[misc]


def _policies(project: Project) -> Iterator[Diagnostic]:
    yield from _problems(lambda: load_rules(project))
    for name in _POLICIES:
        shown = f"policies/{name}.yaml"
        path = Path(project.root) / shown
        if path.is_file():
            yield from _problems(lambda path=path, shown=shown: read_yaml(read_text(path, shown), shown))  # type: ignore[misc]
