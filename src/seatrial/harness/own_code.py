"""The code of a project that its cases name: whether it can be imported and called, before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from seatrial.core.case import Case
from seatrial.errors import Diagnostic, UsageError
from seatrial.graders.external import own_grader
from seatrial.registry import load_object

__all__ = ["at_first_place", "called", "problem_at_case", "problems_with_code"]


def problem_at_case(case: Case, rule: str, error: UsageError) -> Diagnostic:
    """What is wrong with a case that was loaded, at the line on which it begins."""
    return Diagnostic(rule, str(error), case.path, case.line)


def problems_with_code(case: Case) -> Iterator[Diagnostic]:
    """Every own grader and simulated user of a case that cannot be imported, called, or called so."""
    for use in case.graders:
        try:
            own_grader(use, name=use.use)
        except UsageError as error:
            yield problem_at_case(case, "bad-grader", error)
    if case.user is not None and case.user.use is not None:
        try:
            called(case.user.use, "user")
        except UsageError as error:
            yield problem_at_case(case, "bad-user", error)


def called(path: str, what: str) -> object:
    """The object at an import path. Raises UsageError when there is none or it cannot be called."""
    found = load_object(path)
    if not callable(found):
        raise UsageError(f"{what} {path!r} is a {type(found).__name__}, which cannot be called")
    return found


def at_first_place(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Problems that say the same of many cases once, where they were found first, with how many more there are."""
    first: dict[tuple[str, str], Diagnostic] = {}
    more: dict[tuple[str, str], int] = {}
    for problem in dict.fromkeys(problems):
        key = (problem.rule, problem.message)
        more[key] = more.get(key, -1) + 1
        first.setdefault(key, problem)
    return [_with_count(problem, more[key]) for key, problem in first.items()]


def _with_count(problem: Diagnostic, more: int) -> Diagnostic:
    if not more:
        return problem
    also = f"and in {more} more {'case' if more == 1 else 'cases'}"
    return replace(problem, hint=f"{problem.hint}; {also}" if problem.hint else also)
