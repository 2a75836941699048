"""The files of `policies/`: tool permissions, release policy, accepted exceptions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from seatrial.core.permissions import Rules
from seatrial.core.policy import Exceptions, Policy
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.loading.files import is_there, read_text, shown_path
from seatrial.loading.located import Map, Spot, in_file_order, problem_at, shown, without_echoes
from seatrial.loading.rules_of_cases import matcher_problems
from seatrial.loading.rules_of_policies import exceptions_problems, policy_problems
from seatrial.loading.validation import validated
from seatrial.loading.yaml import read_yaml

__all__ = ["EXCEPTIONS", "PERMISSIONS", "POLICY", "load_exceptions", "load_policy", "load_rules"]

PERMISSIONS = "policies/tool_permissions.yaml"
POLICY = "policies/release_policy.yaml"
EXCEPTIONS = "policies/exceptions.yaml"
_MATCHERS = (
    ("tools", "*", "requires", "*", "with"),
    ("tools", "*", "limits", "*"),
    ("tools", "*", "approval", "when"),
)
Model = TypeVar("Model", bound=BaseModel)


def load_rules(project: Project) -> Rules | None:
    """The project's permission rules; None when it has none. Raises InputError with every problem."""
    path = Path(project.root) / PERMISSIONS
    if not is_there(path, PERMISSIONS):
        return None
    problems: list[Diagnostic] = []
    written = _read(path, PERMISSIONS, "permission rules are a mapping", problems)
    return _checked(Rules, written, [*problems, *matcher_problems(written, _MATCHERS)])


def load_policy(project: Project, path: Path | None = None, *, suites: Collection[str] | None = None) -> Policy:
    """The release policy in `path`, else the project's own.

    `suites` are all suites of the project (not only those of a run): a group of gates that is none of them and no
    common group is an error. Without them such a group is accepted, and its gates find nothing to judge.
    Raises UsageError when there is no such file, InputError with every problem.
    """
    path, name = _chosen(project, path, POLICY)
    if not is_there(path, name):
        raise UsageError(f"there is no release policy {name}; write one, or name it with --policy")
    problems: list[Diagnostic] = []
    written = _read(path, name, "a release policy is a mapping", problems)
    return _checked(Policy, written, [*problems, *policy_problems(written, suites)])


def load_exceptions(project: Project, path: Path | None = None) -> Exceptions:
    """The accepted deviations in `path`, else the project's own; none where the project has no such file.

    Raises UsageError when `path` is not there, InputError with every problem.
    """
    given = path is not None
    path, name = _chosen(project, path, EXCEPTIONS)
    if not is_there(path, name):
        if given:
            raise UsageError(f"there is no file of exceptions {name}")
        return Exceptions()
    problems: list[Diagnostic] = []
    written = _read(path, name, "exceptions are a mapping", problems, empty=True)
    return _checked(Exceptions, written, [*problems, *exceptions_problems(written)])


def _chosen(project: Project, path: Path | None, usual: str) -> tuple[Path, str]:
    root = Path(project.root)
    return (root / usual, usual) if path is None else (path, shown_path(path, root))


def _read(path: Path, name: str, wanted: str, problems: list[Diagnostic], *, empty: bool = False) -> Map:
    written = read_yaml(read_text(path, name), name, problems)
    if written is None and empty:
        return Map(Spot(name, 1, 1))
    if not isinstance(written, Map):
        problem = problem_at(Spot(name, 1, 1), "wrong-value", f"{wanted}, not {shown(written)}")
        raise InputError(without_echoes([*problems, problem]))
    return written


def _checked(model: type[Model], written: Map, problems: Iterable[Diagnostic]) -> Model:
    """The model, or every problem of its text, of its shape and of its meaning at once."""
    found = list(problems)
    try:
        made = validated(model, written)
    except InputError as error:
        raise InputError(sorted(without_echoes([*error.diagnostics, *found]), key=in_file_order)) from error
    if found:
        raise InputError(sorted(without_echoes(found), key=in_file_order))
    return made
