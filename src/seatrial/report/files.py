"""Writing results to files, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pydantic_core

from seatrial.core.encoding import dumps
from seatrial.errors import StorageError
from seatrial.store.atomic import write_text

__all__ = ["check_writable", "json_text", "write_json", "write_results"]


def json_text(data: Any) -> str:
    """JSON data as the text of a file: two spaces a level, one line feed at the end."""
    try:
        # the same text as `dumps`, seven times as fast: the standard encoder indents in Python
        return pydantic_core.to_json(data, indent=2).decode() + "\n"
    except pydantic_core.PydanticSerializationError:
        return dumps(data, indent=2) + "\n"  # lone surrogates, as escapes


def write_json(path: Path, data: Any) -> Path:
    """Write JSON data; a reader finds the old file or the new one. StorageError naming the path when that fails."""
    write_text(path, json_text(data))
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
