"""A run folder: `run.json`, `cases.jsonl`, `trials.jsonl`, `traces.jsonl`, `outputs/`.

`trials.jsonl` is append-only, a line a finished trial; each line holds the digest of the line before, so that a line
that was changed or taken out later shows. The trace goes first, so a trial on record always has its trace. Everything
passes through the redactor before it is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from seatrial.core.case import Case
from seatrial.core.encoding import dumps, shortened
from seatrial.core.ids import file_name
from seatrial.core.run import RunInfo
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.core.wording import first_problem
from seatrial.errors import StorageError, UsageError
from seatrial.store.atomic import write_text

__all__ = [
    "FIRST_LINK",
    "Masks",
    "RunFolder",
    "RunWriter",
    "StoredTrial",
    "bytes_digest",
    "is_run_folder",
    "line_digest",
]

INLINE_OUTPUT = 64 * 1024
"""Outputs whose JSON is longer (in characters) go whole to `outputs/`."""
FIRST_LINK = "sha256:" + "0" * 64
"""What the first line of the chain holds as the digest of the line before."""


class Masks(Protocol):
    """What replaces secrets before anything is written."""

    def value(self, value: Any) -> Any:
        """The JSON data with every secret replaced; the same object when it held none."""


class _NoMask:
    def value(self, value: Any) -> Any:
        return value


def is_run_folder(folder: Path) -> bool:
    """Whether a run was written here."""
    return (folder / "run.json").is_file()


def bytes_digest(data: bytes) -> str:
    """`sha256:...` of a file's content."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def line_digest(line: bytes) -> str:
    """`sha256:...` of a line without its line feed."""
    return bytes_digest(line)


class RunWriter:
    """Writes one run; a Sink. Opened with `create`, ended with `finish`."""

    def __init__(self, folder: Path, info: RunInfo, masks: Masks) -> None:
        self.folder = folder
        self.info = info
        self._masks = masks
        self._previous = FIRST_LINK
        self._trials = _append(folder / "trials.jsonl")
        self._traces = _append(folder / "traces.jsonl")

    @classmethod
    def create(cls, folder: Path, info: RunInfo, cases: Sequence[Case], masks: Masks | None = None) -> RunWriter:
        """Start a run in an empty or missing folder.

        Raises UsageError when the folder holds anything, StorageError when it cannot be written.
        """
        masks = masks or _NoMask()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            occupied = any(folder.iterdir())
        except OSError as error:
            raise StorageError(f"{folder}: cannot be used as a run folder ({error.strerror or error})") from error
        if occupied:
            raise UsageError(f"{folder}: the output folder is not empty; name a new one")
        text = _cases_text(cases, masks)
        write_text(folder / "cases.jsonl", text)
        noted = {"cases_file": bytes_digest(text.encode()), "chain_end": None}
        writer = cls(folder, info.model_copy(update=noted), masks)
        writer._write_info()
        return writer

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Append one finished trial; gives the record as written (masked, linked, large output moved out)."""
        key = {"case_id": record.case_id, "trial_index": record.trial_index, "attempt": record.attempt}
        trace_json = _masked(_trace_json(trace), self._masks, _OF_TRACES)
        return TrialRecord.model_validate(self._write_record(record, dumps({**key, **trace_json})))

    def write_again(self, record: TrialRecord, stored: StoredTrial) -> None:
        """Append a trial of another run with the record it has now; its trace stays as it was written there.

        A value that only this run's masks know is masked. A large output is whole in `record`.
        """
        masked = _masked(stored.data, self._masks, _OF_TRACES)
        text = stored.line.decode("utf-8") if masked is stored.data else dumps(masked)
        self._write_record(record, text)

    def _write_record(self, record: TrialRecord, trace_text: str) -> dict[str, Any]:
        position = self._append_line(self._traces, trace_text)
        data = _masked(record.model_dump(mode="json"), self._masks, _OF_RECORDS)
        data.update(run_id=self.info.run_id, build_id=self.info.build_id)
        data.update(trace_at=position, previous=self._previous)
        self._move_large_output(data)
        line = dumps(data)
        self._append_line(self._trials, line)
        self._previous = line_digest(line.encode("utf-8"))
        return data

    def finish(self, info: RunInfo) -> RunInfo:
        """Write the final `run.json` and let go of the files; gives what was written."""
        noted = {"cases_file": self.info.cases_file, "chain_end": self._previous}
        self.info = info.model_copy(update=noted)
        self._trials.close()
        self._traces.close()
        self._write_info()
        return self.info

    def _write_info(self) -> None:
        data = self.info.model_dump(mode="json")
        data.update({name: self._masks.value(data[name]) for name in ("agent", "judge", "options", "command")})
        write_text(self.folder / "run.json", dumps(data, indent=2) + "\n")

    def _append_line(self, file: IO[bytes], text: str) -> int:
        position = file.tell()
        try:
            file.write(text.encode("utf-8") + b"\n")
        except OSError as error:
            raise StorageError(f"{file.name}: cannot be written ({error.strerror or error})") from error
        return position

    def _move_large_output(self, data: dict[str, Any]) -> None:
        text = data["output"] if isinstance(data["output"], str) else dumps(data["output"])
        if len(text) <= INLINE_OUTPUT:
            return
        suffix = "txt" if isinstance(data["output"], str) and _storable(text) else "json"
        key = f"{data['case_id']}#{data['trial_index']}"
        name = f"outputs/{file_name(key)}.{data['attempt']}.{suffix}"
        write_text(self.folder / name, text if suffix == "txt" else dumps(data["output"]))
        data["output"] = shortened(text)
        data["output_file"] = name


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


def _append(path: Path) -> IO[bytes]:
    try:
        return path.open("ab", buffering=0)
    except OSError as error:
        raise StorageError(f"{path}: cannot be written ({error.strerror or error})") from error


@dataclass(frozen=True)
class StoredTrial:
    """A finished trial as it stands in a run folder."""

    record: TrialRecord
    line: bytes
    """Its line of `traces.jsonl`, without its line feed."""

    @cached_property
    def data(self) -> dict[str, Any]:
        """What the line holds. StorageError when it cannot be read."""
        try:
            data: dict[str, Any] = json.loads(self.line)
        except ValueError as error:
            raise StorageError(f"the trace of {self.record.key} cannot be read: {_first_line(error)}") from error
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
        path = self.folder / "run.json"
        try:
            return RunInfo.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise StorageError(f"{path}: cannot be read as a run: {_first_line(error)}") from error

    def cases(self) -> tuple[Case, ...]:
        """The selected cases as they were, in order."""
        return tuple(_validated(Case, data, place) for place, data in _lines(self.folder / "cases.jsonl"))

    def records(self) -> tuple[TrialRecord, ...]:
        """Every finished trial in the order in which they finished. A torn last line is no finished trial."""
        path = self.folder / "trials.jsonl"
        return tuple(_validated(TrialRecord, data, place) for place, data in _lines(path))

    def stored(self) -> Iterator[StoredTrial]:
        """Every finished trial with its trace, one at a time, in the order in which they finished.

        Raises StorageError when a trace is missing.
        """
        trials, traces = self.folder / "trials.jsonl", self.folder / "traces.jsonl"
        if not trials.is_file():
            return
        try:
            with traces.open("rb") as file:
                for place, data in _lines(trials):
                    record = _validated(TrialRecord, data, place)
                    if record.trace_at is None:
                        raise StorageError(f"{place}: {record.key} has no trace on record")
                    file.seek(record.trace_at)
                    yield StoredTrial(record, file.readline().rstrip(b"\n"))
        except OSError as error:
            raise StorageError(f"{traces}: cannot be read ({error.strerror or error})") from error

    def trace(self, record: TrialRecord) -> Trace:
        """The trace of one trial; StorageError when it is missing."""
        path = self.folder / "traces.jsonl"
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
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                yield f"{path}:{number}", json.loads(line)
            except ValueError as error:
                if not line.endswith(b"\n"):
                    return  # the process ended while it wrote this line: the trial had not finished
                raise StorageError(f"{path}:{number}: is not JSON: {_first_line(error)}") from error


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
