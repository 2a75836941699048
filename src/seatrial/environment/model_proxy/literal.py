"""JSON texts whose values change while all else stays as written: white space, digits, escapes, repeated keys."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from seatrial.core.encoding import dumps

__all__ = ["is_json", "with_values"]

_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*')
"""A text (a key, too) or a number."""


def is_json(text: str) -> bool:
    """Whether Python reads it as JSON."""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def with_values(text: str, change: Callable[[Any], Any]) -> str:
    """A JSON text with each of its texts, keys and numbers changed; what `change` gives back equal stays as written."""

    def changed(found: re.Match[str]) -> str:
        before = json.loads(found[0])
        after = change(before)
        return found[0] if after == before else dumps(after)

    return _VALUE.sub(changed, text)
