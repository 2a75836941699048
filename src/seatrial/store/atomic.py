"""Writing a file so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from seatrial.errors import StorageError

__all__ = ["write_parts", "write_text"]


def write_text(path: Path, text: str, *, durable: bool = False) -> None:
    """Replace the file at `path` by `text` (UTF-8) in one step; StorageError naming the path when that fails.

    `durable`: it is on the disk when this returns, so that the end of the machine leaves the new file too.
    """
    write_parts(path, (text,), durable=durable)


def write_parts(path: Path, parts: Iterable[str], *, durable: bool = False) -> None:
    """The same with the text in pieces, which are written as they come. What making them raises passes through."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(parts)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
    finally:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            temporary.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Put the folder's names on the disk, where folders can be opened at all."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
