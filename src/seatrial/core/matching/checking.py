"""Whether what was written is a matcher at all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seatrial.core.matching.paths import is_reference
from seatrial.core.matching.values import JSON_TYPES, as_decimal, as_matched, is_number, is_operators, show, show_typed
from seatrial.core.text import problem_with_pattern
from seatrial.errors import did_you_mean

__all__ = ["CHECKS", "problem_with_matcher", "problem_with_operators"]


def _takes_true(operand: Any) -> str | None:
    return None if operand is True else f"takes true, not {show_typed(operand)}"


def _takes_number(operand: Any) -> str | None:
    number = is_number(operand) and as_decimal(operand).is_finite()
    return None if number or is_reference(operand) else f"takes a number, not {show_typed(operand)}"


def _takes_list(operand: Any) -> str | None:
    if not isinstance(operand, (list, tuple)):
        return None if is_reference(operand) else f"takes a list, not {show_typed(operand)}"
    return _first_problem(operand)


def _takes_options(operand: Any) -> str | None:
    return (
        "takes a list of at least one" if isinstance(operand, (list, tuple)) and not operand else _takes_list(operand)
    )


def _takes_pattern(operand: Any) -> str | None:
    if not isinstance(operand, str):
        return f"takes a text, not {show_typed(operand)}"
    return None if is_reference(operand) else problem_with_pattern(operand)


def _takes_approx(operand: Any) -> str | None:
    if not isinstance(operand, Mapping) or operand.keys() != {"value", "tolerance"}:
        return f"takes {{value: number, tolerance: number}}, not {show(operand)}"
    problem = _takes_number(operand["value"]) or _takes_number(operand["tolerance"])
    if problem is None and is_number(operand["tolerance"]) and operand["tolerance"] < 0:
        return f"takes a tolerance of 0 or more, not {show(operand['tolerance'])}"
    return problem


def _takes_type(operand: Any) -> str | None:
    if operand in JSON_TYPES:
        return None
    hint = did_you_mean(str(operand), JSON_TYPES)
    return f"takes one of {', '.join(JSON_TYPES)}, not {show_typed(operand)}" + (
        f"; {hint}" if hint.startswith("did") else ""
    )


def _takes_folded(operand: Any) -> str | None:
    inner = operand.get("$contains") if isinstance(operand, Mapping) and len(operand) == 1 else operand
    return None if isinstance(inner, str) else f"takes a text or {{$contains: text}}, not {show(operand)}"


def _takes_number_matcher(operand: Any) -> str | None:
    return problem_with_matcher(operand) if isinstance(operand, Mapping) else _takes_number(operand)


def problem_with_matcher(expected: Any) -> str | None:
    """Why `expected` cannot be matched against anything (unknown operator, wrong operand, bad pattern), or None."""
    if is_operators(expected):
        return problem_with_operators(expected)
    wanted = as_matched(expected)  # a mark that cannot be read is a mapping, as it is when it is compared
    if isinstance(wanted, Mapping):
        return _first_problem(wanted.values())
    return _first_problem(wanted) if isinstance(wanted, list) else None


def _first_problem(items: Any) -> str | None:
    return next(filter(None, map(problem_with_matcher, items)), None)


def problem_with_operators(expected: Mapping[str, Any]) -> str | None:
    """Why a mapping with `$` keys is no matcher, or None."""
    plain = [str(key) for key in expected if not str(key).startswith("$")]
    if plain:
        return f"operators and plain keys cannot stand in one mapping: {', '.join(map(str, expected))}"
    for name, operand in expected.items():
        if name not in CHECKS:
            hint = did_you_mean(name, list(CHECKS))
            return f"unknown operator {name!r}" + (f"; {hint}" if hint else "")
        problem = CHECKS[name](operand)
        if problem:
            return f"{name} {problem}" if problem.startswith("takes") else problem
    return None


CHECKS: dict[str, Callable[[Any], str | None]] = {
    "$any": _takes_true,
    "$absent": _takes_true,
    "$not": problem_with_matcher,
    "$one_of": _takes_options,
    "$regex": _takes_pattern,
    "$contains": problem_with_matcher,
    "$unordered": _takes_list,
    "$gt": _takes_number,
    "$gte": _takes_number,
    "$lt": _takes_number,
    "$lte": _takes_number,
    "$approx": _takes_approx,
    "$type": _takes_type,
    "$exact": problem_with_matcher,
    "$folded": _takes_folded,
    "$number_text": _takes_number_matcher,
}
"""Why what is given to an operator is not what it takes, or None."""
