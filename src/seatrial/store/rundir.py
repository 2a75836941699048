"""A run folder: `run.json`, `cases.jsonl`, `trials.jsonl`, `traces.jsonl.zst`, `outputs/`; `run.lock` while written.

`trials.jsonl` is append-only, a line a finished trial; each line holds the digest of the line before, so that a line
that was changed or taken out later shows. The trace goes first, so a trial on record always has its trace. Everything
passes through the redactor before it is written. A run that has ended, in whatever way, can be gone on with.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from seatrial.core.case import Case
from seatrial.core.encoding import indented, line_of, parts_of, plain
from seatrial.core.ledger import Ledger
from seatrial.core.model_json import as_given, json_of, model_of
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Trace
from seatrial.core.trial import MOST_TRIALS, TrialRecord
from seatrial.errors import StorageError, UsageError
from seatrial.store.atomic import write_text
from seatrial.store.frames import LARGEST, TRACES, Packer, Traces, absence
from seatrial.store.journal import FIRST_LINK, TRIALS, Journal, Line, finished_lines, line_digest, repair
from seatrial.store.lock import LOCK_NAME, FolderLock
from seatrial.store.outputs import ASIDE, INLINE_OUTPUT, Aside, Outputs, bytes_digest, read_aside, read_output
from seatrial.store.reading import content, opened, unreadable
from seatrial.store.records import add_line, data_of, first_line, ledger_of, validated
from seatrial.store.trace_line import trace_line

__all__ = [
    "FIRST_LINK",
    "Masks",
    "RunFolder",
    "RunWriter",
    "StoredTrial",
    "bytes_digest",
    "has_begun",
    "is_run_folder",
    "line_digest",
]

_INFO = "run.json"
_CASES = "cases.jsonl"


class Masks(Protocol):
    """What replaces secrets before anything is written."""

    def may_hold(self, line: bytes) -> bool:
        """Whether JSON text may hold a secret. False is certain, and cheaper than `value`."""

    def value(self, value: Any) -> Any:
        """The JSON data with every secret replaced; the same object when it held none."""


class _NoMask:
    def may_hold(self, line: bytes) -> bool:
        return False

    def value(self, value: Any) -> Any:
        return value


def is_run_folder(folder: Path) -> bool:
    """Whether a run was written here. StorageError when that cannot be seen."""
    try:
        return (folder / _INFO).is_file()
    except OSError as error:
        raise unreadable(folder, error) from error


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
        self._outputs = Outputs(folder)
        self._packed = Packer()
        self._lock = lock

    @classmethod
    def create(
        cls, folder: Path, info: RunInfo, cases: Sequence[Case], masks: Masks | None = None, *, resumable: bool = False
    ) -> RunWriter:
        """Start a run in an empty or missing folder.

        Raises UsageError when the folder holds anything, StorageError when it cannot be written. `resumable`: had a
        run been in it, it would be gone on with, so that one in it now was begun a moment ago.
        """
        if resumable and is_run_folder(folder):
            FolderLock(folder).release()  # says who writes it
            raise UsageError(f"{folder}: another process has just run in it; resume again")
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
            _refuse_other_cases(folder, info)
            kept = ledger_of(folder)
            previous = repair(folder, lambda line: add_line(kept, line))
            text = None if (folder / _CASES).exists() else _cases_text(cases, masks)
            if text is not None:
                info = info.model_copy(update={"cases_file": bytes_digest(text.encode())})
            _write_info(folder, info, masks)  # first of all: a folder without it holds no run
            if text is not None:
                write_text(folder / _CASES, text, durable=True)
            return cls(folder, info, masks, kept, Journal(folder, previous=previous), lock)
        except BaseException:
            lock.release()
            raise

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Append one finished trial; gives the record as written (masked, linked, large output put aside)."""
        line = trace_line(record, trace)
        return self._keep(record, self._packed(self._trace_line(json.loads(line)) if self._to_rework(line) else line))

    def write_again(self, record: TrialRecord, stored: StoredTrial) -> TrialRecord:
        """Append a trial of another run with the record it has now; its trace stays as it was written there.

        A value that only this run's masks know is masked. A large output is whole in `record`.
        """
        again = self._to_rework(stored.line) or ASIDE in stored.data
        return self._keep(record, self._packed(self._trace_line(stored.whole)) if again else stored.frame)

    def _to_rework(self, line: bytes) -> bool:
        return len(line) > INLINE_OUTPUT or self._masks.may_hold(line)

    def _trace_line(self, data: dict[str, Any]) -> bytes:
        """A trace masked, and without an output that is too large for a line. StorageError when it still is."""
        data = _masked(data, self._masks, _OF_TRACES)
        output, outputs = data.get("output"), data.get("outputs", ())
        aside = self._aside(data) if outputs and outputs[-1] == output else None
        if aside is not None:
            data = {**data, "outputs": outputs[:-1], ASIDE: aside.reference}
            del data["output"]
        line = line_of(data)
        if len(line) >= LARGEST:
            key = f"{data['case_id']}#{data['trial_index']}"
            raise StorageError(f"{self.folder}: the trace of {key} has {len(line):,} bytes ({LARGEST:,} are too many)")
        return line

    def _aside(self, data: Mapping[str, Any]) -> Aside | None:
        aside = self._outputs.aside(data.get("output"), data["case_id"], data["trial_index"], data["attempt"])
        if aside is not None:
            self._journal.beside(self.folder / aside.file)
        return aside

    def _keep(self, record: TrialRecord, frame: bytes) -> TrialRecord:
        links = {
            "run_id": self.info.run_id,
            "build_id": self.info.build_id,
            "trace_at": self._journal.trace(frame),
            "trace_size": len(frame),
            "trace_digest": bytes_digest(frame),
            "previous": self._journal.previous,
        }
        record = record.altered(links)
        line = line_of(vars(record))
        if self._to_rework(line):
            record = self._reworked(record, links)
            line = line_of(record)
        self.kept.add(record, self._journal.record(line), len(line))
        return record

    def _reworked(self, record: TrialRecord, links: dict[str, Any]) -> TrialRecord:
        """The record masked, and without an output that is too large for a line."""
        data = _masked(json_of(record), self._masks, _OF_RECORDS) | links
        aside = self._aside(data)
        if aside is not None:
            data |= {"output": aside.shown, "output_file": aside.file}
        return TrialRecord.model_validate(data)

    def commit(self) -> None:
        """Put everything written so far on the disk. Raises StorageError."""
        self._journal.commit()

    def final(self, info: RunInfo) -> RunInfo:
        """`info` with what only the writer knows: what `finish` writes once the last trial is on record."""
        return info.altered({"cases_file": self.info.cases_file, "chain_end": self._journal.previous})

    def finish(self, info: RunInfo) -> RunInfo:
        """Write the final `run.json` and let go of the folder, whatever comes of that; gives what was written."""
        self.info = self.final(info)
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


def _write_info(folder: Path, info: RunInfo, masks: Masks) -> None:
    data = dict(vars(info))
    data.update({name: masks.value(plain(data[name])) for name in ("agent", "judge", "options", "command", "resumed")})
    write_text(folder / _INFO, indented(data, parts_of) + "\n", durable=True)


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
    return b"".join([_case_line(case, masks) + b"\n" for case in cases]).decode()


def _case_line(case: Case, masks: Masks) -> bytes:
    """The case as it was written, and where."""
    place = {"path": case.path, "line": case.line} if case.path else {}
    line = line_of(as_given(case) | place, as_given)
    return line_of(_masked(json.loads(line), masks, _OF_CASES)) if masks.may_hold(line) else line


def _refuse_begun(folder: Path) -> None:
    if has_begun(folder):
        more = ", or resume the run in it" if is_run_folder(folder) else ""
        raise UsageError(f"{folder}: the output folder is not empty; name a new one{more}")


def _refuse_other_cases(folder: Path, info: RunInfo) -> None:
    """Cases are written whole, after their digest: others than these were put there since."""
    path = folder / _CASES
    if info.cases_file and path.is_file() and bytes_digest(content(path)) != info.cases_file:
        raise UsageError(
            f"{path}: is not as it was written, so the run cannot be resumed; "
            "put it back, or take it away to have it written again"
        )


@dataclass(frozen=True)
class StoredTrial:
    """A finished trial as it stands in a run folder."""

    record: TrialRecord
    frame: bytes
    """Its part of `traces.jsonl.zst`."""
    line: bytes
    """What that holds: a line of JSON, without its line feed."""
    place: str
    """Where that stands, and whose it is, for messages."""
    folder: Path
    """The run folder."""

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the line holds. StorageError when it cannot be read, or is another trial's."""
        data = data_of(self.line, self.place)
        if not isinstance(data, dict):
            raise StorageError(f"{self.place}: is no JSON object")
        record = self.record
        whose = data.get("case_id"), data.get("trial_index"), data.get("attempt")
        if whose != (record.case_id, record.trial_index, record.attempt):
            raise StorageError(f"{self.place}: is not where its record says: another attempt's stands there")
        return data

    @property
    def whole(self) -> dict[str, Any]:
        """The same with an output that was put aside in its place. StorageError when that cannot be read."""
        if ASIDE not in self.data:
            return self.data
        data = {name: value for name, value in self.data.items() if name != ASIDE}
        earlier = data.get("outputs", [])
        if not isinstance(earlier, list):
            raise StorageError(f"{self.place}: outputs: should be a list")
        output = read_aside(self.folder, self.data[ASIDE], self.place)
        return {**data, "output": output, "outputs": [*earlier, output]}

    def trace(self, data: Any = None) -> Trace:
        """The trace; of changed `data` when that is given. StorageError when it is none."""
        fields = {key: value for key, value in (data or self.whole).items() if key not in _KEY}
        return validated(Trace, fields, self.place)


_KEY = ("case_id", "trial_index", "attempt")
"""What a trace's line says besides the trace: whose it is."""


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
            info = model_of(RunInfo, content(path))
            _check(info)
        except (ValueError, RecursionError, MemoryError) as error:
            raise StorageError(f"{path}: cannot be read as a run: {first_line(error)}") from error
        return info

    def cases(self) -> tuple[Case, ...]:
        """The selected cases as they were, in order; StorageError when they are missing, or cannot be read."""
        path = self.folder / _CASES
        if not os.path.lexists(path):
            early = "; the run ended before it began, and can be resumed" if self._never_began() else ""
            raise StorageError(f"{path}: is missing{early}")
        return tuple(validated(Case, data, place) for place, data in _lines(path))

    def _never_began(self) -> bool:
        trials = self.folder / TRIALS
        return self.info.status is RunStatus.RUNNING and not (trials.exists() and trials.stat().st_size)

    def _finished_lines(self) -> Iterator[Line]:
        ended = self.info.status is not RunStatus.RUNNING
        if ended and not (self.folder / TRIALS).is_file():
            raise StorageError(f"{self.folder / TRIALS}: is missing")
        return finished_lines(self.folder, ended=ended)

    def records(self) -> Ledger:
        """Every finished trial's attempts, each once, in the order in which they finished.

        What is torn at the end of the files is no finished trial, as long as the run has not ended. Then, records
        that are missing, and traces that are cut short, raise StorageError.
        """
        ledger = ledger_of(self.folder)
        for line in self._finished_lines():
            add_line(ledger, line)
        return ledger

    def check_end(self) -> None:
        """StorageError naming the file when the run has ended, and is not as it was then."""
        info = self.info
        if info.status is RunStatus.RUNNING:
            return
        for name, wanting in ((_CASES, "is missing"), (TRACES, absence(self.folder))):
            if not (self.folder / name).is_file():
                raise StorageError(f"{self.folder / name}: {wanting}")
        last = deque(self._finished_lines(), maxlen=1)
        end = line_digest(last[0].text[:-1]) if last else FIRST_LINK
        if info.chain_end not in (None, end):  # None: written by a version that did not note it
            raise StorageError(
                f"{self.folder / TRIALS}: does not end as it did when the run ended; lines were changed or removed"
            )

    def stored(self) -> Iterator[StoredTrial]:
        """Every attempt on record with its trace, one at a time, in the order in which they finished.

        None is kept, so in a folder that was not verified one may come twice. Raises StorageError when a trace is
        missing, or not as it was written.
        """
        with Traces(self.folder) as traces:
            for line in self._finished_lines():
                record = validated(TrialRecord, line.data, line.place)
                yield StoredTrial(record, *traces.read(record), self.folder)

    def trace(self, record: TrialRecord) -> Trace:
        """The trace of one trial; StorageError when it is missing, or not as it was written."""
        with Traces(self.folder) as traces:
            stored = StoredTrial(record, *traces.read(record), self.folder)
        return stored.trace()

    def output(self, record: TrialRecord) -> Any:
        """The whole final output, from `outputs/` when it was moved there."""
        if record.output_file is None:
            return record.output
        return read_output(self.folder, record.output_file)


def _check(info: RunInfo) -> None:
    """Raise ValueError for a time or a number that nothing can be reckoned from."""
    times = {"started": info.started, "ended": info.ended}
    times |= {f"resumed.{number}.at": each.at for number, each in enumerate(info.resumed)}
    for name, text in times.items():
        if text and not _is_time(text):
            raise ValueError(f"{name}: should be a time, such as 2026-01-31T12:00:00Z, not {text[:80]!r}")
    for case_id, planned in info.trials.items():
        if not 0 <= planned <= MOST_TRIALS:
            raise ValueError(f"trials.{case_id}: should be 0 to {MOST_TRIALS}")


def _is_time(text: str) -> bool:
    try:
        return datetime.fromisoformat(text).tzinfo is not None
    except ValueError:
        return False


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        file = opened(path)
    except FileNotFoundError as error:
        raise StorageError(f"{path}: is missing; the run ended before it began, and can be resumed") from error
    except OSError as error:
        raise unreadable(path, error) from error
    with file:
        for number, line in enumerate(file, start=1):
            yield f"{path}:{number}", data_of(line, f"{path}:{number}")
