"""A project, and what a request selects in it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from seatrial.core.case import Case
from seatrial.core.project import Project
from seatrial.errors import Diagnostic
from seatrial.harness.request import Request
from seatrial.loading.cases import load_cases
from seatrial.loading.config import load_project
from seatrial.loading.selection import select
from seatrial.loading.settings import unknown_variables

__all__ = ["Selected", "selected"]


@dataclass(frozen=True)
class Selected:
    """The project and what was selected in it."""

    project: Project
    cases: tuple[Case, ...]
    """In file order."""
    hidden: frozenset[str]
    """Ids of cases of which only verdicts may be shown."""
    warnings: tuple[Diagnostic, ...]


def selected(request: Request) -> Selected:
    """What a request selects.

    Raises InputError with every diagnostic, NothingSelected when the selection matches no case.
    """
    project = load_project(folder=request.project, overrides=request.set)
    loaded = load_cases(project)
    cases = select(loaded.cases, request.selection, Path(project.root))
    warnings = (*unknown_variables(Path(project.root)), *loaded.warnings)
    return Selected(project, cases, loaded.hidden, warnings)
