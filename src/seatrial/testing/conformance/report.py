"""What the kit found: per situation passed, failed with its problems, not observed, or absent with its reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seatrial.core.trace import Observable

__all__ = ["Outcome", "Problem", "Report", "Result", "Words"]


class Outcome(StrEnum):
    """What became of a situation."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_OBSERVED = "not observed"
    """What the situation is about cannot be seen by this adapter, and it claimed nothing of it."""
    ABSENT = "absent"
    """The framework has no such thing."""


@dataclass(frozen=True)
class Problem:
    """One thing that the trace, or the trial, says otherwise than it was."""

    situation: str
    what: str
    """In plain words, such as `tool call 2: result`."""
    expected: Any
    seen: Any
    trial: int | None = None
    """Which trial of the situation, from 1; None where there is only one, or all are meant."""

    def __str__(self) -> str:
        where = self.situation if self.trial is None else f"{self.situation}, trial {self.trial}"
        return f"{where}: {self.what}: expected {_text(self.expected)}, seen {_text(self.seen)}"


def _text(value: Any) -> str:
    """Words as they are; data as Python writes it."""
    return str(value) if isinstance(value, Words) else repr(value)


class Words(str):
    """An expectation in words rather than a value."""

    __slots__ = ()


@dataclass(frozen=True)
class Result:
    """One situation of one framework."""

    situation: str
    outcome: Outcome
    problems: tuple[Problem, ...] = ()
    reason: str = ""
    """Why it is absent."""
    observed: frozenset[Observable] = frozenset()
    """What happened in it and this adapter declares: compared one by one."""
    unobserved: frozenset[Observable] = frozenset()
    """What happened in it and this adapter cannot see; it was checked that nothing of it is claimed."""


@dataclass(frozen=True)
class Report:
    """Every situation of one framework, in order."""

    name: str
    """Of the framework."""
    results: tuple[Result, ...]

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All problems; none = the adapter says what happened."""
        return tuple(problem for result in self.results for problem in result.problems)

    @property
    def passed(self) -> bool:
        """Whether nothing failed."""
        return not self.problems

    def __getitem__(self, situation: str) -> Result:
        """The result of a situation by name. KeyError when it was not run."""
        return {result.situation: result for result in self.results}[situation]

    def __str__(self) -> str:
        lines = [f"{self.name}: {result.situation}: {result.outcome}" for result in self.results]
        return "\n".join([*lines, *(f"  {problem}" for problem in self.problems)])
