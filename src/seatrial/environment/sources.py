"""The files that a fixture is made from must stay as they were: every reset starts from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from seatrial.core.fixture import FixtureSpec

__all__ = ["Sources"]

Stamp = tuple[int, int]
"""Time of the last change (ns) and size in bytes; of a folder its time alone, which entries coming and going move."""


@dataclass(frozen=True)
class Sources:
    """Files and folders of a fixture with their stamps at the time when the run was planned."""

    folder: Path
    """The fixture's own, which names are relative to."""
    stamps: Mapping[Path, Stamp | None]

    @classmethod
    def of(cls, spec: FixtureSpec) -> Sources:
        """Of everything that a trial's reset reads."""
        folder = Path(spec.folder)
        return cls(folder, {path: _stamp(path) for path in _read_by(spec, folder)})

    def changed(self) -> list[str]:
        """What is not as it was, by name; a look at each file's stamp, not into it."""
        return [self._name(path) for path, stamp in self.stamps.items() if _stamp(path) != stamp]

    def _name(self, path: Path) -> str:
        return path.relative_to(self.folder).as_posix() if path.is_relative_to(self.folder) else path.name


def _read_by(spec: FixtureSpec, folder: Path) -> Iterator[Path]:
    if spec.database is not None:
        yield folder / spec.database.sqlite
    if spec.files is not None:
        yield folder / spec.files
        yield from (path for path in sorted((folder / spec.files).rglob("*")) if "__pycache__" not in path.parts)
    if spec.function is not None:
        yield folder.parent / Path(spec.function.rpartition(":")[0]).name


def _stamp(path: Path) -> Stamp | None:
    """None: it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, 0 if path.is_dir() else found.st_size
