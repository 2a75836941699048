"""How far a run is: a bar on a terminal, plain lines elsewhere. It shows; it never changes what happens."""

from __future__ import annotations

from collections import Counter
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.report.screen import STATUS_STYLES, Screen
from seatrial.verdict.trials import reason_of

__all__ = ["Progress"]

LINES_AT_MOST = 50
"""Plain lines for a run that goes well; what does not pass always gets its line."""


class Progress:
    """Shows finished trials; a context manager around a run.

    `console` is that of stderr. On a terminal: one bar with counts, gone at the end; elsewhere plain lines. `verbose`
    gives every trial a line, `quiet` shows nothing at all. Calls may come from any thread, one at a time.
    """

    def __init__(self, console: Console, total: int, *, quiet: bool = False, verbose: bool = False) -> None:
        self._screen = Screen(console)
        self._quiet = quiet
        self._verbose = verbose
        self._counts: Counter[TrialStatus] = Counter()
        self._every = 1 if verbose else max(1, total // LINES_AT_MOST)
        self._bar: Bar | None = None
        self._task = TaskID(0)
        if console.is_terminal and not quiet:
            # ASCII bars where the terminal cannot show others are rich's own doing
            columns = (BarColumn(bar_width=30), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
            self._bar = Bar(*columns, TimeElapsedColumn(), console=console, transient=True)
            self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def update(self, record: TrialRecord, done: int, total: int) -> None:
        """A trial ended: the `done`-th of `total`."""
        self._counts[record.status] += 1
        if self._quiet:
            return
        if self._bar is None:
            if record.status is not TrialStatus.PASSED or done % self._every == 0 or done == total:
                self._line(record, done, total)
            return
        if self._verbose:
            self._line(record, done, total)
        self._bar.update(self._task, completed=done, total=total, description=self._description())

    def _line(self, record: TrialRecord, done: int, total: int) -> None:
        screen = self._screen
        count = f"[{done:>{len(str(total))}}/{total}]"
        parts = [
            screen.text(count, "dim"),
            screen.text(f"{record.status!s:<8}", STATUS_STYLES[record.status]),
            screen.text(str(record.key)),
            screen.text(reason_of(record), "dim"),
        ]
        screen.unbroken(screen.join(parts, "  "))

    def _description(self) -> str:
        said = [f"{self._counts[status]} {status}" for status in TrialStatus if self._counts[status]]
        return ", ".join(said)
