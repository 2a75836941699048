"""Traces as they stand in `traces.jsonl.zst`: each a Zstandard frame of its own, which holds one line of JSON.

Frames one after another are a valid file, so whatever reads Zstandard reads it as JSON lines; and each can be read
alone by its place. A folder may come from anywhere: no frame is unpacked before it has said how large it becomes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError, frame_content_size

from seatrial.core.trial import TrialRecord
from seatrial.errors import StorageError
from seatrial.store.outputs import bytes_digest
from seatrial.store.reading import opened, unreadable

__all__ = [
    "LARGEST",
    "MAGIC",
    "TRACES",
    "Packed",
    "Packer",
    "Traces",
    "Unpacker",
    "absence",
    "is_as_written",
    "is_beginning",
]

TRACES = "traces.jsonl.zst"
_UNPACKED = "traces.jsonl"
"""What it was called before traces were compressed."""

LARGEST = 1_000_000_000
"""Bytes that a trace may have as a line: nothing larger is written, nor unpacked."""
MAGIC = b"\x28\xb5\x2f\xfd"
"""What a frame begins with."""

_DENSEST = 32 * 1024
"""Bytes that each byte of a frame can become: a block of four bytes may repeat one of them 128 K times."""
_NO_FRAME = "is no whole Zstandard frame"

_SHORT = 512
"""Bytes below which compressing a line saves too little to be worth its time."""
_LEVEL = 1
"""Higher ones take longer, and save one byte in a hundred more."""
_PLAIN = MAGIC + b"\xa0"
"""How a frame begins that says in four bytes how large it becomes."""


class Packer:
    """Makes frames of lines, one call at a time."""

    def __init__(self) -> None:
        self._compress = ZstdCompressor(level=_LEVEL).compress

    def __call__(self, line: bytes) -> bytes:
        """The frame of a line, which comes without its line feed and is smaller than LARGEST."""
        text = line + b"\n"
        size = len(text)
        if size < _SHORT:  # one block that is not compressed: RFC 8878, sections 3.1.1.1 and 3.1.1.2
            return _PLAIN + size.to_bytes(4, "little") + (size << 3 | 1).to_bytes(3, "little") + text
        return self._compress(text)


class Unpacker:
    """Gives the lines of frames, one call at a time."""

    def __init__(self) -> None:
        self._decompress = ZstdDecompressor().decompress

    def __call__(self, frame: bytes) -> bytes:
        """The line of a frame, without its line feed. Raises ValueError saying what is wrong with it."""
        try:
            size = frame_content_size(frame)
            if size < 0:
                raise ValueError("does not say how large it is")
            if size > LARGEST:
                raise ValueError(f"would become {size:,} bytes ({LARGEST:,} are the most)")
            if size > len(frame) * _DENSEST:
                raise ValueError(_NO_FRAME)
            text = self._decompress(frame, allow_extra_data=False)
            line = text.removesuffix(b"\n")
        except ZstdError as error:
            raise ValueError(_NO_FRAME) from error
        except MemoryError as error:
            raise ValueError(f"would become {size:,} bytes, for which there is not enough memory") from error
        if line == text or b"\n" in line:
            raise ValueError("is not one line")
        return line


def absence(folder: Path) -> str:
    """What to say of a run folder without TRACES."""
    if (folder / _UNPACKED).exists():
        return f"is missing: the run is of a version that kept {_UNPACKED}, which is not read any more; run it again"
    return "is missing"


class Packed(NamedTuple):
    """A trace as it stands."""

    frame: bytes
    line: bytes
    """What the frame holds, without the line feed."""
    place: str
    """Where it stands, and whose it is, for messages."""


class Traces:
    """The traces of a run folder, open for looking up, by one thread. StorageError when they cannot be opened."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRACES
        self.unpacked = Unpacker()
        try:
            self._file = opened(self._path)
        except FileNotFoundError as error:
            raise StorageError(f"{self._path}: {absence(folder)}") from error
        except OSError as error:
            raise unreadable(self._path, error) from error

    def __enter__(self) -> Traces:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def frame(self, record: TrialRecord) -> bytes:
        """What stands where the record says; empty when the file has no such place. Raises OSError."""
        at, size = record.trace_at, record.trace_size
        if at is None or size is None or not 0 <= at <= at + size <= os.fstat(self._file.fileno()).st_size:
            return b""
        self._file.seek(at)
        return self._file.read(size)

    def read(self, record: TrialRecord) -> Packed:
        """The record's trace. StorageError naming file and place when it is missing, or not as it was written."""
        try:
            frame = self.frame(record)
        except (OSError, MemoryError) as error:
            raise unreadable(self._path, error) from error
        if not frame:
            raise StorageError(f"{self._path}: the trace of {record.key} is missing")
        place = f"{self._path}, at byte {record.trace_at}: the trace of {record.key}"
        if not is_as_written(record, frame):
            raise StorageError(f"{place} is not as it was written (its record has another digest)")
        try:
            return Packed(frame, self.unpacked(frame), place)
        except ValueError as error:
            raise StorageError(f"{place} {error}") from error


def is_as_written(record: TrialRecord, frame: bytes) -> bool:
    """Whether a frame is the one that the record names, as far as it names one."""
    return record.trace_digest in (None, bytes_digest(frame))


def is_beginning(data: bytes) -> bool:
    """Whether a frame may begin so and go on: false of what holds a whole one, or none."""
    unpacked = ZstdDecompressor().decompressobj()
    try:
        for at in range(0, len(data), _PIECE):
            unpacked.decompress(data[at : at + _PIECE])
            if unpacked.eof:
                return False
    except ZstdError:
        return False
    return True


_PIECE = 2048
"""Bytes that are unpacked at once where only the end is of interest: they become 64 MB at most."""
