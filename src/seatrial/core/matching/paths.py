"""Paths into a value, and references to the case's input."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from seatrial.core.matching.values import MISSING

__all__ = ["is_reference", "lookup_path", "missing_references", "resolve_input"]

_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")
_REFERENCE = re.compile(r"\$input(?=$|[.\[])")


def lookup_path(data: Any, path: str) -> Any:
    """The value at a dotted path such as `order.items[0].id`, or MISSING.

    A key that is itself spelt like the path wins; a number between dots also indexes a list; "" is `data` itself.
    """
    if isinstance(data, Mapping) and path in data:
        return data[path]
    value = data
    for index, key in _STEP.findall(path):
        value = _step(value, index or key)
        if value is MISSING:
            break
    return value


def _step(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key, MISSING)
    if isinstance(value, (list, tuple)) and key.lstrip("-").isdecimal():
        at = int(key)
        return value[at] if -len(value) <= at < len(value) else MISSING
    return MISSING


def resolve_input(expected: Any, input: Any) -> Any:  # noqa: A002
    """`expected` with every text that is exactly `$input` or `$input.path` replaced by that value of the case's input.

    A path that is not there becomes None. Without an input (None) texts stay as they are.
    """
    if input is None:
        return expected
    if isinstance(expected, str) and _REFERENCE.match(expected):
        value = _referred(expected, input)
        return None if value is MISSING else value
    if isinstance(expected, Mapping):
        return {key: resolve_input(item, input) for key, item in expected.items()}
    if isinstance(expected, (list, tuple)):
        return [resolve_input(item, input) for item in expected]
    return expected


def _referred(text: str, data: Any) -> Any:
    return lookup_path(data, text.removeprefix("$input").removeprefix("."))


def missing_references(expected: Any, input: Any) -> list[str]:  # noqa: A002
    """The `$input` references in `expected` that lead nowhere in this input: most likely spelling mistakes."""
    if isinstance(expected, str):
        lost = _REFERENCE.match(expected) and _referred(expected, input) is MISSING
        return [expected] if lost else []
    items = expected.values() if isinstance(expected, Mapping) else expected
    if not isinstance(expected, (Mapping, list, tuple)):
        return []
    return [text for item in items for text in missing_references(item, input)]


def is_reference(operand: Any) -> bool:
    """Whether it stands for a value of the case's input."""
    return isinstance(operand, str) and _REFERENCE.match(operand) is not None
