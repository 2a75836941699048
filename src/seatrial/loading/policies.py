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
from seatrial.loading.files import read_text, shown_path
from seatrial.loading.located import Map, Spot, in_file_order, problem_at, shown
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
    if not path.is_file():
        return None
    written = _read(path, PERMISSIONS, "permission rules are a mapping")
    rules = validated(Rules, written)
    problems = list(matcher_problems(written, _MATCHERS))
    if problems:
        raise InputError(problems)
    return rules


def load_policy(project: Project, path: Path | None = None, *, suites: Collection[str] | None = None) -> Policy:
    """The release policy in `path`, else the project's own.

    `suites` are all suites of the project (not only those of a run): a group of gates that is none of them and no
    common group is an error. Without them such a group is accepted, and its gates find nothing to judge.
    Raises UsageError when there is no such file, InputError with every problem.
    """
    path, name = _chosen(project, path, POLICY)
    if not path.is_file():
        raise UsageError(f"there is no release policy {name}; write one, or name it with --policy")
    written = _read(path, name, "a release policy is a mapping")
    return _checked(Policy, written, policy_problems(written, suites))


def load_exceptions(project: Project, path: Path | None = None) -> Exceptions:
    """The accepted deviations in `path`, else the project's own; none where the project has no such file.

    Raises UsageError when `path` is not there, InputError with every problem.
    """
    given = path is not None
    path, name = _chosen(project, path, EXCEPTIONS)
    if not path.is_file():
        if given:
            raise UsageError(f"there is no file of exceptions {name}")
        return Exceptions()
    written = _read(path, name, "exceptions are a mapping", empty=True)
    return _checked(Exceptions, written, exceptions_problems(written))


def _chosen(project: Project, path: Path | None, usual: str) -> tuple[Path, str]:
    root = Path(project.root)
    return (root / usual, usual) if path is None else (path, shown_path(path, root))


def _read(path: Path, name: str, wanted: str, *, empty: bool = False) -> Map:
    written = read_yaml(read_text(path, name), name)
    if written is None and empty:
        return Map(Spot(name, 1, 1))
    if not isinstance(written, Map):
        raise InputError(problem_at(Spot(name, 1, 1), "wrong-value", f"{wanted}, not {shown(written)}"))
    return written


def _checked(model: type[Model], written: Map, problems: Iterable[Diagnostic]) -> Model:
    """The model, or every problem of its shape and of its meaning at once."""
    found = list(problems)
    try:
        made = validated(model, written)
    except InputError as error:
        raise InputError(sorted((*error.diagnostics, *found), key=in_file_order)) from error
    if found:
        raise InputError(found)
    return made
