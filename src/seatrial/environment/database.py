"""A trial's own SQLite database: a copy of a template that is built once per content."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from seatrial.environment.failure import FixtureError
from seatrial.environment.folder import TrialFolder

__all__ = ["Database", "Rows", "build_database", "is_intact", "read_only", "template"]

_MAGIC = b"SQLite format 3\x00"
_SIDECARS = ("-wal", "-journal")
_NO_WAITING = "PRAGMA synchronous = OFF"
"""A trial's database need not survive a power failure."""
_TEMPLATES = threading.Lock()
_SEAL = 1_000_000_000 * 10**9
"""The time of change (ns) that every template carries: whoever writes to one moves it."""


class Rows(list[tuple[Any, ...]]):
    """The rows of a finished statement; also read like a cursor."""

    def __init__(self, cursor: sqlite3.Cursor) -> None:
        super().__init__(cursor.fetchall())
        self.columns: tuple[str, ...] = tuple(column[0] for column in cursor.description or ())
        self.rowcount = cursor.rowcount
        self.lastrowid = cursor.lastrowid
        self._next = 0

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row, or None after the last."""
        if self._next >= len(self):
            return None
        self._next += 1
        return self[self._next - 1]

    def fetchall(self) -> list[tuple[Any, ...]]:
        """The rows not fetched yet."""
        rest, self._next = self[self._next :], len(self)
        return rest


class Database(os.PathLike[str]):
    """The database of one trial, usable from any thread.

    A path (`sqlite3.connect(trial.database)`), a source of connections (`connect`), and one connection of its own
    that commits each statement (`execute`, `executescript`). The file is made when first touched: a copy of the
    fixture's, or an empty database.
    """

    def __init__(self, folder: TrialFolder, template: Callable[[], Path] | None = None) -> None:
        self._folder = folder
        self._template = template
        self._lock = threading.RLock()
        self._file: Path | None = None
        self._shared: sqlite3.Connection | None = None
        self._handles: list[sqlite3.Connection] = []

    @property
    def path(self) -> Path:
        """The file, made now if it was not. Raises TrialOver after the trial."""
        with self._lock:
            file = self._folder.path / "database.db"
            if self._file is None:
                if self._template is None:
                    file.touch()
                else:
                    shutil.copyfile(self._template(), file)
                self._file = file
            return file

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    @property
    def made(self) -> bool:
        """Whether anybody has touched it."""
        return self._file is not None

    def connect(self, **options: Any) -> sqlite3.Connection:
        """A new connection (options as for `sqlite3.connect`), closed when the trial ends if it still is open."""
        handle: sqlite3.Connection = sqlite3.connect(self.path, **{"check_same_thread": False, **options})
        with self._lock:
            self._handles.append(handle)
        return handle

    def execute(self, sql: str, parameters: Iterable[Any] | Mapping[str, Any] = ()) -> Rows:
        """Run one statement, committed at once, and give its rows."""
        bound = parameters if isinstance(parameters, Mapping) else tuple(parameters)
        with self._lock:
            return Rows(self._own().execute(sql, bound))

    def executescript(self, script: str) -> None:
        """Run several statements, committed."""
        with self._lock:
            self._own().executescript(script)

    def load(self, source: str | os.PathLike[str]) -> None:
        """Fill it anew from a .sql script or a database file. Raises FixtureError when that cannot be read."""
        with self._lock:
            self.close()
            build_database(Path(source), self._folder.path / "database.db")
            self._file = self._folder.path / "database.db"

    def _own(self) -> sqlite3.Connection:
        if self._shared is None:
            self._shared = self.connect(isolation_level=None)
            self._shared.execute(_NO_WAITING)
        return self._shared

    def close(self) -> None:
        """Close every connection made here; what was not committed did not happen."""
        with self._lock:
            handles, self._handles, self._shared = self._handles, [], None
        for handle in handles:
            handle.close()


def template(source: Path, root: Path, digest: str = "") -> Path:
    """The template database made from `source`, built below `root` once per content, whoever asks first.

    One that somebody has written to is built anew, so that every trial starts from what the fixture says. `digest`
    names the content; empty = it is computed from the bytes. Raises FixtureError when it cannot be built.
    """
    try:
        key = hashlib.sha256(f"{source}\0{digest}".encode() if digest else source.read_bytes()).hexdigest()
    except OSError as error:
        raise FixtureError(f"database {source.name}: {error.strerror or error}") from error
    built = root / f"template-{key}.db"
    with _TEMPLATES:
        if not is_intact(built):
            fresh = built.with_suffix(f".{os.getpid()}.new")  # a process a trial: others may be building it too
            build_database(source, fresh)
            os.utime(fresh, ns=(_SEAL, _SEAL))
            fresh.replace(built)
    return built


def is_intact(template: Path) -> bool:
    """Whether a template is there, and as it was built."""
    try:
        return template.stat().st_mtime_ns == _SEAL
    except OSError:
        return False


def build_database(source: Path, target: Path) -> None:
    """Make the database file `target` from a .sql script or a database file, all of it or nothing.

    A database file may have a write-ahead log or a journal beside it: what is committed there is taken in.
    """
    with tempfile.TemporaryDirectory(prefix="build-", dir=target.parent) as folder:
        fresh = Path(folder, "fresh.db")
        try:
            if _is_database(source):
                _copy_with_sidecars(source, fresh)
                script = "PRAGMA wal_checkpoint(TRUNCATE); PRAGMA schema_version;"
            else:
                script = source.read_text(encoding="utf-8-sig")
            _run_script(fresh, script)
            fresh.replace(target)
        except (OSError, UnicodeDecodeError, sqlite3.Error) as error:
            raise FixtureError(f"database {source.name}: {error}") from error


def _is_database(source: Path) -> bool:
    with source.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC or source.suffix.lower() in (".db", ".sqlite", ".sqlite3")


def _copy_with_sidecars(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)
    for ending in _SIDECARS:
        beside = source.with_name(source.name + ending)
        if beside.exists():
            shutil.copyfile(beside, target.with_name(target.name + ending))


def _run_script(file: Path, script: str) -> None:
    handle = sqlite3.connect(file)
    try:
        handle.execute(_NO_WAITING)
        handle.executescript(script)
        handle.commit()
    finally:
        handle.close()


def read_only(file: Path, spare: Path) -> sqlite3.Connection:
    """A connection that can only read what was committed.

    Where an agent left the file locked in the middle of a transaction, a copy below `spare` is read instead, in
    which SQLite rolls that transaction back.
    """
    handle = _open_read_only(file)
    try:
        handle.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        handle.close()
        if "locked" not in str(error):
            raise
    else:
        return handle
    copy = Path(tempfile.mkdtemp(prefix="observed-", dir=spare)) / file.name
    _copy_with_sidecars(file, copy)
    _run_script(copy, "PRAGMA schema_version;")
    return _open_read_only(copy)


def _open_read_only(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=0.2)
