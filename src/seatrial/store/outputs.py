"""Large outputs: each whole in a file of its own under `outputs/`, once; record and trace say where."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.core.encoding import dumps, shortened
from seatrial.core.ids import file_name
from seatrial.errors import StorageError
from seatrial.store.atomic import write_text

__all__ = ["ASIDE", "INLINE_OUTPUT", "Aside", "Outputs", "bytes_digest", "read_aside", "read_output"]

ASIDE = "output_file"
"""Where a trace's line names the file of its last output, in that output's place."""
INLINE_OUTPUT = 64 * 1024
"""Outputs whose JSON is longer (in characters) go whole to `outputs/`."""


def bytes_digest(data: bytes) -> str:
    """`sha256:...` of a file's content."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


class Aside(NamedTuple):
    """An output that stands in a file of its own."""

    file: str
    """Relative to the run folder."""
    shown: str
    """Its beginning, and how large it is."""
    digest: str
    """Of the file."""
    size: int
    """Of the file, in bytes."""

    @property
    def reference(self) -> dict[str, Any]:
        """What a trace holds in the output's place, as JSON data."""
        return {"file": self.file, "digest": self.digest, "size": self.size}


class Outputs:
    """Puts the large outputs of a run aside."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._last: tuple[str, Aside] | None = None

    def aside(self, output: Any, case_id: str, trial_index: int, attempt: int) -> Aside | None:
        """Where this output of an attempt stands whole, if it is large; a trace and its record share one file.

        Raises StorageError when it cannot be written.
        """
        text = output if isinstance(output, str) else dumps(output)
        if len(text) <= INLINE_OUTPUT:
            return None
        plain = isinstance(output, str) and _storable(text)
        name = f"outputs/{file_name(f'{case_id}#{trial_index}')}.{attempt}.{'txt' if plain else 'json'}"
        content = text if plain else dumps(output)
        data = content.encode("utf-8")
        aside = Aside(name, shortened(text), bytes_digest(data), len(data))
        if self._last != (name, aside):
            write_text(self._folder / name, content)
        self._last = (name, aside)
        return aside


def _storable(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def read_output(folder: Path, name: str) -> Any:
    """The output that stands in a file of a run folder. StorageError when it cannot be read."""
    return _value(folder / name, _content(folder / name))


def read_aside(folder: Path, reference: Any) -> Any:
    """The output that a trace refers to. StorageError when it is not there, or not as it was written."""
    path = folder / str(reference["file"])
    data = _content(path)
    if bytes_digest(data) != reference["digest"]:
        raise StorageError(f"{path}: is not as it was written (the trace has another digest)")
    return _value(path, data)


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path}: cannot be read ({error.strerror or error})") from error


def _value(path: Path, data: bytes) -> Any:
    text = data.decode("utf-8")  # as it was said, its line ends too
    return json.loads(text) if path.suffix == ".json" else text
