"""The two growing files of a run, `traces.jsonl.zst` and `trials.jsonl`: appending, syncing, repairing.

A record is a line, whole when it ends with a line feed; it says where its trace begins and how long that is. A trial
has finished when its record is whole and its trace does not reach beyond the end of its file. An append is one
unbuffered write, so the end of the process, however it comes, loses nothing that was appended. Against the end of the
machine the files are synced in groups, by a thread of their own, at most COMMIT_EVERY_S after the first record of a
group and once at the end: never once a trial. What is torn is at the end, and is cut off before anything is appended;
where a folder holds what no crash can leave, nothing is cut off.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from seatrial.errors import StorageError, UsageError
from seatrial.store.frames import MAGIC, TRACES, absence, is_beginning
from seatrial.store.outputs import bytes_digest
from seatrial.store.reading import opened, parsed, unreadable

__all__ = ["COMMIT_EVERY_S", "FIRST_LINK", "TRACES", "TRIALS", "Journal", "Line", "finished_lines", "line_digest"]

TRIALS = "trials.jsonl"

COMMIT_EVERY_S = 0.5
"""How much of a run the end of the machine may take with it."""

FIRST_LINK = "sha256:" + "0" * 64
"""What the first line of the chain holds as the digest of the line before."""

Sync = Callable[[int], None]
"""Puts what was written to a descriptor on the disk: `os.fsync`, or its double."""


def line_digest(line: bytes) -> str:
    """`sha256:...` of a line without its line feed."""
    return "sha256:" + hashlib.sha256(line).hexdigest()


# --- reading ---------------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """One whole line."""

    place: str
    """`file:number`, for messages."""
    at: int
    """Position in the file, in bytes."""
    text: bytes
    """With its line feed."""
    data: Any


def finished_lines(folder: Path, *, ended: bool = False) -> Iterator[Line]:
    """The lines of the trials that finished, in order: those that are whole, and whose traces are whole.

    Raises StorageError naming a line before the last that is no JSON object, and one whose trace reaches beyond the
    end of the traces where no crash took it: one of a later trial does not, or the run has `ended`. Where the traces
    were taken away altogether, the trials still stand.
    """
    traces = folder / TRACES
    traced = traces.stat().st_size if traces.exists() else None
    torn: Line | None = None
    for line in _whole_lines(folder / TRIALS):
        if traced is not None and _trace_end(line) > traced:
            traced = traces.stat().st_size  # a run that goes on has written it, before the line
        beyond = traced is not None and _trace_end(line) > traced
        torn = torn or (line if beyond else None)
        if torn is None:
            yield line
        elif ended or not beyond:
            raise StorageError(
                f"{traces}: ends before the trace of {_key(torn)} does, going by {torn.place}: "
                "one of the two was changed after it was written"
            )


def _key(line: Line) -> str:
    return f"{line.data.get('case_id')}#{line.data.get('trial_index')}"


def _trace_end(line: Line) -> int:
    """Where the trial's trace ends; 0 when it has none."""
    at, size = line.data.get("trace_at"), line.data.get("trace_size")
    if at is None or size is None:
        return 0
    if type(at) is not int or type(size) is not int:
        raise StorageError(f"{line.place}: trace_at and trace_size are no place in a file")
    return at + size


def _whole_lines(path: Path) -> Iterator[Line]:
    at = 0
    try:
        file = opened(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        for number, text in enumerate(file, start=1):
            if not text.endswith(b"\n"):
                return  # the process ended while it wrote this line
            yield Line(f"{path}:{number}", at, text, _read(text, f"{path}:{number}"))
            at += len(text)


def _read(text: bytes, place: str) -> dict[str, Any]:
    try:
        data = parsed(text)
    except ValueError as error:
        raise StorageError(f"{place}: {error}") from error
    if not isinstance(data, dict):
        raise StorageError(f"{place}: is no JSON object")
    return data


# --- repairing -------------------------------------------------------------------------------------------------------


def repair(folder: Path, take: Callable[[Line], object]) -> str:
    """Cut off what belongs to no finished trial at the ends of both files; `take` is called with the line of each that
    did.

    Gives the digest of the last of them. The last records go where the end of the machine took their traces, and so
    does a trace without its record. Raises UsageError, with nothing cut off, when the files hold what no crash leaves;
    StorageError when one cannot be read or written.
    """
    trials, traces = folder / TRIALS, folder / TRACES
    _refuse_missing(folder)
    content = _opened(traces)
    last: Line | None = None
    torn: Line | None = None
    with content:
        size = content.seek(0, os.SEEK_END)
        for line in _one_after_another(_whole_lines(trials)):
            if _trace_end(line) <= size:
                _refuse_other_begin(content, line)
                take(line)
                last = line
            else:  # and so do all that follow: none begins before the one before it ends
                torn = torn or line
        traced = 0 if last is None else _trace_end(last)
        if last is not None:
            _refuse_other_trace(content, last)
        if torn is not None:
            _refuse_whole_trace(content, traced, torn)
    _cut(trials, 0 if last is None else last.at + len(last.text))
    _cut(traces, traced)
    return FIRST_LINK if last is None else line_digest(last.text[:-1])


def _opened(path: Path) -> IO[bytes]:
    try:
        return opened(path) if path.is_file() else io.BytesIO()
    except OSError as error:
        raise unreadable(path, error) from error


def _refuse_missing(folder: Path) -> None:
    """Both files are made before the first trial, so that no crash leaves one of them alone with something in it."""
    sizes = {name: (folder / name).stat().st_size if (folder / name).is_file() else None for name in (TRIALS, TRACES)}
    if sizes[TRIALS] and sizes[TRACES] is None:
        raise UsageError(f"{folder / TRACES}: {absence(folder)}, so the run cannot be resumed")
    if sizes[TRACES] and sizes[TRIALS] is None:
        raise UsageError(f"{folder / TRIALS}: is missing, though {TRACES} holds traces, so the run cannot be resumed")


def _one_after_another(lines: Iterator[Line]) -> Iterator[Line]:
    """The lines. UsageError at one that does not follow the one before, by the chain or by where its trace stands."""
    previous, end = FIRST_LINK, 0
    for line in lines:
        if line.data.get("previous") != previous:
            raise UsageError(f"{line.place}: a line before it was changed or removed; the run cannot be resumed")
        after = _trace_end(line)
        if not end <= (line.data.get("trace_at") or 0) < after:
            raise UsageError(f"{line.place}: says that {_key(line)} has its trace where none can be{_CHANGED}")
        previous, end = line_digest(line.text[:-1]), after
        yield line


_CHANGED = "; one of the two files was changed after it was written, so the run cannot be resumed"


def _refuse_other_begin(content: IO[bytes], line: Line) -> None:
    content.seek(line.data["trace_at"])
    if content.read(len(MAGIC)) != MAGIC:
        raise UsageError(f"{line.place}: {TRACES} holds no trace where {_key(line)} has its own{_CHANGED}")


def _refuse_other_trace(content: IO[bytes], line: Line) -> None:
    content.seek(line.data["trace_at"])
    if bytes_digest(content.read(line.data["trace_size"])) != line.data.get("trace_digest"):
        raise UsageError(f"{line.place}: {TRACES} holds another trace than that of {_key(line)}{_CHANGED}")


def _refuse_whole_trace(content: IO[bytes], at: int, line: Line) -> None:
    """What stands where the first trace is missing can only be the beginning of that."""
    content.seek(at)
    if not is_beginning(content.read()):
        raise UsageError(
            f"{line.place}: {TRACES} ends before the trace of {_key(line)} does, but not within it{_CHANGED}"
        )


def _cut(path: Path, size: int) -> None:
    try:
        if path.exists() and path.stat().st_size > size:
            os.truncate(path, size)
    except OSError as error:
        raise _unwritable(path, error) from error


# --- appending -------------------------------------------------------------------------------------------------------


class _Appended:
    """One append-only file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o666)
        except OSError as error:
            raise _unwritable(path, error) from error
        self.end = os.fstat(self.descriptor).st_size
        self._synced = 0
        """Up to where it is on the disk for certain."""

    def append(self, data: bytes) -> int:
        """Append whole or not at all; gives the position. Raises StorageError."""
        position = self.end
        try:
            written = os.write(self.descriptor, data)
            while written < len(data):
                written += os.write(self.descriptor, data[written:])
        except OSError as error:
            with contextlib.suppress(OSError):  # then a torn line stays, for the repair
                os.ftruncate(self.descriptor, position)
            raise _unwritable(self.path, error) from error
        self.end += len(data)
        return position

    def sync(self, sync: Sync) -> None:
        """Put what was appended on the disk, if there is anything new. Raises StorageError."""
        end = self.end
        if end == self._synced:
            return
        try:
            sync(self.descriptor)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        self._synced = end


class Journal:
    """Appends finished trials, a trace before its record. One call at a time; a thread of its own syncs.

    Raises StorageError when a file cannot be opened. `previous` is the digest of the last line that stands already.
    """

    def __init__(self, folder: Path, *, previous: str = FIRST_LINK, sync: Sync = os.fsync) -> None:
        self.previous = previous
        """Digest of the last record's line: the end of the chain."""
        self._sync = sync
        self._traces = _Appended(folder / TRACES)
        self.trace = self._traces.append
        """Appends a trace, packed as a frame; gives its position."""
        self._trials = _Appended(folder / TRIALS)
        self._beside: list[Path] = []
        self._group = _Group(self.commit)
        self._closed = False

    def record(self, line: bytes) -> int:
        """Append a record, after its trace; gives the position of the line. When this returns the trial survives the
        end of the process."""
        if self._group.failure is not None:
            raise self._group.failure
        at = self._trials.append(line + b"\n")
        self.previous = line_digest(line)
        self._group.touch()
        return at

    def beside(self, path: Path) -> None:
        """A file that the next record names: it is synced in the same group, before the record."""
        self._beside.append(path)

    def commit(self) -> None:
        """Put everything appended so far on the disk, records last. Raises StorageError."""
        beside, self._beside = self._beside, []
        for path in beside:
            _sync_file(path, self._sync)
        for file in (self._traces, self._trials):
            file.sync(self._sync)

    def close(self) -> None:
        """Commit, and let go of the files whatever comes of that."""
        if self._closed:
            return
        self._closed = True
        self._group.end()
        try:
            self.commit()
        finally:
            os.close(self._traces.descriptor)
            os.close(self._trials.descriptor)


class _Group:
    """Commits in a thread of its own, some time after the first line of a group."""

    def __init__(self, commit: Callable[[], None]) -> None:
        self._commit = commit
        self._dirty, self._ended = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.failure: StorageError | None = None
        """What a commit in the background raised: the next append raises it."""

    def touch(self) -> None:
        """There is something to commit."""
        if self._dirty.is_set():
            return
        self._dirty.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="seatrial-journal", daemon=True)
            self._thread.start()

    def end(self) -> None:
        """Commit no more; returns when a commit under way has ended."""
        self._ended.set()
        self._dirty.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._ended.is_set():  # looked at again after each group: its end may come just before the clearing
            self._dirty.wait()
            if self._ended.wait(COMMIT_EVERY_S):
                return
            self._dirty.clear()
            try:
                self._commit()
            except StorageError as error:
                self.failure = error
                return


def _sync_file(path: Path, sync: Sync) -> None:
    try:
        descriptor = os.open(path, os.O_RDWR)
        try:
            sync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StorageError:
    return StorageError(f"{path}: cannot be written ({error.strerror or error})")
