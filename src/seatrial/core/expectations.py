"""Whether the expectations of a case can be graded at all: bad matchers, patterns, schemas, language codes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from seatrial.core.case import Expected, ResponseExpectation
from seatrial.core.language import problem_with_language
from seatrial.core.matching import problem_with_matcher
from seatrial.core.text import problem_with_pattern

__all__ = ["problems_with_expected"]


def problems_with_expected(expected: Expected) -> Iterator[tuple[str, str]]:
    """Each problem as (path below `expected`, message), such as `("response.matches", "...")`."""
    for path, matcher in _matchers(expected):
        problem = problem_with_matcher(matcher)
        if problem:
            yield path, problem
    if expected.response is not None:
        yield from _response_problems(expected.response)


def _matchers(expected: Expected) -> Iterator[tuple[str, Any]]:
    yield "output", expected.output
    yield "outcome", expected.outcome
    yield from _arguments("required_tools", expected.required_tools or ())
    yield from _arguments("forbidden_tools", expected.forbidden_tools or ())
    yield from _arguments("forbidden_approvals", expected.forbidden_approvals or ())
    for number, chain in enumerate(expected.tool_order or ()):
        yield from _arguments(f"tool_order[{number}]", chain)
    if expected.handoff is not None:
        yield "handoff.reason", expected.handoff.reason


def _arguments(key: str, entries: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    return ((f"{key}[{number}].arguments", entry.arguments) for number, entry in enumerate(entries))


def _response_problems(response: ResponseExpectation) -> Iterator[tuple[str, str]]:
    checks = {
        "matches": None if response.matches is None else problem_with_pattern(response.matches),
        "json_schema": None if response.json_schema is None else _problem_with_schema(response.json_schema),
        "language": None if response.language is None else problem_with_language(response.language),
    }
    return ((f"response.{key}", problem) for key, problem in checks.items() if problem)


def _problem_with_schema(schema: dict[str, Any]) -> str | None:
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for

    try:
        validator_for(schema).check_schema(schema)
    except SchemaError as error:
        where = f" at {error.json_path}" if error.path else ""
        return f"not a JSON Schema{where}: {error.message}"
    return None
