"""Writing results to files, whole or not at all."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from seatrial.core.encoding import indented
from seatrial.errors import StorageError
from seatrial.report.lazily import Lazily
from seatrial.store.atomic import write_parts

__all__ = ["check_writable", "json_parts", "json_text", "write_json", "write_results"]


def json_text(data: Any) -> str:
    """JSON data as the text of a file: two spaces a level, one line feed at the end."""
    return "".join(json_parts(data))


def json_parts(data: Any) -> Iterator[str]:
    """The same in pieces; rows that are made as they are looked at are written as they are made."""
    yield from _filled(*_encoded(data, 0))
    yield "\n"


_TOGETHER = 64
"""Rows that are written in one piece."""
_MARK = secrets.token_hex(16)
_PLACE = re.compile(f'"{_MARK}([0-9]+)"')
"""What stands in a text for rows that are yet to be made."""


def _encoded(data: Any, depth: int) -> tuple[str, list[Lazily]]:
    """The text as it stands `depth` levels down, with marks for the rows given beside it."""
    rows: list[Lazily] = []

    def mark(value: Any) -> str:
        if not isinstance(value, Lazily):
            raise TypeError(f"{type(value).__name__} is no JSON data")
        rows.append(value)
        return f"{_MARK}{len(rows) - 1}"

    for _ in range(depth):  # lists around it indent it, and are cut off
        data = [data]
    text = indented(data, mark)
    return text[depth * (depth + 3) : len(text) - depth * (depth + 1)], rows


def _filled(text: str, rows: Sequence[Lazily]) -> Iterator[str]:
    """The text in pieces, with rows for its marks."""
    before, *rest = _PLACE.split(text) if rows else (text,)
    yield before
    for number, after in zip(rest[::2], rest[1::2], strict=True):
        yield from _listed(rows[int(number)], _depth(before))
        yield after
        before = after


def _depth(before: str) -> int:
    """How many levels down the line stands that a text ends in."""
    line = before.rpartition("\n")[2]
    return (len(line) - len(line.lstrip(" "))) // 2


def _listed(rows: Lazily, depth: int) -> Iterator[str]:
    before, left, end = "[", iter(rows), "\n" + "  " * depth + "]"
    while batch := list(islice(left, _TOGETHER)):
        text, below = _encoded(batch, depth)
        yield before
        yield from _filled(text[1 : -len(end)], below)
        before = ","
    yield "[]" if before == "[" else end


def write_json(path: Path, data: Any) -> Path:
    """Write JSON data; a reader finds the old file or the new one. StorageError naming the path when that fails."""
    write_parts(path, json_parts(data))
    return path


def write_results(folder: Path, results: dict[str, Any], once: Callable[[], object] = tuple) -> Path:
    """Write a summary as `results.json` of a run folder; gives its path.

    `once` is called when all of it is written, but not yet in its place; what it raises leaves things as they were.
    """
    path = folder / "results.json"
    write_parts(path, _then(json_parts(results), once))
    return path


def _then(parts: Iterator[str], once: Callable[[], object]) -> Iterator[str]:
    yield from parts
    once()


def check_writable(path: Path) -> None:
    """Raise StorageError when a file at `path` could not be written, without writing one.

    For paths that are named before a run: the mistake shows before the first agent call.
    """
    if path.is_dir():
        raise StorageError(f"{path}: is a folder; name a file")
    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise StorageError(f"{path}: cannot be written ({folder} is no folder)")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise StorageError(f"{path}: cannot be written (no permission)")
