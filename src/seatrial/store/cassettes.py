"""Cassettes on disk: `DIR/BUILD/CASE.json`, readable, and replaced whole, so that a reader never finds half of one.

`DIR/cassettes.json` holds the seed of the run that recorded last.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from seatrial.core.cassette import Cassette, Part, Take
from seatrial.core.encoding import dumps
from seatrial.core.frozen import Frozen
from seatrial.core.ids import file_name
from seatrial.core.model_json import json_of, model_of
from seatrial.errors import StorageError, did_you_mean
from seatrial.store.atomic import write_text

__all__ = ["CassetteFolder", "read_seed", "write_seed"]

_SEED = "cassettes.json"
_HELD = 16
"""Files that are kept in memory."""


class CassetteFolder:
    """The recordings of one build in a folder that may hold those of others. One writer at a time."""

    def __init__(self, folder: Path, build: str, agent: str) -> None:
        """`agent` is the digest of the agent's spec."""
        self.folder, self.build, self.agent = folder, build, agent
        self._read: dict[Path, tuple[tuple[int, ...], Cassette]] = {}
        """The files read last, by what tells that they are still the same."""

    def path(self, case_id: str) -> Path:
        """The file of a case."""
        return self.folder / file_name(self.build) / f"{file_name(case_id)}.json"

    def read(self, case_id: str) -> Cassette:
        """The recording of a case, an empty one where there is none. StorageError when it cannot be read."""
        path = self.path(case_id)
        try:
            return self._as_it_is(path)
        except FileNotFoundError:
            return Cassette(build=self.build, agent=self.agent, case=case_id)
        except OSError as error:
            raise StorageError(f"{path}: cannot be read ({error.strerror or error})") from error

    def _as_it_is(self, path: Path) -> Cassette:
        """Read anew only where it was replaced: each trial asks for its case's file."""
        stat = path.stat()
        state = (stat.st_ino, stat.st_mtime_ns, stat.st_size)
        known, cassette = self._read.pop(path, ((), None))
        if cassette is None or known != state:
            cassette = _parsed(path, path.read_bytes())
            self._refuse_foreign(path, cassette)
        self._read[path] = (state, cassette)
        for oldest in list(self._read)[:-_HELD]:
            self._read.pop(oldest, None)
        return cassette

    def _refuse_foreign(self, path: Path, cassette: Cassette) -> None:
        """A file says itself whose recording it is, and lies where that belongs."""
        said = {"build": cassette.build, "case": cassette.case}
        for what, name in said.items():
            place = path.parent.name if what == "build" else path.stem
            if file_name(name) != place:
                raise StorageError(
                    f"{path}: is the recording of {what} {name!r}, which does not belong here; put the file back in "
                    "its place, or remove it and record the case again"
                )

    def write(self, case_id: str, trial: int, part: Part, position: int, take: Take) -> None:
        """Put an attempt's recording at its position (from 0) of the trial; what stood there and after it goes.

        So does everything that another agent spec recorded. StorageError when it cannot be written.
        """
        stored = self.read(case_id)
        if stored.agent != self.agent:
            stored = Cassette(build=self.build, agent=self.agent, case=case_id)
        data = json_of(stored.with_take(trial, part, position, take), exclude_defaults=True)
        write_text(self.path(case_id), dumps({"version": 1, **data}, indent=1) + "\n")

    def why_none(self, case_id: str, trial: int, part: Part, take: int) -> str:
        """Why there is no such take, in words."""
        stored = self.read(case_id)
        if not self.path(case_id).exists():
            return self._no_file(case_id)
        if stored.agent != self.agent:
            return f"{self.path(case_id)}: was recorded with other settings of the agent (target, config, tools)"
        found = [str(trials.trial) for trials in stored.trials]
        if str(trial) not in found:
            return f"there is no recording of trial {trial}; recorded trials: {', '.join(found) or 'none'}"
        if part == "graders":
            return "graders asked no model when it was recorded"
        return f"there is no recording of attempt {take}; recorded attempts: {len(stored.of(trial).agent)}"

    def _no_file(self, case_id: str) -> str:
        here = self.folder / file_name(self.build)
        if here.is_dir():
            return f"there is no recording of case {case_id} in {here}"
        builds = sorted(path.name for path in self.folder.iterdir() if path.is_dir()) if self.folder.is_dir() else []
        hint = did_you_mean(file_name(self.build), builds)
        return f"there is no recording of build {self.build!r} in {self.folder}" + (f"; {hint}" if hint else "")


def _parsed(path: Path, text: bytes) -> Cassette:
    try:
        return model_of(Cassette, text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        why = f"{place}: {first['msg']}" if place else first["msg"]
        raise StorageError(f"{path}: is no whole cassette ({why}); remove it and record the case again") from error


class _Index(Frozen):
    """The content of `cassettes.json`."""

    version: Literal[1] = 1
    seed: int


def read_seed(folder: Path) -> int | None:
    """The seed of the run that recorded; None where there is none. StorageError when it cannot be read."""
    path = folder / _SEED
    try:
        return model_of(_Index, path.read_bytes()).seed
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValidationError) as error:
        raise StorageError(f"{path}: cannot be read; remove it, and record again or name the --seed") from error


def write_seed(folder: Path, seed: int) -> None:
    """Note the seed of the run that records. StorageError when it cannot be written."""
    if read_seed(folder) != seed:
        write_text(folder / _SEED, dumps(_Index(seed=seed).model_dump(), indent=1) + "\n")
