"""Everything wrong in a project's files, in one list: settings, cases, fixtures, policies."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.core.case import Case
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.cases import LoadedCases, read_cases
from seatrial.loading.config import load_project
from seatrial.loading.files import is_there
from seatrial.loading.fixtures import FixtureFiles, fixture_for, fixture_names, load_fixture
from seatrial.loading.located import in_file_order
from seatrial.loading.policies import POLICY, load_exceptions, load_policy, load_rules
from seatrial.loading.settings import unknown_variables

__all__ = ["Checked", "check", "examine"]


@dataclass(frozen=True)
class Checked:
    """What was found in a project's files."""

    diagnostics: tuple[Diagnostic, ...]
    """Every error and warning, as `check` gives them."""
    project: Project | None
    """None where `seatrial.yaml` cannot be used."""
    cases: tuple[Case, ...]
    """Those that could be made."""


def check(folder: Path) -> tuple[Diagnostic, ...]:
    """Every error and warning in the files of a project, by file and line; empty when all is well.

    Nothing of the project's own code is imported. Raises UsageError when the folder is no project.
    """
    return examine(folder).diagnostics


def examine(folder: Path) -> Checked:
    """Everything that is wrong or doubtful in the files of a project, and what could be read of it.

    Nothing of the project's own code is imported. Raises UsageError when the folder is no project.
    """
    found = list(unknown_variables(folder))
    project, settings = None, Project(root=str(folder.resolve()))
    try:
        project = settings = load_project(folder=folder)
    except InputError as error:
        found.extend(error.diagnostics)
    loaded, errors = read_cases(settings)
    found.extend(errors)
    for part in (_cases(settings, loaded), _fixtures(settings), _policies(settings, None if errors else loaded)):
        found.extend(part)
    return Checked(tuple(sorted(dict.fromkeys(found), key=in_file_order)), project, loaded.cases)


def _problems(read: Callable[[], object]) -> tuple[Diagnostic, ...]:
    try:
        read()
    except InputError as error:
        return error.diagnostics
    return ()


def _cases(project: Project, loaded: LoadedCases) -> Iterator[Diagnostic]:
    yield from loaded.warnings
    read: dict[str | None, FixtureFiles] = {}
    for case in loaded.cases:
        if case.environment.overrides():
            yield from _problems(lambda case=case: fixture_for(project, case, read=read))  # type: ignore[misc]


def _fixtures(project: Project) -> Iterator[Diagnostic]:
    try:
        names = fixture_names(project)
    except InputError as error:
        yield from error.diagnostics
        return
    for name in names:
        yield from _problems(lambda name=name: load_fixture(project, name))  # type: ignore[misc]


def _policies(project: Project, loaded: LoadedCases | None) -> Iterator[Diagnostic]:
    """Where not all cases can be read, their suites are unknown and any group of a policy may be one."""
    suites = None if loaded is None else {*project.suites, *(case.suite for case in loaded.cases)}
    yield from _problems(lambda: load_rules(project))
    yield from _problems(lambda: load_exceptions(project))
    yield from _problems(lambda: is_there(Path(project.root) / POLICY, POLICY) and load_policy(project, suites=suites))
