"""What the grades of a case are called, and what can be wrong with those names, known without loading any grader.

A grade is named after its key of `expected` or `thresholds` (`response` gives one a key below it, `max_steps` is
`step_efficiency`), a turn's with the turn before it: `turn[2].answer`. Own graders go by their `name:`, else by what
their author called them, else by their import path.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from seatrial.core.case import Case, Expected, ResponseExpectation
from seatrial.errors import did_you_mean

__all__ = ["PERMISSIONS", "NameProblem", "built_in_names", "canonical", "keys_of", "name_problems", "threshold_keys"]

PERMISSIONS = "permissions"
"""The grade that exists where there is a canary or a rules file."""
_RENAMED = {"max_steps": "step_efficiency"}
_NO_GRADES = ("allowed_tools", "exact_tools")
"""Keys of `expected` that only say how others are graded."""


@dataclass(frozen=True)
class NameProblem:
    """One wrong name, with where it stands in the case."""

    rule: str
    """`duplicate-grade` or `unknown-grade`."""
    where: tuple[str | int, ...]
    """Path below the case, such as `("advisory", 0)`."""
    message: str
    hint: str


def canonical(name: str) -> str:
    """The grade's name for what `advisory` calls it: `max_steps` is `step_efficiency`, under a turn too."""
    turn, dot, key = name.rpartition("].")
    return turn + dot + _RENAMED.get(key, key)


def keys_of(expected: Expected) -> Iterator[str]:
    """Names of the grades that an `expected` asks for."""
    for key in Expected.model_fields:
        value = getattr(expected, key)
        if key == "response":
            yield from _response_keys(expected.response)
        elif key == "required_tools":
            if value is not None or expected.exact_tools:
                yield key
        elif key == "output":
            if expected.states(key):
                yield key
        elif value not in (None, (), False) and key not in _NO_GRADES:
            yield canonical(key)


def _response_keys(response: ResponseExpectation | None) -> Iterator[str]:
    for key in ResponseExpectation.model_fields if response else ():
        if getattr(response, key) not in (None, ()):
            yield f"response.{key}"


def threshold_keys(case: Case) -> Iterator[str]:
    """Names of the grades that `thresholds` ask for."""
    for key in ("max_latency_ms", "max_estimated_cost_usd"):
        if getattr(case.thresholds, key) is not None:
            yield key


def built_in_names(case: Case) -> tuple[str, ...]:
    """The names of all grades that a case asks for itself, `permissions` and own graders left out."""
    turns = [f"turn[{number}].{key}" for number, turn in enumerate(case.turns, 2) for key in keys_of(turn.expected)]
    return (*keys_of(case.expected), *threshold_keys(case), *turns)


def name_problems(case: Case, own: Sequence[str | None], *, permissions: bool | None) -> Iterator[NameProblem]:
    """Grades of one name, and names in `advisory` that no grade has.

    `own` are the names of the case's own graders, None where only their code can tell. `permissions` says whether
    there is such a grade, None where that is not known. What may be right is no problem.
    """
    if not own and not case.advisory:
        return  # most cases
    names = [*built_in_names(case), *([PERMISSIONS] if permissions else [])]
    taken = set(names)
    for number, name in enumerate(own):
        if name in taken:
            message = f"two grades are called {name!r}"
            yield NameProblem("duplicate-grade", ("graders", number), message, "give one of the graders a `name:`")
        if name is not None:
            taken.add(name)
    if None in own:
        return
    for number, name in enumerate(case.advisory):
        if canonical(name) not in taken and not (permissions is None and name == PERMISSIONS):
            message = f"advisory: no grade is called {name!r}"
            hint = did_you_mean(name, sorted(taken)) if taken else "the case has no grades"
            yield NameProblem("unknown-grade", ("advisory", number), message, hint)
