"""Values as instrumentations write them into attributes: JSON, Python's repr, or plain text."""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from typing import Any

__all__ = ["arguments_of", "numbered", "parsed"]


def parsed(value: Any) -> Any:
    """The data in a text of JSON or of Python literals; any other text, and any other value, as it is."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        pass
    if value[:1] not in ("{", "[", "("):
        return value
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value


def arguments_of(value: Any) -> Any:
    """The arguments of a tool call: a mapping where there is one, else the text as it stands."""
    data = parsed(value)
    if isinstance(data, Mapping):
        for wrapper in ("input_str", "kwargs", "tool_kwargs"):
            inner = parsed(data.get(wrapper))
            if isinstance(inner, Mapping) and (wrapper != "kwargs" or set(data) <= {"args", "kwargs"}):
                return dict(inner)
        return dict(data)
    return value if isinstance(value, str) else data


def numbered(attributes: Mapping[str, Any], prefix: str) -> list[dict[str, Any]]:
    """`prefix.0.a`, `prefix.0.b.c`, `prefix.1.a` as [{a: .., b.c: ..}, {a: ..}], in the order of the numbers."""
    found: dict[int, dict[str, Any]] = {}
    for name, value in attributes.items():
        number, dot, rest = name.removeprefix(f"{prefix}.").partition(".")
        if name.startswith(f"{prefix}.") and dot and number.isdecimal():
            found.setdefault(int(number), {})[rest] = value
    return [found[number] for number in sorted(found)]
