"""Data that remembers where it was written.

`Map` and `Seq` are the dict and list that readers return: beside each key and value they keep a `Spot`. They are
never changed once a reader has built them; what normalises or merges them builds new ones, which carry the spots along.
So an error found at the very end, in a value that came from a suite's defaults, still names the suite's line.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic

__all__ = [
    "NOWHERE",
    "Map",
    "Seq",
    "Spot",
    "each_at",
    "in_file_order",
    "located",
    "merged",
    "plain",
    "problem_at",
    "shown",
    "spot_at",
    "type_name",
    "without_echoes",
]


class Spot(NamedTuple):
    """Where something was written, and how."""

    path: str = ""
    """The file as shown to people."""
    line: int | None = None
    """1-based."""
    column: int | None = None
    """1-based, in characters."""
    written: str | None = None
    """The text of a plain (unquoted) scalar as it stands in the file; None for everything else."""
    variable: str = ""
    """The variable or flag whose text gave the value. Its type was guessed, so the text is as good as the guess."""

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part not in ("", None))


NOWHERE = Spot()
"""The spot of data that nobody wrote in a file."""


class Map(dict[str, Any]):
    """A mapping with the spots of its keys and values."""

    __slots__ = ("at", "keys_at", "values_at")

    def __init__(self, at: Spot = NOWHERE) -> None:
        super().__init__()
        self.at = at
        self.keys_at: dict[str, Spot] = {}
        self.values_at: dict[str, Spot] = {}

    def put(self, key: str, value: Any, key_at: Spot, value_at: Spot) -> None:
        """Set an entry with its spots."""
        self[key] = value
        self.keys_at[key] = key_at
        self.values_at[key] = value_at

    def entries(self) -> Iterator[tuple[str, Any, Spot, Spot]]:
        """Every (key, value, spot of the key, spot of the value)."""
        for key, value in self.items():
            yield key, value, self.keys_at[key], self.values_at[key]

    def without(self, *keys: str) -> Map:
        """A copy that lacks these keys."""
        result = Map(self.at)
        for entry in self.entries():
            if entry[0] not in keys:
                result.put(*entry)
        return result

    def having(self, key: str, value: Any, key_at: Spot | None = None, value_at: Spot | None = None) -> Map:
        """A copy in which `key` has `value`; without spots it stands where the mapping stands."""
        result = self.without()
        result.put(key, value, key_at or self.keys_at.get(key, self.at), value_at or self.values_at.get(key, self.at))
        return result


class Seq(list[Any]):
    """A list with the spots of its values."""

    __slots__ = ("at", "values_at")

    def __init__(self, at: Spot = NOWHERE) -> None:
        super().__init__()
        self.at = at
        self.values_at: list[Spot] = []

    def put(self, value: Any, value_at: Spot) -> None:
        """Add a value with its spot."""
        self.append(value)
        self.values_at.append(value_at)


def located(value: Any, at: Spot) -> Any:
    """Plain data as located data, all of it standing at one spot."""
    if isinstance(value, dict):
        mapping = Map(at)
        for key, item in value.items():
            mapping.put(key, located(item, at), at, at)
        return mapping
    if isinstance(value, (list, tuple)):
        sequence = Seq(at)
        for item in value:
            sequence.put(located(item, at), at)
        return sequence
    return value


def plain(value: Any) -> Any:
    """Located data as plain dicts and lists."""
    kind = type(value)
    if kind is Map:
        return {key: item if type(item) is str else plain(item) for key, item in value.items()}
    if kind is Seq:
        return [item if type(item) is str else plain(item) for item in value]
    return value


def merged(below: Any, above: Any) -> Any:
    """`above` over `below`: mappings merge deeply, everything else is replaced."""
    if not (isinstance(below, Map) and isinstance(above, Map)):
        return above
    result = Map(above.at)
    for entry in below.entries():
        result.put(*entry)
    for key, value, key_at, value_at in above.entries():
        result.put(key, merged(below.get(key), value), key_at, value_at)
    return result


def spot_at(value: Any, path: Sequence[str | int], default: Spot = NOWHERE) -> tuple[Spot, Any, tuple[str | int, ...]]:
    """The deepest value on `path`: (its spot, itself, the parts of `path` that exist).

    Parts that lead nowhere are passed over: validation names alternatives and missing keys in its paths.
    """
    spot = value.at if isinstance(value, (Map, Seq)) else default
    found: list[str | int] = []
    for part in path:
        if isinstance(value, Map) and part in value:
            spot, value = value.values_at[str(part)], value[str(part)]
        elif isinstance(value, Seq) and isinstance(part, int) and part < len(value):
            spot, value = value.values_at[part], value[part]
        else:
            continue
        found.append(part)
    return spot, value, tuple(found)


def each_at(value: Any, pattern: Sequence[str], spot: Spot = NOWHERE) -> Iterator[tuple[Any, Spot]]:
    """Every (value, spot) that `pattern` leads to; `*` stands for all entries of a mapping or list."""
    if not pattern:
        yield value, spot
    elif pattern[0] == "*" and isinstance(value, Map):
        for _, item, _, at in value.entries():
            yield from each_at(item, pattern[1:], at)
    elif pattern[0] == "*" and isinstance(value, Seq):
        for item, at in zip(value, value.values_at, strict=True):
            yield from each_at(item, pattern[1:], at)
    elif isinstance(value, Map) and pattern[0] in value:
        yield from each_at(value[pattern[0]], pattern[1:], value.values_at[pattern[0]])


def problem_at(spot: Spot, rule: str, message: str, hint: str = "", severity: str = "error") -> Diagnostic:
    """A diagnostic about what stands at `spot`; whatever was written is shown escaped, on one line."""
    return Diagnostic(rule, readable(message), readable(spot.path), spot.line, spot.column, readable(hint), severity)


_UNREAD = frozenset(
    {
        "alias-cycle",
        "custom-tag",
        "json-syntax",
        "key-not-text",
        "leading-zero",
        "missing-column",
        "not-finite",
        "number-too-long",
        "unknown-alias",
        "wrong-tag",
    }
)
"""Rules of what a reader could make no sense of, and went on after: a stand-in took its place."""


def without_echoes(problems: Iterable[Diagnostic]) -> list[Diagnostic]:
    """The problems, each once, without those that were only found in the stand-in of a value that was not read."""
    found = list(dict.fromkeys(problems))
    unread = {(each.path, each.line, each.column) for each in found if each.rule in _UNREAD}
    return [each for each in found if each.rule in _UNREAD or (each.path, each.line, each.column) not in unread]


def in_file_order(diagnostic: Diagnostic) -> tuple[str, int, int]:
    """Sorting key: by file, line and column."""
    return diagnostic.path, diagnostic.line or 0, diagnostic.column or 0


def type_name(value: Any) -> str:
    """The kind of JSON data, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "a mapping" if isinstance(value, dict) else "a list"


def shown(value: Any, spot: Spot = NOWHERE) -> str:
    """An offending value as written, with its type; short, on one line, escaped."""
    if isinstance(value, (dict, list)):
        return type_name(value)
    if isinstance(value, str):
        return f"{_short(repr(value))} (text)"
    written = spot.written if spot.written is not None else json.dumps(value)
    return f"{_short(written)} ({type_name(value)})" if written else "nothing (null)"


def _short(text: str) -> str:
    text = readable(text)
    return text if len(text) <= 60 else text[:57] + "..."
