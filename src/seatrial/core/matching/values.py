"""A value as matching sees it, and as its messages show it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from typing import Any, Final

from seatrial.core.encoding import dumps, pairs_of, to_json

__all__ = [
    "JSON_TYPES",
    "MISSING",
    "Unordered",
    "as_decimal",
    "as_matched",
    "difference_between",
    "is_encoded",
    "is_number",
    "is_operators",
    "note_of_type",
    "show",
    "show_typed",
    "type_name",
]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""What `lookup_path` gives where there is no value; it is not null."""

_ENCODED = frozenset({"decimal", "bytes", "set", "datetime", "dataclass", "object", "float", "cycle", "mapping"})
JSON_TYPES = ("integer", "number", "string", "boolean", "array", "object", "null")
"""What `$type` takes."""


class Unordered(list[Any]):
    """Elements without an order."""


class _Moment(str):
    """A date or time as its ISO text."""

    __slots__ = ()


class _Read(dict[str, Any]):
    """What a mark stood for: a mapping whatever its keys, never a mark itself, nor operators."""

    __slots__ = ()


def is_encoded(value: Any) -> bool:
    """Whether it stands for a value that JSON lacks."""
    if not isinstance(value, Mapping) or isinstance(value, _Read) or value.keys() != {"$type", "value"}:
        return False
    return isinstance(value["$type"], str) and value["$type"] in _ENCODED


def as_matched(value: Any) -> Any:
    """A value as the rules see it: encoded kinds that mean something read back, Python's own kinds made JSON."""
    if value is None or value is MISSING or isinstance(value, (str, bool, int, float, Decimal, list)):
        return value
    if not isinstance(value, Mapping):
        value = to_json(value)
    return _decoded(value) if is_encoded(value) else value


def _decoded(marked: Mapping[str, Any]) -> Any:
    kind, value = marked["$type"], marked["value"]
    reader = _READERS.get(kind) if isinstance(value, str) or kind in _OF_NUMBERS else None
    try:
        return marked if reader is None else reader(str(value))
    except (ValueError, ArithmeticError, RecursionError):  # not written by `to_json`: a mapping like any other
        return marked


def _set(text: str) -> Unordered:
    items = json.loads(text)
    if not isinstance(items, list):
        raise ValueError("a set is a list of its elements")  # noqa: TRY004  what the text says, not its type
    return Unordered(items)


def _fields(text: str) -> _Read:
    fields = json.loads(text.partition(" ")[2])
    if not isinstance(fields, dict):
        raise ValueError("a dataclass is a mapping of its fields")  # noqa: TRY004  as above
    return _Read(fields)


_OF_NUMBERS = frozenset({"float", "decimal"})
"""What people may write without quotes."""
_READERS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "decimal": Decimal,
    "set": _set,
    "datetime": _Moment,
    "dataclass": _fields,
    "mapping": lambda text: _Read(pairs_of(text)),
}


def is_number(value: Any) -> bool:
    """Whether it is a number, which true is not."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def as_decimal(number: Any) -> Decimal:
    """By the digits one reads: 0.1 is a tenth."""
    return Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number)


def difference_between(left: Any, right: Any) -> Decimal | None:
    """`left - right`; None when one of them is NaN (or both are the same infinity: then 0)."""
    a, b = as_decimal(left), as_decimal(right)
    if a.is_nan() or b.is_nan():
        return None
    if a == b:
        return Decimal(0)
    with localcontext() as context:
        context.prec = 60
        context.clear_traps()
        return a - b


def type_name(value: Any) -> str:
    """The JSON type of a value, as messages and `$type` name it."""
    value = as_matched(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if is_number(value):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else str(value["$type"]) if is_encoded(value) else "object"


def show(value: Any) -> str:
    """A value as messages show it: text in quotes, JSON words for the rest, cut when it is long."""
    value = value if is_operators(value) else as_matched(value)
    if value is MISSING:
        return "nothing"
    text = repr(str(value)) if isinstance(value, str) else str(value) if isinstance(value, Decimal) else _json(value)
    return text if len(text) <= 200 else f"{text[:190]}... ({len(text)} characters)"


def _json(value: Any) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError):  # not yet JSON data
        return dumps(to_json(value))


def note_of_type(value: Any, fits: bool) -> str:
    """The type of a value that is of the wrong kind, where it does not show."""
    return "" if fits or value is None or value is MISSING else f" ({type_name(value)})"


def show_typed(value: Any) -> str:
    """A value with its type, where that is another one than was expected."""
    return show(value) if value is None else f"{show(value)} ({type_name(value)})"


def is_operators(expected: Any) -> bool:
    """Whether it is a mapping of operators."""
    return (
        isinstance(expected, Mapping)
        and any(isinstance(key, str) and key.startswith("$") for key in expected)
        and not isinstance(expected, _Read)
        and not is_encoded(expected)
    )
