"""What can go wrong, and what it tells the shell.

SeatrialError                  anything the user should read as one clear message, without a traceback
├── UsageError                 a command or call was used wrongly (exit 2)
│   ├── InputError             a file the user wrote is wrong; carries every Diagnostic found (exit 2)
│   └── Misfit                 what an agent's factory made does not fit the agent's settings (exit 2)
├── NothingSelected            a selection matched no case (exit 5)
└── StorageError               a file could not be written or read back (exit 2)

Exceptions that an agent or a fixture raises are not in this tree: they become records of a trial.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import IntEnum

__all__ = [
    "Diagnostic",
    "ExitCode",
    "InputError",
    "Misfit",
    "NothingSelected",
    "SeatrialError",
    "StorageError",
    "UsageError",
    "did_you_mean",
    "nearest",
]


class ExitCode(IntEnum):
    """What the process tells the shell; the table stands in the documentation of the command line."""

    PASS = 0
    FAILED = 1
    USAGE = 2
    REVIEW = 3
    INCOMPLETE = 4
    NOTHING_SELECTED = 5
    INTERNAL = 70
    INTERRUPTED = 130


@dataclass(frozen=True)
class Diagnostic:
    """One thing wrong (or doubtful) in something a person wrote. Data only: `report` renders it."""

    rule: str
    """Short stable name of the rule, such as `unknown-key`."""
    message: str
    """What is wrong, with the offending value and its type."""
    path: str = ""
    """The file, relative to the project where possible; empty when there is none."""
    line: int | None = None
    """1-based; None when the whole file is meant."""
    column: int | None = None
    """1-based, counted in characters."""
    hint: str = ""
    """What was probably meant, or what to do."""
    severity: str = "error"
    """`error` or `warning`."""

    @property
    def place(self) -> str:
        """`file:line:column`, as far as it is known."""
        return ":".join(str(part) for part in (self.path, self.line, self.column) if part not in ("", None))

    def __str__(self) -> str:
        place = f"{self.place}: " if self.place else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}{self.rule}: {self.message}{hint}"


class SeatrialError(Exception):
    """A message for the user, who needs no traceback to act on it."""

    exit_code = ExitCode.USAGE


class UsageError(SeatrialError):
    """A command or a call was used wrongly."""


class InputError(UsageError):
    """Files that people wrote are wrong. Holds every diagnostic found, never only the first."""

    def __init__(self, diagnostics: Iterable[Diagnostic] | Diagnostic) -> None:
        found = (diagnostics,) if isinstance(diagnostics, Diagnostic) else tuple(diagnostics)
        self.diagnostics: tuple[Diagnostic, ...] = found
        super().__init__("\n".join(str(diagnostic) for diagnostic in found))


class Misfit(UsageError):
    """What a factory made is no agent by the agent's settings: known only in a trial, and true of every one."""


class NothingSelected(SeatrialError):
    """A selection matched no case; the message names the nearest id."""

    exit_code = ExitCode.NOTHING_SELECTED


class StorageError(SeatrialError):
    """A run folder or report could not be written, or what was read back is not what was written."""


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that `name` was probably meant to be, or None when nothing is close."""
    folded: dict[str, str] = {candidate.casefold(): candidate for candidate in candidates}
    close = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[close[0]] if close else None


def did_you_mean(name: str, candidates: Sequence[str]) -> str:
    """A hint for a message: the nearest candidate, else the candidates themselves when they are few."""
    close = nearest(name, candidates)
    if close is not None:
        return f"did you mean {close!r}?"
    return "known: " + ", ".join(sorted(candidates)) if 0 < len(candidates) <= 30 else ""
