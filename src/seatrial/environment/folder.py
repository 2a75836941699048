"""The folder that a trial lives in, made when first touched, and removing folders for good."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from seatrial.environment.entries import Lock
from seatrial.environment.failure import FixtureError, TrialOver

__all__ = ["TrialFolder", "copy_into", "remove_tree"]

_OWNER_ALL = stat.S_IRWXU


class TrialFolder:
    """The folder of one trial. `path` makes it; once removed it is never made again."""

    made = False
    """Whether anybody has touched it."""
    _path: Path | None = None
    _removed = False

    def __init__(self, parent: Callable[[], Path] | None, lock: Lock) -> None:
        """`parent` gives the folder that it is made in; None: where the system keeps temporary files."""
        self._parent = parent
        self._lock = lock

    @property
    def path(self) -> Path:
        """Absolute. Raises TrialOver after the trial."""
        with self._lock:
            if self._removed:
                raise TrialOver("the trial is over: its folder and database are gone")
            if self._path is None:
                parent = None if self._parent is None else self._parent()
                prefix = f"trial-{os.getpid()}-"  # whoever ends this process knows what to remove
                self._path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent)).resolve()
                self.made = True
            return self._path

    def remove(self) -> None:
        """Remove it with all it holds. Raises FixtureError when something in it cannot be removed."""
        with self._lock:
            self._removed = True
            path, self._path, self.made = self._path, None, False
        if path is not None:
            remove_tree(path)


def copy_into(source: Path, target: Path) -> None:
    """Copy a folder's contents, or one file, into the folder `target` (made when missing)."""
    if source.is_dir():
        shutil.copytree(source, target, dirs_exist_ok=True)
    else:
        target.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target / source.name)


def remove_tree(folder: Path, attempts: int = 3) -> None:
    """Remove a folder, read-only files and folders in it too.

    Tries again where a process that has not ended yet still writes into it. Raises FixtureError in the end.
    """
    problem: OSError | None = None
    for _ in range(attempts):
        try:
            shutil.rmtree(folder)
        except FileNotFoundError:
            if not folder.exists():
                return
        except OSError as error:
            problem = error
            _make_writable(folder)
        else:
            return
    raise FixtureError(f"could not remove the folder {folder}: {problem}") from problem


def _make_writable(folder: Path) -> None:
    folder.chmod(_OWNER_ALL)
    for parent, folders, files in os.walk(folder):
        for name in (*folders, *files):
            path = Path(parent, name)
            if not path.is_symlink():
                path.chmod(_OWNER_ALL)
