"""Writing a file so that a reader finds the old one or the new one, never half of one."""

from __future__ import annotations

import contextlib
import secrets
from pathlib import Path

from seatrial.errors import StorageError

__all__ = ["write_text"]


def write_text(path: Path, text: str) -> None:
    """Replace the file at `path` by `text` (UTF-8) in one step; StorageError naming the path when that fails."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):  # the first error is the one to tell
            temporary.unlink()
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
