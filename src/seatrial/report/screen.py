"""The terminal as every view here uses it: one console, one set of marks and colours, all data literal.

Colour never carries meaning alone: each mark or word says the same. Where the output's encoding cannot show a
character, marks fall back to ASCII and data is escaped, so nothing crashes on a plain terminal or in a log.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, log10
from typing import IO, Literal

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from seatrial.core.encoding import shortened
from seatrial.report.literal import lines, literal

__all__ = [
    "STATUS_STYLES",
    "VERDICT_STYLES",
    "Cell",
    "Column",
    "Marks",
    "Screen",
    "console",
    "left",
    "money",
    "percent",
    "right",
    "seconds",
    "times",
]

PLAIN_WIDTH = 120
"""Columns where there is no terminal to ask and COLUMNS is not set."""

VERDICT_STYLES = {"pass": "green", "failed": "red", "review": "yellow", "incomplete": "yellow"}
"""Of a run or comparison."""
STATUS_STYLES = {"passed": "green", "failed": "red", "invalid": "yellow", "ungraded": "yellow", "not_run": "yellow"}
"""Of a case or trial."""

Justify = Literal["left", "right"]
Column = tuple[str, Justify]
"""Heading and side."""
Cell = Text | str
"""What stands in a table: a `str` is data, made literal on its way."""


def console(file: IO[str]) -> Console:
    """A console that takes all text literally: no markup, no emoji codes, no guessed highlighting.

    NO_COLOR, FORCE_COLOR, TERM and COLUMNS are honoured.
    """
    made = Console(file=file, markup=False, emoji=False, highlight=False)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = PLAIN_WIDTH
    return made


@dataclass(frozen=True)
class Marks:
    """Small signs, each with the word that it stands for."""

    passed: str = "✓"
    failed: str = "✗"
    abstained: str = "?"
    broke: str = "!"
    nothing: str = "·"
    arrow: str = "→"
    dot: str = "·"
    dash: str = "–"
    more: str = "…"


ASCII = Marks(passed="+", failed="x", nothing="-", arrow="->", dot="|", dash="-", more="...")


@dataclass(frozen=True)
class _Trimmed:
    """A renderable without the blanks that fill its lines up to the width."""

    inner: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(self.inner, options, pad=False):
            while line and not line[-1].text.rstrip(" "):
                line.pop()
            yield from line[:-1]
            if line:
                yield Segment(line[-1].text.rstrip(" "), line[-1].style)
            yield Segment.line()


class Screen:
    """A console with marks, and the only way by which data reaches it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._encoding = console.encoding.lower()
        self.marks = Marks() if self._shows("✓✗·→–…") else ASCII

    def _shows(self, text: str) -> bool:
        try:
            text.encode(self._encoding)
        except (UnicodeEncodeError, LookupError):
            return False
        return True

    def plain(self, text: str) -> str:
        """`text` on one line, literal and in characters that the output can show."""
        shown = literal(text)
        return shown if self._encoding.startswith("utf") else self._encodable(shown)

    def _encodable(self, text: str) -> str:
        try:
            return text.encode(self._encoding, "backslashreplace").decode(self._encoding)
        except LookupError:
            return text.encode("ascii", "backslashreplace").decode("ascii")

    def text(self, text: str, style: str = "") -> Text:
        """Data on one line, cut when it is very long."""
        return Text(self.plain(shortened(text)), style=style)

    def block(self, text: str, style: str = "") -> Text:
        """Data whose line ends are kept, cut when it is very long."""
        return Text("\n".join(self.plain(line) for line in lines(shortened(text))), style=style)

    def join(self, parts: Iterable[Cell], separator: str | None = None) -> Text:
        """Parts that are not empty, with a dot between them; a `str` part is data."""
        between = Text(f" {self.marks.dot} " if separator is None else separator)
        between.stylize("dim")  # a style of its own would be that of the whole
        texts = [self.text(part) if isinstance(part, str) else part for part in parts]
        return between.join(text for text in texts if text)

    def title(self, text: str, note: str = "") -> None:
        """A blank line and the heading of a section."""
        self.console.print()
        self.line(Text.assemble((text, "bold"), (f"  {note}" if note else "", "dim")))

    def line(self, text: Text, *, indent: int = 0) -> None:
        """One paragraph, wrapped with its indent kept."""
        self.console.print(_Trimmed(Padding(text, (0, 0, 0, indent))))

    def unbroken(self, text: Text) -> None:
        """One line of output, however long: for lines that other programs read."""
        self.console.print(text, soft_wrap=True)

    def rows(
        self,
        columns: Sequence[Column],
        rows: Iterable[Sequence[Cell]],
        *,
        indent: int = 2,
        header: bool = True,
    ) -> None:
        """A table without lines. Headers and `str` cells are data; a column titled "" has no heading."""
        table = Table(box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0))
        for name, justify in columns:
            table.add_column(self.text(name), justify=justify, overflow="fold", no_wrap=justify == "right")
        for row in rows:
            table.add_row(*(self.text(cell) if isinstance(cell, str) else cell for cell in row))
        self.console.print(_Trimmed(Padding(table, (0, 0, 0, indent))))


def left(*names: str) -> list[Column]:
    """Columns of words."""
    return [(name, "left") for name in names]


def right(*names: str) -> list[Column]:
    """Columns of numbers, which are not wrapped."""
    return [(name, "right") for name in names]


def percent(rate: float) -> str:
    """A rate in percent with one decimal; only a true 0 or 1 reads `0 %` or `100 %`."""
    if rate in (0, 1):
        return f"{rate * 100:.0f} %"
    return f"{min(max(rate * 100, 0.1), 99.9):.1f} %"


def money(usd: float) -> str:
    """US dollars with at least two significant digits."""
    if usd == 0:
        return "$0"
    digits = 2 if usd >= 1 else max(2, 1 - floor(log10(usd)))
    return f"${usd:,.{digits}f}"


def seconds(milliseconds: float) -> str:
    """A duration in the unit that reads best."""
    if milliseconds < 1000:
        return f"{milliseconds:.0f} ms" if milliseconds >= 10 else f"{milliseconds:.1f} ms"
    return f"{milliseconds / 1000:.2f} s" if milliseconds < 60_000 else f"{milliseconds / 1000:,.0f} s"


def times(count: int, singular: str, plural: str | None = None) -> str:
    """`1 case`, `3 cases`."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"
