"""What of an agent's spec means nothing to an agent that has no structured input."""

from __future__ import annotations

from seatrial.core.project import AgentSpec
from seatrial.errors import UsageError

__all__ = ["check_taken"]

_WHY = {"input": "it gets the case's input as it is", "output": "its output is what it returns"}


def check_taken(spec: AgentSpec, what: str = "a function") -> None:
    """UsageError for `input` and `output`, which only frameworks and services have a use for."""
    for key, why in _WHY.items():
        if getattr(spec, key) is not None:
            raise UsageError(f"{what} takes no `{key}`" + (f": {why}" if what == "a function" else ""))
