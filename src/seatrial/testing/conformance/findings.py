"""Collecting problems: an expectation, what was seen, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.testing.conformance.report import Problem, Words

__all__ = ["Findings"]


@dataclass
class Findings:
    """The problems of one situation, or of one trial of it."""

    situation: str
    trial: int | None = None
    problems: list[Problem] = field(default_factory=list)

    def add(self, what: str, expected: Any, seen: Any) -> None:
        """A problem. Texts are shown in quotes; for an expectation in words give `Words`."""
        self.problems.append(Problem(self.situation, what, expected, seen, self.trial))

    def equal(self, what: str, expected: Any, seen: Any) -> None:
        """The two must be equal."""
        if expected != seen or isinstance(expected, bool) is not isinstance(seen, bool):
            self.add(what, expected, seen)

    def contains(self, what: str, expected: str, seen: str | None) -> None:
        """A text with this in it; any but none when nothing is expected in it."""
        if seen is None or expected not in seen:
            self.add(what, Words(f"a text with {expected!r} in it" if expected else "an error"), seen)

    def holds(self, what: str, condition: bool, expected: str, seen: Any) -> None:
        """A condition, whose expectation is said in words."""
        if not condition:
            self.add(what, Words(expected), seen)

    def same_length(self, what: str, expected: Sequence[Any], seen: Sequence[Any], shown: Iterable[Any]) -> bool:
        """As many of one as of the other. `shown` is what was seen, short."""
        if len(expected) == len(seen):
            return True
        self.add(f"number of {what}", len(expected), Words(f"{len(seen)} {list(shown)}"))
        return False
