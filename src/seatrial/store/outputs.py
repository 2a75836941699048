"""Large outputs: each whole in a file of its own under `outputs/`, once; record and trace say where."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.core.encoding import dumps, shortened
from seatrial.core.ids import file_name
from seatrial.errors import StorageError
from seatrial.store.atomic import write_text
from seatrial.store.reading import content, parsed

__all__ = [
    "ASIDE",
    "INLINE_OUTPUT",
    "Aside",
    "Outputs",
    "bytes_digest",
    "output_content",
    "output_of",
    "read_aside",
    "read_output",
]

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


_OURS = re.compile(r"outputs/[a-z0-9_.%-]+\.(txt|json)")
"""What the names of files look like that `Outputs` makes."""


def read_output(folder: Path, name: str) -> Any:
    """The output that stands in a file of a run folder. StorageError when it cannot be read."""
    return output_of(folder / name, output_content(folder, name))


def read_aside(folder: Path, reference: Any, place: str) -> Any:
    """The output that a trace refers to. StorageError when it is not there, or not as it was written; or naming
    `place`, where the reference stands, when that is none.

    Without a digest nothing says that the file was the trial's output, so it is not read as that.
    """
    name, digest = (reference.get(key) if isinstance(reference, dict) else None for key in ("file", "digest"))
    if not isinstance(name, str) or not isinstance(digest, str):
        raise StorageError(f"{place}: {ASIDE}: should be {{file, digest, size}} of an output")
    data = output_content(folder, name)
    if bytes_digest(data) != digest:
        raise StorageError(f"{folder / name}: is not as it was written (the trace has another digest)")
    return output_of(folder / name, data)


def output_content(folder: Path, name: str) -> bytes:
    """What the file of an output holds. StorageError when it cannot be read, or is none of the folder's own outputs.

    A folder may come from anywhere: nothing outside its `outputs/` is read, whatever a record or a link names.
    """
    if not _OURS.fullmatch(name):
        raise StorageError(f"{folder}: {name[:200]!r} is no name of an output (outputs/NAME.txt or outputs/NAME.json)")
    if Path(os.path.realpath(folder / name)).parent != Path(os.path.realpath(folder)) / "outputs":
        raise StorageError(f"{folder / name}: is a link out of the run folder's outputs, which is not followed")
    return content(folder / name)


def output_of(path: Path, data: bytes) -> Any:
    """The output that the file of this name holds with this content. StorageError when it is none."""
    try:
        return parsed(data) if path.suffix == ".json" else data.decode("utf-8")  # as it was said, its line ends too
    except UnicodeDecodeError as error:
        raise StorageError(f"{path}: is not UTF-8") from error
    except ValueError as error:
        raise StorageError(f"{path}: {error}") from error
