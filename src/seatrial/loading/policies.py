"""`policies/tool_permissions.yaml` -> rules."""

from __future__ import annotations

from pathlib import Path

from seatrial.core.permissions import Rules
from seatrial.core.project import Project
from seatrial.errors import InputError
from seatrial.loading.files import read_text
from seatrial.loading.located import Map, Spot, problem_at, shown
from seatrial.loading.rules_of_cases import matcher_problems
from seatrial.loading.validation import validated
from seatrial.loading.yaml import read_yaml

__all__ = ["PERMISSIONS", "load_rules"]

PERMISSIONS = "policies/tool_permissions.yaml"
_MATCHERS = (
    ("tools", "*", "requires", "*", "with"),
    ("tools", "*", "limits", "*"),
    ("tools", "*", "approval", "when"),
)


def load_rules(project: Project) -> Rules | None:
    """The project's permission rules; None when it has none. Raises InputError with every problem."""
    path = Path(project.root) / PERMISSIONS
    if not path.is_file():
        return None
    written = read_yaml(read_text(path, PERMISSIONS), PERMISSIONS)
    if not isinstance(written, Map):
        message = f"permission rules are a mapping, not {shown(written)}"
        raise InputError(problem_at(Spot(PERMISSIONS, 1, 1), "wrong-value", message))
    rules = validated(Rules, written)
    problems = list(matcher_problems(written, _MATCHERS))
    if problems:
        raise InputError(problems)
    return rules
