"""What is wrong with the files that a person wrote, in lines that editors can follow."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from seatrial.errors import Diagnostic
from seatrial.report.screen import Screen

__all__ = ["print_diagnostics"]

_STYLES = {"error": "bold red", "warning": "yellow"}


def print_diagnostics(console: Console, diagnostics: Sequence[Diagnostic]) -> None:
    """`file:line:column: error: message [rule]` a line, its hint below it."""
    screen = Screen(console)
    for diagnostic in diagnostics:
        place = screen.text(f"{diagnostic.place}: " if diagnostic.place else "", "bold")
        severity = Text(f"{diagnostic.severity}: ", style=_STYLES.get(diagnostic.severity, ""))
        rule = screen.text(f"  [{diagnostic.rule}]", "dim")
        screen.unbroken(Text.assemble(place, severity, screen.block(diagnostic.message), rule))
        if diagnostic.hint:
            screen.unbroken(Text.assemble("    ", screen.block(diagnostic.hint)))
