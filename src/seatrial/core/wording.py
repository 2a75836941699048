"""What a validation error says to a person: never in the words of the validator, which name its own types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from seatrial.core.encoding import dumps, to_json
from seatrial.core.ids import readable

__all__ = ["first_problem", "said", "wanted"]

_LONGEST = 80

_WANTED = {
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("int_from_float", "int_parsing", "int_parsing_size", "int_type"), "a whole number"),
    **dict.fromkeys(("complex_str_parsing", "complex_type", "decimal_parsing", "decimal_type"), "a number"),
    **dict.fromkeys(("float_parsing", "float_type", "fraction_parsing", "fraction_type"), "a number"),
    "finite_number": "a finite number",
    "multiple_of": "a multiple of {multiple_of:g}",
    "decimal_max_digits": "a number of at most {max_digits} digits",
    "decimal_max_places": "a number of at most {decimal_places} decimal places",
    "decimal_whole_digits": "a number of at most {whole_digits} digits before the point",
    "greater_than": "above {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than": "below {lt:g}",
    "less_than_equal": "{le:g} or less",
    **dict.fromkeys(("bytes_type", "string_sub_type", "string_type"), "text"),
    **dict.fromkeys(("bytes_invalid_encoding", "string_unicode"), "text in UTF-8"),
    "string_not_ascii": "text of plain letters",
    **dict.fromkeys(("bytes_too_short", "string_too_short"), "text that is not empty"),
    **dict.fromkeys(("bytes_too_long", "string_too_long"), "text of at most {max_length} characters"),
    "string_pattern_mismatch": "text that matches {pattern}",
    "enum": "{expected}",
    "literal_error": "{expected}",
    "none_required": "null",
    **dict.fromkeys(
        ("counter_type", "dataclass_type", "dict_type", "frozen_dict_type", "mapping_type", "ordered_dict_type"),
        "a mapping",
    ),
    **dict.fromkeys(("arguments_type", "dataclass_exact_type", "model_attributes_type", "model_type"), "a mapping"),
    **dict.fromkeys(("deque_type", "frozen_set_type", "iterable_type", "iteration_error", "list_type"), "a list"),
    **dict.fromkeys(("named_tuple_type", "set_type", "tuple_type"), "a list"),
    "set_item_not_hashable": "a list of plain values",
    "too_short": "a list of one or more",
    "too_long": "a list of at most {max_length}",
    "invalid_key": "a mapping whose keys are text",
    **dict.fromkeys(("json_invalid", "json_type"), "JSON"),
    **dict.fromkeys(("recursion_depth_exceeded", "recursion_loop"), "a value that is nested less deeply"),
    **dict.fromkeys(
        ("date_from_datetime_inexact", "date_from_datetime_parsing", "date_parsing", "date_type"),
        "a date, YYYY-MM-DD",
    ),
    **dict.fromkeys(("date_past", "datetime_past"), "in the past"),
    **dict.fromkeys(("date_future", "datetime_future"), "in the future"),
    **dict.fromkeys(("time_parsing", "time_type"), "a time of day, HH:MM:SS"),
    **dict.fromkeys(
        ("datetime_from_date_parsing", "datetime_object_invalid", "datetime_parsing", "datetime_type"),
        "a time, such as 2026-01-31T12:00:00Z",
    ),
    **dict.fromkeys(("timezone_aware", "timezone_offset"), "a time with its zone, such as 2026-01-31T12:00:00Z"),
    "timezone_naive": "a time without a zone",
    **dict.fromkeys(("time_delta_parsing", "time_delta_type"), "a duration"),
    **dict.fromkeys(("url_parsing", "url_scheme", "url_syntax_violation", "url_too_long", "url_type"), "a URL"),
    **dict.fromkeys(("uuid_parsing", "uuid_type", "uuid_version"), "a UUID"),
    **dict.fromkeys(("callable_type",), "a function"),
}
"""What should stand there, by the kind of error; `{...}` are fields of its context."""
_ANOTHER = "of another kind"


def wanted(kind: str, context: Mapping[str, Any]) -> str:
    """What should stand where there was an error of this kind of pydantic's, such as `a whole number`."""
    if kind == "string_pattern_mismatch" and context.get("pattern") == r"\S":
        return "text that is not blank"
    if kind == "too_short" and context.get("min_length", 1) > 1:
        return f"a list of {context['min_length']} or more"
    return _WANTED.get(kind, _ANOTHER).format(**context).replace("True", "true").replace("False", "false")


def said(error: Mapping[str, Any]) -> str:
    """One of `ValidationError.errors()` in words, without its place."""
    kind, context = error["type"], error.get("ctx", {})
    if kind == "missing":
        return "is missing"
    if kind == "extra_forbidden":
        return "is no known key"
    if kind in ("value_error", "assertion_error"):
        return str(context.get("error", "is wrong"))
    if kind == "json_invalid":
        return "is not JSON"
    return f"should be {wanted(kind, context)}, not {_shown(error.get('input'))}"


def first_problem(error: ValidationError) -> str:
    """`status: should be 'passed' or 'failed', not "x" (and 2 more)`."""
    found = error.errors(include_url=False)
    place = "".join(f"{part}: " for part in [readable(".".join(map(str, found[0]["loc"])))] if part)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return f"{place}{said(found[0])}{more}"


def _shown(value: object) -> str:
    text = readable(dumps(to_json(value)))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
