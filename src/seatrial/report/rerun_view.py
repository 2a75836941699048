"""A trial beside the one that was run again, on the terminal: what came of both, and where they part."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.text import Text

from seatrial.core.grade import Grade
from seatrial.core.trial import TrialRecord
from seatrial.report.literal import value_text
from seatrial.report.screen import STATUS_STYLES, Cell, Screen, left, times
from seatrial.report.trace_diff import TraceDiff
from seatrial.report.trace_diff_view import print_trace_diff
from seatrial.verdict.trials import failure_text, reason_of

__all__ = ["print_rerun"]


def print_rerun(
    console: Console, before: TrialRecord, after: TrialRecord, diff: TraceDiff, *, everything: bool = False
) -> None:
    """Show a recorded trial and the new one side by side. `everything`: equal steps and grades too."""
    screen = Screen(console)
    screen.line(screen.join([screen.text(str(before.key), "bold"), _statuses(screen, before, after)], "  "))
    screen.title("Steps")
    if diff.first is None:
        count = f"{times(len(diff.pairs), 'step')} of calls and hand-offs" if diff.pairs else "no call and no hand-off"
        screen.line(Text(f"both did the same ({count})", style="dim"), indent=2)
    if diff.first is not None or everything:
        print_trace_diff(screen, diff, everything=everything, indent=2)
    screen.title("Grades")
    rows = list(_rows(screen, before, after, everything=everything))
    if rows:
        screen.rows(left("", "then", "now", "why"), rows)
    else:
        screen.line(Text("every grade is as it was", style="dim"), indent=2)
    _answers(screen, before, after)


def _statuses(screen: Screen, before: TrialRecord, after: TrialRecord) -> Text:
    then, now = str(before.status), str(after.status)
    if then == now:
        return Text(f"{then}, as before", style=STATUS_STYLES[then])
    return Text.assemble((f"{then} then", STATUS_STYLES[then]), ", ", (f"{now} now", STATUS_STYLES[now]))


def _rows(screen: Screen, before: TrialRecord, after: TrialRecord, *, everything: bool) -> Iterator[list[Cell]]:
    """A row a grade, with both verdicts; why as it is now, else as it was."""
    first, second = _said(before), _said(after)
    if before.stop_reason is not after.stop_reason or reason_of(before) != reason_of(after):
        yield ["ended", *(str(one.stop_reason).replace("_", " ") for one in (before, after)), _why(screen, after)]
    for name in {**first, **second}:
        then, now = first.get(name, ("none", "")), second.get(name, ("none", ""))
        if everything or then != now:
            yield [name, then[0], now[0], screen.text(now[1] or then[1])]


def _said(record: TrialRecord) -> dict[str, tuple[str, str]]:
    """Verdict and reason by grade; a grader that broke says so."""
    said = {grade.name: _verdict(grade) for grade in record.grades}
    return said | {failure.name: ("broke", failure_text(failure)) for failure in record.grader_failures}


def _verdict(grade: Grade) -> tuple[str, str]:
    return str(grade.verdict), grade.reason


def _why(screen: Screen, record: TrialRecord) -> Text:
    return screen.text(reason_of(record))


def _answers(screen: Screen, before: TrialRecord, after: TrialRecord) -> None:
    if before.output == after.output:
        return
    screen.title("Final output")
    for word, record in (("then", before), ("now", after)):
        shown = "none" if record.output is None else value_text(record.output)
        screen.rows(left("", ""), [[Text(word, style="dim"), screen.block(shown)]], header=False)
