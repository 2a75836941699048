"""Writing results to files, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pydantic_core

from seatrial.core.encoding import dumps
from seatrial.errors import StorageError
from seatrial.report.lazily import Lazily
from seatrial.store.atomic import write_parts

__all__ = ["check_writable", "json_parts", "json_text", "write_json", "write_results"]


def json_text(data: Any) -> str:
    """JSON data as the text of a file: two spaces a level, one line feed at the end."""
    return "".join(json_parts(data))


def json_parts(data: Any) -> Iterator[str]:
    """The same in pieces; rows that are made as they are looked at are written as they are made."""
    yield from _parts(data, "\n")
    yield "\n"


def _parts(data: Any, margin: str) -> Iterator[str]:
    """`margin` is a line feed and the indentation of the line that the data begins in."""
    if isinstance(data, Lazily):
        yield from _several((("", row) for row in data), margin, "[]")
    elif _has_rows(data):
        yield from _several(((f"{dumps(name)}: ", value) for name, value in data.items()), margin, "{}")
    else:
        yield _indented(data).replace("\n", margin)


def _has_rows(data: Any) -> bool:
    """Whether rows are to be made in it."""
    return type(data) is dict and any(type(value) is Lazily or _has_rows(value) for value in data.values())


def _several(items: Iterable[tuple[str, Any]], margin: str, brackets: str) -> Iterator[str]:
    before = brackets[0]
    for name, value in items:
        yield f"{before}{margin}  {name}"
        yield from _parts(value, margin + "  ")
        before = ","
    yield brackets if before == brackets[0] else margin + brackets[1]


def _indented(data: Any) -> str:
    try:
        # the same text as `dumps`, seven times as fast: the standard encoder indents in Python
        return pydantic_core.to_json(data, indent=2).decode()
    except pydantic_core.PydanticSerializationError:
        return dumps(data, indent=2)  # lone surrogates, as escapes


def write_json(path: Path, data: Any) -> Path:
    """Write JSON data; a reader finds the old file or the new one. StorageError naming the path when that fails."""
    write_parts(path, json_parts(data))
    return path


def write_results(folder: Path, results: dict[str, Any]) -> Path:
    """Write a summary as `results.json` of a run folder; gives its path."""
    return write_json(folder / "results.json", results)


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
