"""What a model was told of a tool call, beside what the tool gave."""

from __future__ import annotations

import json
from typing import Any

from seatrial.core.encoding import to_json

__all__ = ["says_the_same"]


def says_the_same(told: Any, result: Any) -> bool:
    """Whether the model was told the result and nothing else: as it is, as text or as JSON."""
    if told == result or told == str(result):
        return True
    try:
        return bool(json.loads(told) == to_json(result))
    except (TypeError, ValueError):
        return False
