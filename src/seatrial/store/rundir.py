"""A run folder: `run.json`, `cases.jsonl`, `trials.jsonl`, `traces.jsonl`, `outputs/`; `run.lock` while it is written.

`trials.jsonl` is append-only, a line a finished trial; each line holds the digest of the line before, so that a line
that was changed or taken out later shows. The trace goes first, so a trial on record always has its trace. Everything
passes through the redactor before it is written. A run that has ended, in whatever way, can be gone on with.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import threading
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pydantic_core
from pydantic import BaseModel, ValidationError

from seatrial.core.case import Case
from seatrial.core.encoding import dumps, shortened
from seatrial.core.ids import file_name
from seatrial.core.ledger import Ledger
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.core.wording import first_problem
from seatrial.errors import StorageError, UsageError
from seatrial.store.atomic import write_text
from seatrial.store.journal import FIRST_LINK, TRACES, TRIALS, Journal, Line, finished_lines, line_digest, repair
from seatrial.store.lock import LOCK_NAME, FolderLock

__all__ = [
    "FIRST_LINK",
    "Masks",
    "RecordReader",
    "RunFolder",
    "RunWriter",
    "StoredTrial",
    "bytes_digest",
    "has_begun",
    "is_run_folder",
    "line_digest",
    "record_of",
]

INLINE_OUTPUT = 64 * 1024
"""Outputs whose JSON is longer (in characters) go whole to `outputs/`."""
_INFO = "run.json"
_CASES = "cases.jsonl"


class Masks(Protocol):
    """What replaces secrets before anything is written."""

    def may_hold(self, line: str) -> bool:
        """Whether JSON text may hold a secret. False is certain, and cheaper than `value`."""

    def value(self, value: Any) -> Any:
        """The JSON data with every secret replaced; the same object when it held none."""


class _NoMask:
    def may_hold(self, line: str) -> bool:
        return False

    def value(self, value: Any) -> Any:
        return value


def is_run_folder(folder: Path) -> bool:
    """Whether a run was written here."""
    return (folder / _INFO).is_file()


def bytes_digest(data: bytes) -> str:
    """`sha256:...` of a file's content."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def has_begun(folder: Path) -> bool:
    """Whether the folder holds anything; what a run leaves that ended before its `run.json` stood is nothing.

    Raises StorageError when it cannot be a run folder.
    """
    try:
        return folder.exists() and not all(_is_leftover(path.name) for path in folder.iterdir())
    except OSError as error:
        raise StorageError(f"{folder}: cannot be used as a run folder ({error.strerror or error})") from error


def _is_leftover(name: str) -> bool:
    return name == LOCK_NAME or re.fullmatch(rf"\.{re.escape(_INFO)}\.[0-9a-f]+\.tmp", name) is not None


class RunWriter:
    """Writes one run; a Sink. Opened with `create` or `resume`, ended with `finish`."""

    def __init__(
        self,
        folder: Path,
        info: RunInfo,
        masks: Masks,
        kept: Ledger,
        journal: Journal,
        lock: FolderLock,
    ) -> None:
        self.folder = folder
        self.info = info
        self.kept = kept
        """What stands on record, in order: what stood there when it was opened, and what was written since."""
        self._masks = masks
        self._journal = journal
        self._lock = lock

    @classmethod
    def create(cls, folder: Path, info: RunInfo, cases: Sequence[Case], masks: Masks | None = None) -> RunWriter:
        """Start a run in an empty or missing folder.

        Raises UsageError when the folder holds anything, StorageError when it cannot be written.
        """
        _refuse_begun(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{folder}: cannot be used as a run folder ({error.strerror or error})") from error
        lock = FolderLock(folder)
        return cls._open(folder, info, cases, masks or _NoMask(), lock, fresh=True)

    @classmethod
    def resume(cls, folder: Path, info: RunInfo, cases: Sequence[Case], masks: Masks | None = None) -> RunWriter:
        """Go on with the run in the folder, whatever ended it: torn ends are cut off, the chain goes on.

        Raises UsageError when a live process writes it, StorageError when a line was changed since, or it cannot be
        written.
        """
        return cls._open(folder, info, cases, masks or _NoMask(), FolderLock(folder), fresh=False)

    @classmethod
    def _open(
        cls, folder: Path, info: RunInfo, cases: Sequence[Case], masks: Masks, lock: FolderLock, *, fresh: bool
    ) -> RunWriter:
        try:
            if fresh:
                _refuse_begun(folder)  # another run may have come and gone before the lock was ours
            kept = _ledger(folder)
            previous = repair(folder, lambda line: _add(kept, line))
            text = _cases_text(cases, masks)
            if not (folder / _CASES).exists():
                info = info.model_copy(update={"cases_file": bytes_digest(text.encode())})
            _write_info(folder, info, masks)  # first of all: a folder without it holds no run
            if not (folder / _CASES).exists():
                write_text(folder / _CASES, text, durable=True)
            return cls(folder, info, masks, kept, Journal(folder, previous=previous), lock)
        except BaseException:
            lock.release()
            raise

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Append one finished trial; gives the record as written (masked, linked, large output moved out)."""
        return self._keep(record, self._journal.trace(self._trace_line(record, trace).encode()))

    def _trace_line(self, record: TrialRecord, trace: Trace) -> str:
        key = {"case_id": record.case_id, "trial_index": record.trial_index, "attempt": record.attempt}
        data = _trace_json(trace)
        line = _json({**key, **data})
        return _json({**key, **_masked(data, self._masks, _OF_TRACES)}) if self._masks.may_hold(line) else line

    def write_again(self, record: TrialRecord, stored: StoredTrial) -> TrialRecord:
        """Append a trial of another run with the record it has now; its trace stays as it was written there.

        A value that only this run's masks know is masked. A large output is whole in `record`.
        """
        line = stored.line.decode("utf-8")
        if self._masks.may_hold(line):
            line = _json(_masked(stored.data, self._masks, _OF_TRACES))
        return self._keep(record, self._journal.trace(line.encode()))

    def _keep(self, record: TrialRecord, trace_at: int) -> TrialRecord:
        links: dict[str, Any] = {"run_id": self.info.run_id, "build_id": self.info.build_id}
        links |= {"trace_at": trace_at, "previous": self._journal.previous}
        record = record.model_copy(update=links)
        line = _json(record)
        if len(line) > INLINE_OUTPUT or self._masks.may_hold(line):
            record = self._reworked(record, links)
            line = _json(record)
        text = line.encode()
        self.kept.add(record, self._journal.record(text), len(text))
        return record

    def _reworked(self, record: TrialRecord, links: dict[str, Any]) -> TrialRecord:
        """The record masked, and without an output that is too large for a line."""
        data = _masked(record.model_dump(mode="json"), self._masks, _OF_RECORDS) | links
        self._move_large_output(data)
        return TrialRecord.model_validate(data)

    def commit(self) -> None:
        """Put everything written so far on the disk. Raises StorageError."""
        self._journal.commit()

    def finish(self, info: RunInfo) -> RunInfo:
        """Write the final `run.json` and let go of the folder, whatever comes of that; gives what was written."""
        noted = {"cases_file": self.info.cases_file, "chain_end": self._journal.previous}
        self.info = info.model_copy(update=noted)
        try:
            self._journal.close()
            _write_info(self.folder, self.info, self._masks)
        finally:
            self.close()
        return self.info

    def close(self) -> None:
        """Let go of the folder and say nothing of how the run ended; after `finish`, nothing more happens."""
        try:
            self._journal.close()
        finally:
            self._lock.release()

    def _move_large_output(self, data: dict[str, Any]) -> None:
        text = data["output"] if isinstance(data["output"], str) else dumps(data["output"])
        if len(text) <= INLINE_OUTPUT:
            return
        suffix = "txt" if isinstance(data["output"], str) and _storable(text) else "json"
        key = f"{data['case_id']}#{data['trial_index']}"
        name = f"outputs/{file_name(key)}.{data['attempt']}.{suffix}"
        write_text(self.folder / name, text if suffix == "txt" else dumps(data["output"]))
        self._journal.beside(self.folder / name)
        data["output"] = shortened(text)
        data["output_file"] = name


def _write_info(folder: Path, info: RunInfo, masks: Masks) -> None:
    data = info.model_dump(mode="json")
    data.update({name: masks.value(data[name]) for name in ("agent", "judge", "options", "command", "resumed")})
    write_text(folder / _INFO, dumps(data, indent=2) + "\n", durable=True)


def _storable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


_OF_CASES = ("id", "suite", "risk", "thresholds", "limits")
_OF_RECORDS = (
    *("case_id", "suite", "status", "invalid_reason", "broken", "stop_reason", "observes"),
    *("case_digest", "fixture_digest"),
)
_OF_TRACES = ("case_id", "observes", "stop_reason")
_OF_PARTS = ("kind", "state", "decision", "role", "source", "verdict")


def _masked(data: dict[str, Any], masks: Masks, structure: tuple[str, ...]) -> dict[str, Any]:
    """The data masked, but for words of the format itself: a secret may be spelt `passed` or `medium`."""
    masked: dict[str, Any] = masks.value(data)
    if masked is data:
        return data
    masked.update({name: data[name] for name in structure if name in data})
    for parts in ("events", "grades"):
        for part, original in zip(masked.get(parts, ()), data.get(parts, ()), strict=True):
            part.update({name: original[name] for name in _OF_PARTS if name in original})
    return masked


def _cases_text(cases: Sequence[Case], masks: Masks) -> str:
    """The content of `cases.jsonl`."""
    return "".join(dumps(_masked(_case_json(case), masks, _OF_CASES)) + "\n" for case in cases)


def _case_json(case: Case) -> dict[str, Any]:
    """The case as it was written, and where."""
    place = {"path": case.path, "line": case.line} if case.path else {}
    return case.model_dump(mode="json", by_alias=True, exclude_unset=True) | place


def _trace_json(trace: Trace) -> dict[str, Any]:
    """A trace without what is as by default; `kind` is a default, and yet says which event it is."""
    data = trace.model_dump(mode="json", exclude_defaults=True)
    for event, fields in zip(trace.events, data.get("events", ()), strict=False):
        fields["kind"] = event.kind
    return data


def _json(data: Any) -> str:
    """JSON as the text of a line, encodable as UTF-8."""
    try:
        # what `dumps` gives, several times as fast; a figure that is no finite number is unknown
        return pydantic_core.to_json(data, inf_nan_mode="null").decode()
    except pydantic_core.PydanticSerializationError:  # lone surrogates, as escapes
        return dumps(data.model_dump(mode="json") if isinstance(data, BaseModel) else data)


def _refuse_begun(folder: Path) -> None:
    if has_begun(folder):
        more = ", or resume the run in it" if is_run_folder(folder) else ""
        raise UsageError(f"{folder}: the output folder is not empty; name a new one{more}")


def _ledger(folder: Path) -> Ledger:
    """An empty ledger that reads records back from the folder."""
    return Ledger(RecordReader(folder / TRIALS))


def _add(ledger: Ledger, line: Line) -> TrialRecord | None:
    """Note the record of a line; None when its attempt is on record already."""
    record = _validated(TrialRecord, line.data, line.place)
    return record if ledger.add(record, line.at, len(line.text) - 1) else None


class RecordReader:
    """Reads records of `trials.jsonl` back by their positions, from any thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = None

    def __call__(self, at: int, size: int) -> TrialRecord:
        """The record that stands there. StorageError when it cannot be read."""
        try:
            line = self._bytes(at, size)
        except OSError as error:
            raise StorageError(f"{self._path}: cannot be read ({error.strerror or error})") from error
        return record_of(line, f"{self._path}, at byte {at}")

    def _bytes(self, at: int, size: int) -> bytes:
        with self._lock:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
                weakref.finalize(self, os.close, self._descriptor)
            os.lseek(self._descriptor, at, os.SEEK_SET)
            return os.read(self._descriptor, size)


def record_of(line: bytes, place: str) -> TrialRecord:
    """The record that a line holds. StorageError naming `place` when it holds none."""
    try:
        return TrialRecord.model_validate_json(line)  # twice as fast as by way of Python's own reader
    except ValidationError:
        return _validated(TrialRecord, _data(line, place), place)  # which reads lone surrogates, too


@dataclass(frozen=True)
class StoredTrial:
    """A finished trial as it stands in a run folder."""

    record: TrialRecord
    line: bytes
    """Its line of `traces.jsonl`, without its line feed."""

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the line holds. StorageError when it cannot be read."""
        data: dict[str, Any] = _data(self.line, f"the trace of {self.record.key}")
        return data

    def trace(self, data: Any = None) -> Trace:
        """The trace; of changed `data` when that is given. StorageError when it is none."""
        fields = {key: value for key, value in (data or self.data).items() if key not in _KEY}
        return _validated(Trace, fields, f"trace of {self.record.key}")


_KEY = ("case_id", "trial_index", "attempt")
"""What a line of `traces.jsonl` says besides the trace: whose it is."""


class RunFolder:
    """A run that was written, finished or not."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if not is_run_folder(folder):
            raise UsageError(f"{folder}: this is no run folder (it has no run.json)")

    @property
    def info(self) -> RunInfo:
        """`run.json`; StorageError when it cannot be read."""
        path = self.folder / _INFO
        try:
            return RunInfo.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise StorageError(f"{path}: cannot be read as a run: {_first_line(error)}") from error

    def cases(self) -> tuple[Case, ...]:
        """The selected cases as they were, in order; StorageError when the run ended before they were written."""
        path = self.folder / _CASES
        if not path.is_file():
            raise StorageError(f"{path}: is missing; the run ended before it began, and can be resumed")
        return tuple(_validated(Case, data, place) for place, data in _lines(path))

    def records(self) -> Ledger:
        """Every finished trial's attempts, each once, in the order in which they finished.

        What is torn at the end of the files is no finished trial.
        """
        ledger = _ledger(self.folder)
        for line in finished_lines(self.folder):
            _add(ledger, line)
        return ledger

    def is_whole(self) -> bool:
        """Whether the run was finished and nothing of its trials went missing since."""
        info = self.info
        if info.status is not RunStatus.FINISHED:
            return False
        last = deque(finished_lines(self.folder), maxlen=1)
        end = line_digest(last[0].text[:-1]) if last else FIRST_LINK
        return info.chain_end in (None, end)  # None: written by a version that did not note it

    def stored(self) -> Iterator[StoredTrial]:
        """Every finished trial with its trace, one at a time, in the order in which they finished.

        Raises StorageError when a trace is missing.
        """
        traces, seen = self.folder / TRACES, _ledger(self.folder)
        try:
            with traces.open("rb") as file:
                for line in finished_lines(self.folder):
                    record = _add(seen, line)
                    if record is None:
                        continue
                    if record.trace_at is None:
                        raise StorageError(f"{line.place}: {record.key} has no trace on record")
                    file.seek(record.trace_at)
                    yield StoredTrial(record, file.readline().rstrip(b"\n"))
        except OSError as error:
            raise StorageError(f"{traces}: cannot be read ({error.strerror or error})") from error

    def trace(self, record: TrialRecord) -> Trace:
        """The trace of one trial; StorageError when it is missing."""
        path = self.folder / TRACES
        if record.trace_at is None:
            raise StorageError(f"{path}: {record.key} has no trace on record")
        try:
            with path.open("rb") as file:
                file.seek(record.trace_at)
                return StoredTrial(record, file.readline()).trace()
        except OSError as error:
            raise StorageError(f"{path}: the trace of {record.key} cannot be read: {_first_line(error)}") from error
        except StorageError as error:
            raise StorageError(f"{path}: {error}") from error

    def output(self, record: TrialRecord) -> Any:
        """The whole final output, from `outputs/` when it was moved there."""
        if record.output_file is None:
            return record.output
        path = self.folder / record.output_file
        try:
            text = path.read_bytes().decode("utf-8")  # as it was said, its line ends too
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror or error})") from error
        return json.loads(text) if path.suffix == ".json" else text


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield f"{path}:{number}", _data(line, f"{path}:{number}")


def _data(line: bytes, place: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise StorageError(f"{place}: is not JSON: {_first_line(error)}") from error


_Model = TypeVar("_Model", bound=BaseModel)


def _validated(model: type[_Model], data: Any, place: str) -> _Model:
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise StorageError(f"{place}: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return first_problem(error)
    return " ".join(str(error).split())[:300]
