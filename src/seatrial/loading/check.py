"""Everything wrong in a project's files, in one list: settings, cases, fixtures, policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.cases import LoadedCases, load_cases
from seatrial.loading.config import load_project
from seatrial.loading.fixtures import FixtureFiles, fixture_for, fixture_names, load_fixture
from seatrial.loading.located import in_file_order
from seatrial.loading.policies import POLICY, load_exceptions, load_policy, load_rules

__all__ = ["check"]


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
    cases: LoadedCases | None = None
    try:
        cases = load_cases(project)
    except InputError as error:
        found.extend(error.diagnostics)
    for part in (_cases(project, cases), _fixtures(project), _policies(project, cases)):
        found.extend(part)
    return tuple(sorted(dict.fromkeys(found), key=in_file_order))


def _problems(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    try:
        read()
    except InputError as error:
        return error.diagnostics
    return ()


def _cases(project: Project, loaded: LoadedCases | None) -> Iterator[Diagnostic]:
    if loaded is None:
        return
    yield from loaded.warnings
    read: dict[str, FixtureFiles] = {}
    for case in loaded.cases:
        if case.environment.overrides():
            yield from _problems(lambda case=case: fixture_for(project, case, read=read))  # type: ignore[misc]


def _fixtures(project: Project) -> Iterator[Diagnostic]:
    for name in fixture_names(project):
        yield from _problems(lambda name=name: load_fixture(project, name))  # type: ignore[misc]


def _policies(project: Project, loaded: LoadedCases | None) -> Iterator[Diagnostic]:
    """Where the cases cannot be read, their suites are unknown and any group of a policy may be one."""
    suites = None if loaded is None else {*project.suites, *(case.suite for case in loaded.cases)}
    yield from _problems(lambda: load_rules(project))
    yield from _problems(lambda: load_exceptions(project))
    if (Path(project.root) / POLICY).is_file():
        yield from _problems(lambda: load_policy(project, suites=suites))
