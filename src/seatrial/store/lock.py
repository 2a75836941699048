"""One writer a run folder: a lock file with the writer's process id.

The lock itself is the operating system's, so it ends with its process, however that ends: a file left behind by SIGKILL
locks nothing. It belongs to the process alone: a child that the agent forked, and that outlives the run, does not hold
it. The id in the file is only there to be told.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import threading
from pathlib import Path

from seatrial.errors import StorageError, UsageError

__all__ = ["LOCK_NAME", "FolderLock"]

LOCK_NAME = "run.lock"

_held: set[Path] = set()
"""Locks of this process: the operating system does not tell two runs of one process apart."""
_guard = threading.Lock()

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        os.lseek(descriptor, 1 << 20, os.SEEK_SET)  # beyond the text, which others must be able to read
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)
else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class FolderLock:
    """Held by this process from construction to `release`.

    Raises UsageError when a live process holds the folder, StorageError when the file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder.resolve() / LOCK_NAME
        with _guard:
            if self._path in _held:
                raise _taken(folder, str(os.getpid()))
            self._descriptor = _locked(self._path, folder)
            _held.add(self._path)
        with contextlib.suppress(OSError):  # only there to be told; a full disk shows with the next file
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let the folder go and remove the file; once released, nothing more happens."""
        with _guard:
            if self._path not in _held:
                return
            with contextlib.suppress(OSError):
                self._path.unlink()
            os.close(self._descriptor)
            if sys.platform == "win32":  # which removes no open file
                with contextlib.suppress(OSError):
                    self._path.unlink()
            _held.discard(self._path)


def _locked(path: Path, folder: Path) -> int:
    """A descriptor of the lock file with the lock on it."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error
        try:
            _take(descriptor)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN, errno.EDEADLK):
                owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
                os.close(descriptor)
                raise _taken(folder, owner) from None
            return descriptor  # a file system that knows no locks: better without than not at all
        if _is_at(descriptor, path):
            return descriptor
        os.close(descriptor)  # its holder released it, and removed it, between our two calls


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _taken(folder: Path, owner: str) -> UsageError:
    who = f"process {owner}" if owner else "another process"
    return UsageError(f"{folder}: {who} is still writing this run; wait for it, or end it and resume")
