"""Whether a run folder holds what its run wrote: everything that can be told from the folder alone.

`run.json` notes the digest of `cases.jsonl` and of the last line of `trials.jsonl`; each line holds the digest of the
line before; each record names its run, its case's digest, the place and the digest of its trace, which holds that of an
output put aside, and its status follows from its grades. Retries (attempts of one trial) and runs that were gone on
with (the chain goes on) are as they should be. Who can rewrite the whole folder can still make one that is consistent:
against that helps a digest kept elsewhere.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from seatrial.core.case import Case
from seatrial.core.frozen import defaults_of
from seatrial.core.grade import Verdict
from seatrial.core.grading import listed
from seatrial.core.ledger import Ledger
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.trace import Event, StopReason
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus, status_of
from seatrial.core.wording import first_problem
from seatrial.errors import StorageError
from seatrial.store.frames import MAGIC, TRACES, Traces, Unpacker, is_as_written
from seatrial.store.outputs import ASIDE, bytes_digest, output_content, output_of
from seatrial.store.reading import opened, parsed
from seatrial.store.records import ledger_of
from seatrial.store.rundir import FIRST_LINK, RunFolder, line_digest

__all__ = ["Verified", "verify"]

_Model = TypeVar("_Model", bound=BaseModel)
CASES, TRIALS = "cases.jsonl", "trials.jsonl"


@dataclass(frozen=True)
class Verified:
    """What a run folder holds, as far as it can be read, and what is wrong with it."""

    info: RunInfo
    cases: tuple[Case, ...]
    """Each case once, in order."""
    records: Ledger
    """Of this run and its cases, each attempt once, in the order in which they finished."""
    problems: tuple[str, ...]
    """Each as `FILE:LINE: what`, or `FILE: what`; empty: the folder is as the run wrote it."""

    @property
    def replayed(self) -> bool:
        """Whether its trials are no evidence of their own, by `run.json` or by any record."""
        return self.info.cassettes == "replay" or any(entry.replayed for entry in self.records.entries())


def verify(run: RunFolder) -> Verified:
    """Read a run folder and check it. Raises StorageError when `run.json` cannot be read, never for what else it holds.

    Trials that were planned and have no record are no problem of the folder: a run may end before its time.
    """
    check = _Check(run.folder, run.info)
    check.read_cases()
    check.read_trials()
    return Verified(check.info, tuple(check.cases.values()), check.records, tuple(check.problems))


class _Place(NamedTuple):
    """Where a line stands in `trials.jsonl`."""

    text: str
    at: int
    size: int


@dataclass
class _Check:
    """One folder being read."""

    folder: Path
    info: RunInfo
    cases: dict[str, Case] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.records, self._strays = (ledger_of(self.folder) for _ in range(2))
        """Of known cases, and of those that `cases.jsonl` lacks."""

    def _say(self, place: str, what: str) -> None:
        self.problems.append(f"{place}: {what}")

    # --- cases -------------------------------------------------------------------------------------------------------

    def read_cases(self) -> None:
        data = self._content(CASES)
        if data is None:
            return
        if self.info.cases_file and bytes_digest(data) != self.info.cases_file:
            self._say(CASES, "is not as the run wrote it (run.json has another digest)")
        for number, line in enumerate(data.removesuffix(b"\n").split(b"\n"), start=1):
            self._read_case(f"{CASES}:{number}", line)
        missing = [case_id for case_id in self.info.cases if case_id not in self.cases]
        if missing:
            self._say(CASES, f"lacks cases of run.json: {listed(missing)}")

    def _read_case(self, place: str, line: bytes) -> None:
        if not line:
            return
        case = self._model(Case, place, line)
        if case is None:
            return
        if case.id in self.cases:
            self._say(place, f"the case {case.id!r} stands there twice")
        elif self.info.cases and case.id not in self.info.cases:
            self._say(place, f"{case.id!r} is no case of run.json")
        self.cases.setdefault(case.id, case)

    # --- trials ------------------------------------------------------------------------------------------------------

    def read_trials(self) -> None:
        ended = self.info.status is not RunStatus.RUNNING
        try:
            with opened(self.folder / TRIALS) as lines:
                link = self._read_lines(lines, ended=ended)
        except OSError as error:
            self._unreadable(TRIALS, error)
            return
        if ended and self.info.chain_end is not None and link != self.info.chain_end:
            self._say(TRIALS, "does not end as the run wrote it: its last lines were changed or taken out")

    def _read_lines(self, lines: Iterable[bytes], *, ended: bool) -> str:
        """The digest of the last line."""
        link, at = FIRST_LINK, 0
        with self._traces() as traces:
            for number, text in enumerate(lines, start=1):
                place, line = f"{TRIALS}:{number}", text.removesuffix(b"\n")
                if line == text:
                    self.problems += [f"{place}: the line is torn"] if ended else []
                    break
                record = self._model(TrialRecord, place, line)
                if record is not None:
                    self._read_record(_Place(place, at, len(line)), record, link, traces)
                link, at = line_digest(line), at + len(text)
        return link

    def _read_record(self, where: _Place, record: TrialRecord, link: str, traces: Traces | None) -> None:
        place = where.text
        if record.previous != link:
            self._say(place, "does not follow the line before: that one was changed, or lines were taken out or moved")
        foreign = self._foreign(record)
        if foreign:
            self._say(place, foreign)
            return
        ledger = self.records if record.case_id in self.cases else self._strays
        if not ledger.add(record, where.at, where.size):
            self._say(place, f"attempt {record.attempt} of {record.key} stands there twice")
            return
        for what in (*self._inconsistent(record), *self._trace_problems(record, traces)):
            self._say(place, what)

    def _foreign(self, record: TrialRecord) -> str:
        """Why the record is no evidence on this run's cases; empty when it is."""
        if record.run_id != self.info.run_id:
            return f"is of run {record.run_id!r}, not of {self.info.run_id!r}"
        if record.case_id not in self.cases and record.case_id not in self.info.cases:
            return f"{record.case_id!r} is none of the run's cases"
        expected = self.info.cases.get(record.case_id, record.case_digest)
        if record.case_digest != expected:
            return f"{record.key} is of another version of its case (the digests differ)"
        return ""

    def _inconsistent(self, record: TrialRecord) -> Iterator[str]:
        if record.build_id not in ("", self.info.build_id):
            yield f"{record.key} is of build {record.build_id!r}, not of {self.info.build_id!r}"
        planned = self.info.trials.get(record.case_id)
        if record.trial_index < 1 or (planned is not None and record.trial_index > planned):
            yield f"{record.key} was not planned"
        if record.replayed and self.info.cassettes != "replay":
            yield f"{record.key} was replayed from cassettes, which run.json does not say"
        if (record.status, record.invalid_reason) not in _possible(record, self.info):
            yield f"{record.key} is {record.status}, which does not follow from its grades and how it ended"

    # --- traces ------------------------------------------------------------------------------------------------------

    def _traces(self) -> contextlib.AbstractContextManager[Traces | None]:
        """The folder's traces; None when they cannot be read, which is said."""
        try:
            return Traces(self.folder)
        except StorageError as error:
            self._say(TRACES, str(error).removeprefix(f"{self.folder / TRACES}: "))
        return contextlib.nullcontext()

    def _trace_problems(self, record: TrialRecord, traces: Traces | None) -> Iterator[str]:
        """Why the trace of a record is not where the record says, or it or its output not as they were written."""
        trace: Mapping[str, Any] = {}
        if traces is not None:
            trace, problem = _trace(record, traces)
            if problem:
                yield f"the trace of {record.key} {problem}"
        if record.output_file is not None:
            yield from self._output_problems(record, record.output_file, trace)

    def _output_problems(self, record: TrialRecord, name: str, trace: Mapping[str, Any]) -> Iterator[str]:
        """A trace holds the digest of an output that was put aside, or else the output itself."""
        try:
            data = output_content(self.folder, name)
            same = not trace or self._is_output(name, data, trace)
        except StorageError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            what = f" is missing: {name}" if missing else f": {_within(self.folder, error)}"
            yield f"the output of {record.key}{what}"
            return
        if not same:
            yield f"the output of {record.key} is not as the run wrote it: {name}"

    def _is_output(self, name: str, data: bytes, trace: Mapping[str, Any]) -> bool:
        """Whether a trace says that this is its output; one that says nothing of it has not."""
        reference = trace.get(ASIDE)
        if isinstance(reference, dict):
            return bytes_digest(data) == reference.get("digest") and reference.get("file") == name
        try:
            return "output" in trace and output_of(self.folder / name, data) == trace["output"]
        except StorageError:
            return False

    # --- reading -----------------------------------------------------------------------------------------------------

    def _content(self, name: str) -> bytes | None:
        try:
            with opened(self.folder / name) as file:
                return file.read()
        except OSError as error:
            self._unreadable(name, error)
        return None

    def _unreadable(self, name: str, error: OSError) -> None:
        missing = isinstance(error, FileNotFoundError)
        self._say(name, "is missing" if missing else f"cannot be read ({error.strerror or error})")

    def _model(self, model: type[_Model], place: str, line: bytes) -> _Model | None:
        try:
            return model.model_validate(parsed(line))
        except ValidationError as error:
            self._say(place, f"cannot be read: {first_problem(error)}")
        except RecursionError:
            self._say(place, "is nested too deeply to be read")
        except ValueError as error:
            self._say(place, str(error))
        return None


def _possible(record: TrialRecord, info: RunInfo) -> set[tuple[TrialStatus, InvalidReason | None]]:
    """What the status may be. Whether an approval was meant to stay unanswered is on no record."""
    foreseen = (False, True) if record.stop_reason is StopReason.WAITING_APPROVAL else (False,)
    said = (record.grades, record.grader_failures, record.stop_reason, record.broken)
    found = {status_of(*said, foreseen=each) for each in foreseen}
    if info.regraded_from and all(grade.verdict is Verdict.ABSTAIN for grade in record.grades):
        found.add((TrialStatus.INVALID, InvalidReason.UNOBSERVED))  # its trace is of another input
    return found


def _within(folder: Path, error: StorageError) -> str:
    """What an error says of a file of the folder, which is not named."""
    return str(error).removeprefix(f"{folder}{os.sep}").removeprefix(f"{folder}: ")


def _trace(record: TrialRecord, traces: Traces) -> tuple[Mapping[str, Any], str]:
    """What the frame of a record holds, as far as it can be read, and what is wrong with it."""
    try:
        frame = traces.frame(record)
    except OSError as error:
        return {}, f"cannot be read ({error.strerror or error})"
    if not frame:
        return {}, "is missing"
    trace, problem = _content(frame, traces.unpacked)
    key = {"case_id": record.case_id, "trial_index": record.trial_index, "attempt": record.attempt}
    if not frame.startswith(MAGIC) or (not problem and {name: trace.get(name) for name in key} != key):
        problem = "is not where the record says"
    elif not is_as_written(record, frame):
        problem = "is not as the run wrote it (its record has another digest)"
    return trace, problem


def _content(frame: bytes, unpacked: Unpacker) -> tuple[Mapping[str, Any], str]:
    """The JSON object in a frame, or why there is none."""
    try:
        data = parsed(unpacked(frame))
    except ValueError as error:
        return {}, str(error)
    if not isinstance(data, dict):
        return {}, "is no JSON object"
    return (data, "") if _has_events(data) else ({}, "is no trace: not all of its events are of a known kind")


def _has_events(data: Mapping[str, Any]) -> bool:
    """Whether a trace has events of known kinds: far cheaper than reading it as a trace."""
    events = data.get("events", [])
    return isinstance(events, list) and all(isinstance(each, dict) and each.get("kind") in _KINDS for each in events)


_KINDS = [defaults_of(kind)["kind"] for kind in get_args(get_args(Event)[0])]
