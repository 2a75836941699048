"""Writing results to files, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import chain, groupby, islice
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
        yield from _bracketed(_rows(data, margin + "  "), margin, "[]")
    elif _has_rows(data):
        yield from _bracketed(_members(data, margin + "  "), margin, "{}")
    else:
        yield _indented(data).replace("\n", margin)


def _has_rows(data: Any) -> bool:
    """Whether rows are to be made in it."""
    return type(data) is dict and any(type(value) is Lazily or _has_rows(value) for value in data.values())


def _bracketed(items: Iterable[Iterable[str]], margin: str, brackets: str) -> Iterator[str]:
    before = brackets[0]
    for parts in items:
        yield before
        yield from parts
        before = ","
    yield brackets if before == brackets[0] else margin + brackets[1]


_TOGETHER = 64
"""Rows that are written in one piece."""


def _rows(rows: Lazily, margin: str) -> Iterator[Iterable[str]]:
    if rows.nested:
        return (chain((margin,), _parts(row, margin)) for row in rows)
    return (_inner(batch, margin) for batch in _batches(iter(rows)))


def _batches(rows: Iterator[Any]) -> Iterator[list[Any]]:
    while batch := list(islice(rows, _TOGETHER)):
        yield batch


def _members(data: dict[str, Any], margin: str) -> Iterator[Iterable[str]]:
    for nested, same in groupby(data.items(), key=lambda item: isinstance(item[1], Lazily) or _has_rows(item[1])):
        if nested:
            yield from (chain((f"{margin}{dumps(name)}: ",), _parts(value, margin)) for name, value in same)
        else:
            yield _inner(dict(same), margin)


def _inner(data: Any, margin: str) -> Iterable[str]:
    """The members of a mapping or list, which is not empty, without its brackets."""
    yield margin
    yield _indented(data)[4:-2].replace("\n  ", margin)


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
