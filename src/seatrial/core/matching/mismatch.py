"""One difference, and where in the value it is."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from seatrial.core.matching.values import show

__all__ = ["Mismatch", "Place"]


@dataclass(frozen=True)
class Mismatch:
    """One difference between what was expected and what is there."""

    path: str
    """Such as `arguments.items[0].id`; empty for the value itself."""
    expected: str
    actual: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


@dataclass(frozen=True)
class Place:
    """Where in the value we are, and whether further keys are allowed."""

    path: str = ""
    exact: bool = False

    def key(self, key: str) -> Place:
        """The place of that key's value."""
        return replace(self, path=f"{self.path}.{key}" if self.path else str(key))

    def index(self, at: int) -> Place:
        """The place of that element."""
        return replace(self, path=f"{self.path}[{at}]")

    def differs(self, wanted: str, actual: Any, *, note: str = "") -> Mismatch:
        """What is said when this place should hold what `wanted` describes; `note` stands behind what it holds."""
        got = show(actual) + note
        return Mismatch(self.path, wanted, got, f"expected {wanted}, got {got}")
