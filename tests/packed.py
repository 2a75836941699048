"""What a run folder keeps packed, for tests that look at it or edit it by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

from seatrial.store.frames import TRACES, Packer


def trace_lines(folder: Path) -> list[bytes]:
    """The traces of a run folder, a line each without its line feed, as any reader of Zstandard sees them."""
    return unpacked(folder / TRACES).splitlines()


def edit_traces(folder: Path, edit: Callable[[list[str]], Any]) -> None:
    """Edit the lines in place, each with its line feed, and pack them anew."""
    lines = [line.decode() + "\n" for line in trace_lines(folder)]
    edit(lines)
    (folder / TRACES).write_bytes(b"".join(Packer()(line.removesuffix("\n").encode()) for line in lines))


def unpacked(path: Path) -> bytes:
    """What a file says: unpacked, where it is packed."""
    if path.suffix != ".zst":
        return path.read_bytes()
    with zstandard.open(path, "rb") as file:
        return bytes(file.read())


def contents(folder: Path) -> list[bytes]:
    """What each file below a folder says."""
    return [unpacked(path) for path in sorted(folder.rglob("*")) if path.is_file()]
