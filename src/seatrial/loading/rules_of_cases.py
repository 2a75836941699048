"""What must hold in written values beyond the shape of their data: matchers, patterns, schemas that can be used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from seatrial.core.matching import problem_with_matcher
from seatrial.errors import Diagnostic
from seatrial.loading.located import Map, Spot, each_at, plain, problem_at
from seatrial.loading.validation import text_problem

__all__ = ["matcher_problems", "problem_with_pattern", "problems_with_case"]

Pattern = tuple[str, ...]

_EXPECTATIONS: tuple[Pattern, ...] = (("expected",), ("turns", "*", "expected"))
_MATCHERS: tuple[Pattern, ...] = (
    ("output",),
    ("outcome", "*"),
    ("required_tools", "*", "arguments"),
    ("forbidden_tools", "*", "arguments"),
    ("forbidden_approvals", "*", "arguments"),
    ("tool_order", "*", "*", "arguments"),
    ("handoff", "reason"),
)
"""Everything in an expectation that a value is matched against."""


def problems_with_case(case: Map) -> Iterator[Diagnostic]:
    """Every unusable matcher, pattern and schema of a case in the long form, whatever else is wrong with it."""
    yield from matcher_problems(case, [("user", "scripted", "*", "when")])
    for pattern in _EXPECTATIONS:
        for expected, _ in each_at(case, pattern):
            yield from matcher_problems(expected, _MATCHERS)
            yield from _null_answers(expected)
            yield from _response_problems(expected)


def matcher_problems(value: Any, patterns: Iterable[Sequence[str]]) -> Iterator[Diagnostic]:
    """The problems of every matcher that one of the patterns leads to."""
    for pattern in patterns:
        for matcher, spot in each_at(value, pattern):
            problem = problem_with_matcher(matcher) if isinstance(matcher, (dict, list)) else None
            if problem is not None:
                yield problem_at(spot, "bad-matcher", problem)


def problem_with_pattern(pattern: str) -> str | None:
    """Why a regular expression cannot be used, or None."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"{pattern!r} is no regular expression: {error}"
    return None


def _null_answers(expected: Any) -> Iterator[Diagnostic]:
    """`answer:` with nothing behind it is a slip, never "no expectation"."""
    for answer, spot in each_at(expected, ("answer",)):
        if answer is None:
            yield text_problem("expected.answer", answer, spot)


def _response_problems(expected: Any) -> Iterator[Diagnostic]:
    for pattern, spot in each_at(expected, ("response", "matches")):
        problem = problem_with_pattern(pattern) if isinstance(pattern, str) else None
        if problem is not None:
            yield problem_at(spot, "bad-pattern", problem)
    for schema, spot in each_at(expected, ("response", "json_schema")):
        if isinstance(schema, Map):
            yield from _schema_problems(plain(schema), spot)


def _schema_problems(schema: dict[str, Any], spot: Spot) -> Iterator[Diagnostic]:
    from jsonschema import Draft202012Validator, SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema, default=Draft202012Validator).check_schema(schema)
    except SchemaError as error:
        yield problem_at(spot, "bad-schema", f"no JSON Schema: {error.message}")
