"""Reading what came from anywhere: a run folder may be another's, damaged, or made to mislead.

Only regular files are opened: a pipe would be waited for. What can be wrong with JSON text is one kind of error.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from seatrial.errors import StorageError

__all__ = ["content", "descriptor", "opened", "parsed", "unreadable"]

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
"""Without O_NONBLOCK, opening a pipe waits for somebody to write to it."""


def descriptor(path: Path) -> int:
    """A descriptor of a regular file, for reading. Raises OSError, also for what is no regular file."""
    try:
        found = os.open(path, _FLAGS)
    except ValueError as error:  # a NUL in its name
        raise OSError(errno.EINVAL, "is no name of a file") from error
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "is no regular file")
    return found


def opened(path: Path) -> BinaryIO:
    """A regular file, open for reading. Raises OSError, also for what is no regular file."""
    return os.fdopen(descriptor(path), "rb")


def content(path: Path) -> bytes:
    """What a regular file holds. StorageError when it cannot be read."""
    try:
        with opened(path) as file:
            return file.read()
    except (OSError, MemoryError) as error:
        raise unreadable(path, error) from error


def unreadable(path: Path, error: OSError | MemoryError) -> StorageError:
    """What to raise for a file that cannot be read."""
    why = "not enough memory" if isinstance(error, MemoryError) else error.strerror or error
    return StorageError(f"{path}: cannot be read ({why})")


def parsed(text: bytes) -> Any:
    """The data of JSON text. Raises ValueError saying what is wrong with it, in words that follow its place."""
    try:
        return json.loads(text.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError as error:
        raise ValueError("is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("is nested too deeply to be read") from error
    except MemoryError as error:
        raise ValueError("is too large for the memory there is") from error
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from error
