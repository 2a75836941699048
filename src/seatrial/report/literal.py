"""Text from agents, judges and cases, made safe to show: every character literal, none able to steer a terminal."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

from seatrial.core.encoding import SHOWN, dumps, shortened

__all__ = ["inline", "lines", "literal", "value_text"]

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_TAB = " " * 4


def literal(text: str) -> str:
    """`text` on one line: control, format (bidirectional, invisible), unassigned and surrogate characters escaped.

    Spaces of any width stay; a line feed becomes `\\n`.
    """
    if text.isprintable():
        return text
    return "".join(_escaped(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "backslashreplace").decode("ascii")


def lines(text: str) -> list[str]:
    """`text` as literal lines: line ends kept as such, tabs as spaces, anything else escaped."""
    return [literal(line.replace("\t", _TAB)) for line in text.replace("\r\n", "\n").split("\n")]


def value_text(value: Any) -> str:
    """JSON data as text: a text itself, anything else as JSON on one line."""
    return value if isinstance(value, str) else dumps(value)


def inline(value: Any, limit: int = SHOWN) -> str:
    """JSON data on one literal line, texts in quotes, cut after `limit` characters."""
    if isinstance(value, str):
        return literal(_spaced(shortened(value, limit)))
    return literal(shortened(_spaced(value), limit))


def _spaced(value: Any) -> str:
    """JSON with blanks, where a long line can be broken."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
