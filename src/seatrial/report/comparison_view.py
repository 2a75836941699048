"""A comparison on the terminal: a line a case, the most urgent first, where broken ones part, figures side by side."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from seatrial.report.screen import VERDICT_STYLES, Cell, Screen, left, times
from seatrial.report.side_by_side_view import print_side_by_side
from seatrial.report.summary import VERDICTS
from seatrial.report.trace_diff import trace_diff
from seatrial.report.trace_diff_view import print_trace_diff
from seatrial.verdict.comparison import CaseComparison, Change, Comparison
from seatrial.verdict.side_by_side import side_by_side
from seatrial.verdict.sides import SideCase

__all__ = ["comparison_lines", "comparison_rows", "print_comparison"]

STYLES = {
    Change.BROKE: "bold red",
    Change.INCOMPLETE: "yellow",
    Change.WORSE: "red",
    Change.EDITED: "yellow",
    Change.REMOVED: "yellow",
    Change.NEW: "cyan",
    Change.FIXED: "bold green",
    Change.BETTER: "green",
    Change.SAME: "dim",
}
UNCHANGED_SHOWN = 5
"""More `same` cases than these are only counted, without `-v`."""
PROBLEMS_SHOWN = 5
"""Places that are named where a stored run is not as it was written."""
DIVERGENCES_SHOWN = 5
"""Cases whose trajectories are shown without `-v`."""


def print_comparison(console: Console, comparison: Comparison, *, strict: bool = False, verbosity: int = 0) -> None:
    """Show every case that changed, then the verdict. `verbosity` below 0: the verdict alone; above 0: all cases.

    On a terminal long reasons are wrapped in their column; elsewhere a case is one line whatever its length. Of every
    case that broke or got worse (`verbosity` above 0: that changed) the trajectories stand side by side, as far as
    traces are at hand.
    """
    screen = Screen(console)
    if verbosity >= 0:
        _sides(screen, comparison)
        comparison_rows(screen, _shown(comparison, verbosity))
        hidden = len(comparison.cases) - len(_shown(comparison, verbosity))
        if hidden:
            screen.line(Text(f"{screen.marks.more} and {times(hidden, 'case')} without a change; -v shows all", "dim"))
        _divergences(screen, comparison, verbosity > 0)
        print_side_by_side(screen, side_by_side(comparison))
        console.print()
    screen.unbroken(_verdict(screen, comparison, strict))


def _sides(screen: Screen, comparison: Comparison) -> None:
    rows = [("baseline", comparison.baseline), ("candidate", comparison.candidate)]
    screen.rows(left("", ""), [[Text(name, "dim"), label] for name, label in rows], indent=0, header=False)
    if comparison.curtailed:
        which = " and ".join(comparison.curtailed)
        screen.line(Text(f"the {which} stopped cases once they were decided: only verdicts compare", style="yellow"))
    for which in comparison.replayed:
        said = f"trials of the {which} were replayed from cassettes: no evidence beyond the run that recorded them"
        screen.line(Text(said, style="yellow"))
    for problem in comparison.problems[:PROBLEMS_SHOWN]:
        screen.line(Text.assemble(("not as it was written  ", "yellow"), screen.text(problem)))
    if len(comparison.problems) > PROBLEMS_SHOWN:
        rest = times(len(comparison.problems) - PROBLEMS_SHOWN, "more place")
        screen.line(Text(f"{screen.marks.more} and {rest}", "dim"))
    screen.console.print()


def _shown(comparison: Comparison, verbosity: int) -> list[CaseComparison]:
    changed = [row for row in comparison.cases if row.change is not Change.SAME]
    same = [row for row in comparison.cases if row.change is Change.SAME]
    return changed + (same if verbosity > 0 or len(same) <= UNCHANGED_SHOWN else [])


def _divergences(screen: Screen, comparison: Comparison, everything: bool) -> None:
    wanted = CHANGED if everything else LOST
    rows = [row for row in comparison.cases if row.change in wanted]
    shown = rows if everything else rows[:DIVERGENCES_SHOWN]
    for row in shown:
        diff = trace_diff(row)
        if diff is not None:
            screen.console.print()
            screen.line(Text.assemble((f"{row.change}  ", STYLES[row.change]), screen.text(row.case_id, "bold")))
            print_trace_diff(screen, diff, everything=everything)
    if len(shown) < len(rows):
        rest = times(len(rows) - len(shown), "more case")
        screen.line(Text(f"{screen.marks.more} and {rest} that broke or got worse; -v shows all", "dim"))


LOST = frozenset({Change.BROKE, Change.WORSE})
CHANGED = LOST | {Change.FIXED, Change.BETTER}


def comparison_rows(screen: Screen, shown: list[CaseComparison]) -> None:
    """A row a case: wrapped in columns on a terminal, one line elsewhere."""
    if screen.console.is_terminal:
        screen.rows(left("", "", ""), [_cells(screen, row) for row in shown], indent=0, header=False)
        return
    for line in comparison_lines(screen, shown):
        screen.unbroken(line)


def comparison_lines(screen: Screen, rows: list[CaseComparison]) -> list[Text]:
    """One line a case: the word, the id, both sides with their reasons."""
    return [screen.join(_cells(screen, row, widths=(10, _width(rows))), "  ") for row in rows]


def _width(rows: list[CaseComparison]) -> int:
    return min(max((len(row.case_id) for row in rows), default=0), 40)


def _cells(screen: Screen, row: CaseComparison, widths: tuple[int, int] = (0, 0)) -> list[Cell]:
    word = Text(f"{row.change!s:<{widths[0]}}", style=STYLES[row.change])
    case_id = Text(f"{screen.plain(row.case_id):<{widths[1]}}")
    return [word, case_id, _told(screen, row)]


def _told(screen: Screen, row: CaseComparison) -> Text:
    sides = [_side(screen, side) for side in (row.baseline, row.candidate) if side is not None]
    told = screen.join(sides, f" {screen.marks.arrow} ")
    notes = ["" if row.gates else "reported only"]
    if row.change is Change.BROKE:
        notes.append(row.grounds or "within noise")
    return screen.join([told, *(screen.text(note, "dim") for note in notes)])


def _side(screen: Screen, side: SideCase) -> Text:
    word = str(side.verdict).replace("_", " ")
    style = {"passed": "green", "failed": "red"}.get(word, "yellow")
    trials = f" {side.passes}/{side.trials}" if side.trials > 1 else ""
    reason = screen.text(f" ({side.reason})" if side.reason else "")
    return Text.assemble((word + trials, style), reason)


def _verdict(screen: Screen, comparison: Comparison, strict: bool) -> Text:
    word = VERDICTS[comparison.exit_code(strict=strict)]
    said = [f"{count} {change}" for change, count in comparison.counts.items()]
    if not comparison.in_common:
        said.append("no case in common")
    return Text.assemble((word.upper(), f"bold {VERDICT_STYLES[word]}"), "  ", screen.join(said))
