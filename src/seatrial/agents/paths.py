"""Paths into what an agent gives: names with dots and [numbers], such as `messages[-1].content`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from seatrial.errors import UsageError

__all__ = ["check_path", "read_path"]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")


def check_path(path: str) -> None:
    """UsageError when a path cannot be read."""
    if "".join(step.group(0) for step in _STEP.finditer(path)) != path or not path:
        raise UsageError(f"{path!r} is not a path; write names and [numbers], such as messages[-1].content")


def read_path(value: Any, path: str) -> Any:
    """What stands at a dotted path with [index] parts, through mappings, sequences and attributes.

    Raises LookupError naming the part that is missing, UsageError when the path cannot be read.
    """
    check_path(path)
    for step in _STEP.finditer(path):
        value = _step(value, step[1], step[2], path)
    return value


def _step(value: Any, name: str | None, index: str | None, path: str) -> Any:
    try:
        if name is None:
            return value[int(index or 0)]
        return value[name] if isinstance(value, Mapping) else getattr(value, name)
    except (LookupError, AttributeError, TypeError) as error:
        raise LookupError(f"{path}: there is no {name or f'[{index}]'} in {type(value).__name__}") from error
