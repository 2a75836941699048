"""Reading what a run folder holds: JSON lines as models, and single records of `trials.jsonl` by their position."""

from __future__ import annotations

import os
import threading
import weakref
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from seatrial.core.ledger import Ledger, Told, told_of
from seatrial.core.model_json import model_of
from seatrial.core.trial import TrialRecord
from seatrial.core.wording import first_problem
from seatrial.errors import StorageError
from seatrial.store.journal import TRIALS, Line
from seatrial.store.reading import descriptor, parsed, unreadable

__all__ = ["add_line", "data_of", "first_line", "ledger_of", "validated"]

_Model = TypeVar("_Model", bound=BaseModel)


def ledger_of(folder: Path) -> Ledger:
    """An empty ledger that reads records back from the folder."""
    return Ledger(_Reader(folder / TRIALS))


def add_line(ledger: Ledger, line: Line) -> TrialRecord | None:
    """Note the record of a line; None when its attempt is on record already. StorageError when it is no record."""
    record = validated(TrialRecord, line.data, line.place)
    return record if ledger.add(record, line.at, len(line.text) - 1) else None


_TOLD = TypeAdapter(Told).validator  # what the adapter adds is a frame around it
_PIECE = 65_536
"""Bytes that are read at once where records are looked at about as they stand."""


class _Reader:
    """Reads records back by their positions, from any thread; the file stays open as long as this lives."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._descriptor: int | None = None
        self._piece = (0, b"")
        """Where the last read began, and the whole lines that it brought."""

    def __call__(self, at: int, size: int) -> TrialRecord:
        """The record that stands there. StorageError when it cannot be read."""
        return _record(self._bytes(at, size), f"{self._path}, at byte {at}")

    def told(self, at: int, size: int) -> Told:
        """What a report tells of it."""
        line = self._bytes(at, size)
        try:
            told: Told = _TOLD.validate_json(line)
        except ValidationError:
            told = told_of(_record(line, f"{self._path}, at byte {at}"))
        return told

    def _bytes(self, at: int, size: int) -> bytes:
        begin, piece = self._piece
        offset = at - begin
        if 0 <= offset <= len(piece) - size:
            return piece[offset : offset + size]
        try:
            with self._lock:
                if -_PIECE // 4 <= offset <= len(piece) + _PIECE // 8:
                    return self._read_around(at, size)
                self._piece = at, b""
                return self._read(at, size)
        except OSError as error:
            raise unreadable(self._path, error) from error

    def _read_around(self, at: int, size: int) -> bytes:
        """The same, with what stands before and behind: trials that ran side by side finished in some other order."""
        begin = max(0, at - _PIECE // 4)
        piece = self._read(begin, max(_PIECE, at - begin + size))
        self._piece = begin, piece[: piece.rfind(b"\n") + 1]  # what follows may be in the midst of being written
        return piece[at - begin : at - begin + size]

    def _read(self, at: int, size: int) -> bytes:
        if self._descriptor is None:
            self._descriptor = descriptor(self._path)
            weakref.finalize(self, os.close, self._descriptor)
        os.lseek(self._descriptor, at, os.SEEK_SET)
        return os.read(self._descriptor, size)


def _record(line: bytes, place: str) -> TrialRecord:
    try:
        return model_of(TrialRecord, line)  # twice as fast as by way of Python's own reader
    except ValidationError as error:
        raise StorageError(f"{place}: {first_line(error)}") from error


def data_of(line: bytes, place: str) -> Any:
    """What a line holds. StorageError naming `place` when it is not JSON."""
    try:
        return parsed(line)
    except ValueError as error:
        raise StorageError(f"{place}: {first_line(error)}") from error


def validated(model: type[_Model], data: Any, place: str) -> _Model:
    """The data as a model. StorageError naming `place` when it is none."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise StorageError(f"{place}: {first_line(error)}") from error
    except (RecursionError, MemoryError) as error:
        raise StorageError(f"{place}: is nested too deeply, or too large, to be read") from error


def first_line(error: Exception) -> str:
    """What went wrong, on one line."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    return " ".join(str(error).split())[:300]
