"""What regrading changed, on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from seatrial.report.screen import STATUS_STYLES, Cell, Screen, left, times

__all__ = ["print_flips"]

SHOWN = 20


def print_flips(
    console: Console, flips: Sequence[tuple[str, str, str]], count: int, *, everything: bool = False
) -> None:
    """The trials with another status than before, as (trial, before, after); `count` of them in all."""
    screen = Screen(console)
    if not count:
        screen.line(Text("every trial has the status that it had", style="dim"))
        return
    screen.title(f"{times(count, 'trial')} with another status than before")
    shown = flips if everything else flips[:SHOWN]
    rows: list[list[Cell]] = [[trial, _change(screen, before, after)] for trial, before, after in shown]
    screen.rows(left("", ""), rows, header=False)
    if count > len(shown):
        screen.line(Text(f"{screen.marks.more} {count - len(shown):,} more", style="dim"), indent=2)


def _change(screen: Screen, before: str, after: str) -> Text:
    return Text.assemble(
        (before, STATUS_STYLES[before]), (f" {screen.marks.arrow} ", "dim"), (after, STATUS_STYLES[after])
    )
