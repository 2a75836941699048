"""Bytes of a file that someone wrote, as text: UTF-8 whatever the locale, with or without a byte-order mark.

Only regular files are read (behind symbolic links too): a pipe, socket or device would block or never end.
"""

from __future__ import annotations

import codecs
import hashlib
import stat
from pathlib import Path

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError

__all__ = [
    "check_inside",
    "decoded",
    "file_digest",
    "is_lfs_pointer",
    "is_there",
    "problem_with_kind",
    "read_text",
    "shown_path",
    "unreadable",
]

_LFS = b"version https://git-lfs.github.com/spec/"
_WIDE = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def shown_path(path: Path, root: Path) -> str:
    """`path` as people see it: relative to the project where it lies inside, with forward slashes."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


def read_text(path: Path, shown: str = "") -> str:
    """The text of a file without its byte-order mark.

    Raises InputError when it cannot be read, is no regular file, is a Git LFS pointer or is not UTF-8.
    """
    shown = shown or path.as_posix()
    try:
        problem = problem_with_kind(path)
        data = path.read_bytes() if problem is None else b""
    except OSError as error:
        raise InputError(unreadable(error, shown)) from error
    if problem is not None:
        raise InputError(Diagnostic("no-regular-file", problem, readable(shown)))
    return decoded(data, shown)


def unreadable(error: OSError, shown: str) -> Diagnostic:
    """The diagnostic of a file or folder that the system does not let us read."""
    message = f"cannot be read: {error.strerror or type(error).__name__}"
    return Diagnostic("unreadable-file", message, readable(shown))


def is_there(path: Path, shown: str = "") -> bool:
    """Whether there is anything at `path`, whatever its kind; a broken link is something too.

    Raises InputError when the folder that would hold it cannot be looked into.
    """
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise InputError(unreadable(error, shown or path.as_posix())) from error
    return True


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def problem_with_kind(path: Path) -> str | None:
    """What a path is where it is no regular file, as a sentence; None for a file. Raises OSError."""
    kind = stat.S_IFMT(path.stat().st_mode)
    return None if kind == stat.S_IFREG else f"is no regular file but {_KINDS.get(kind, 'something else')}"


def decoded(data: bytes, shown: str = "") -> str:
    """UTF-8 bytes as text without a byte-order mark. Raises InputError naming the line of the first wrong byte."""
    if is_lfs_pointer(data):
        hint = "run `git lfs pull` to get the file itself"
        raise InputError(Diagnostic("lfs-pointer", "this is a Git LFS pointer, not the file", shown, 1, hint=hint))
    if data.startswith(_WIDE):
        raise InputError(Diagnostic("not-utf-8", "this file is UTF-16 or UTF-32", shown, 1, hint="save it as UTF-8"))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise InputError(Diagnostic("not-utf-8", message, shown, line, hint="save the file as UTF-8")) from error


def is_lfs_pointer(data: bytes) -> bool:
    """Whether these are the bytes of a Git LFS pointer, which stands where the file was not fetched."""
    return data.removeprefix(codecs.BOM_UTF8).startswith(_LFS)


def file_digest(path: Path) -> tuple[str, int]:
    """SHA-256 (64 hex digits) and size in bytes of a file.

    Raises OSError; ValueError for a Git LFS pointer and for what is no regular file.
    """
    problem = problem_with_kind(path)
    if problem is not None:
        raise ValueError(problem)
    with path.open("rb") as stream:
        if is_lfs_pointer(stream.read(100)):
            raise ValueError("is a Git LFS pointer, not the file; run `git lfs pull`")
        stream.seek(0)
        return hashlib.file_digest(stream, "sha256").hexdigest(), stream.tell()


def check_inside(folder: Path, name: str, *roots: Path) -> Path:
    """The path that `name` means in `folder`. Raises ValueError when it is absolute or leaves every one of `roots`."""
    if "\0" in name or not name.strip():
        raise ValueError(f"{readable(name)!r} is not a path")
    path = (folder / name).resolve()
    if Path(name).is_absolute() or not any(path.is_relative_to(root.resolve()) for root in roots):
        raise ValueError(f"{readable(name)!r} lies outside the project")
    return path
