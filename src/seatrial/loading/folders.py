"""Every file below a folder, in a stable order, with whatever cannot be looked into named and never left out.

Symbolic links are followed, to folders too. A link that leads back to a folder it lies in, or nowhere, is an error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from seatrial.errors import Diagnostic, InputError
from seatrial.loading.files import shown_path, unreadable
from seatrial.loading.located import Spot, problem_at

__all__ = ["files_below", "names_in"]

Identity = tuple[int, int]
"""Device and inode: the same folder, whatever it is called."""


def files_below(
    folder: Path, root: Path, problems: list[Diagnostic], *, skipped: Callable[[str], bool] = lambda _: False
) -> Iterator[str]:
    """The files in `folder` and below it, as sorted paths relative to it, with forward slashes.

    Names that are `skipped` are passed over, with what is in them. What is wrong is added to `problems`; paths in them
    are shown relative to `root`.
    """
    yield from sorted(_Walk(root, problems, skipped).below(folder, "", {}))


def names_in(folder: Path, root: Path) -> list[str]:
    """The names in one folder, sorted; none where there is no such folder. Raises InputError."""
    try:
        return sorted(path.name for path in folder.iterdir())
    except FileNotFoundError:
        return []
    except OSError as error:
        raise InputError(unreadable(error, shown_path(folder, root))) from error


@dataclass(frozen=True)
class _Walk:
    """One walk through a tree of folders."""

    root: Path
    problems: list[Diagnostic]
    skipped: Callable[[str], bool]

    def below(self, folder: Path, prefix: str, above: dict[Identity, Path]) -> Iterator[str]:
        """The files below `folder`, whose path from the top is `prefix`; `above` are the folders that it lies in."""
        try:
            status = folder.stat()
            identity = (status.st_dev, status.st_ino)
            if identity in above:
                message = f"the folder is {self._shown(above[identity])} again, in which it lies: a loop of links"
                self._refuse(folder, "folder-loop", message)
                return
            with os.scandir(folder) as entries:
                found = [entry for entry in entries if not self.skipped(entry.name)]
        except OSError as error:
            self.problems.append(unreadable(error, self._shown(folder)))
            return
        for entry in found:
            if not self._leads_somewhere(entry):
                continue
            if entry.is_dir():
                yield from self.below(Path(entry.path), f"{prefix}{entry.name}/", {**above, identity: folder})
            else:
                yield f"{prefix}{entry.name}"

    def _leads_somewhere(self, entry: os.DirEntry[str]) -> bool:
        try:
            if entry.is_symlink():
                entry.stat()
        except OSError as error:
            self._refuse(Path(entry.path), "broken-link", f"the symbolic link cannot be followed: {error.strerror}")
            return False
        return True

    def _refuse(self, path: Path, rule: str, message: str) -> None:
        self.problems.append(problem_at(Spot(self._shown(path)), rule, message, "remove the link"))

    def _shown(self, path: Path) -> str:
        return shown_path(path, self.root)
