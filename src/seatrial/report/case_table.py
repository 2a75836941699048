"""Cases x grades: one row a case, in the widest of three forms that fits the screen.

Grade names head the columns; where they do not fit, their numbers in the table of graders do; where even those do not,
one column tells the grades that did not pass by name and counts the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len
from rich.text import Text

from seatrial.report.screen import STATUS_STYLES, Cell, Screen, left, right

__all__ = ["legend", "mark", "print_case_table"]

Row = Mapping[str, Any]


def print_case_table(screen: Screen, cases: Sequence[Row], names: Sequence[str]) -> list[str]:
    """Show the table; gives the label of every grader in it: its name or its number."""
    cells = [_cells(screen, case, names) for case in cases]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    for labels in (list(names), numbers):
        if _width(screen, cases, cells, labels) <= screen.console.width:
            rows = [[*_head(screen, case), *row] for case, row in zip(cases, cells, strict=True)]
            screen.rows([*_HEADS, *left(*labels)], rows)
            return labels
    rows = [[*_head(screen, case), _told(screen, names, row)] for case, row in zip(cases, cells, strict=True)]
    screen.rows([*_HEADS, *left("grades")], rows)
    return list(names)


_HEADS = [*left("", "case"), *right("passed")]
_GAP = 2


def _head(screen: Screen, case: Row) -> list[Cell]:
    style = "" if case["verdict"] == "passed" else "bold"
    return [mark(screen, case["verdict"]), screen.text(case["id"], style), f"{case['passes']}/{case['trials']}"]


def _width(screen: Screen, cases: Sequence[Row], cells: Sequence[Sequence[Text]], labels: Sequence[str]) -> int:
    """Columns that the table takes when nothing in it is wrapped."""
    ids = max((cell_len(screen.plain(case["id"])) for case in cases), default=0)
    counts = max([len("passed"), *(len(f"{case['passes']}/{case['trials']}") for case in cases)])
    widths = [cell_len(screen.plain(label)) for label in labels]
    grades = [max([width, *(row[at].cell_len for row in cells)]) for at, width in enumerate(widths)]
    return _GAP + sum(width + _GAP for width in (1, ids, counts, *grades)) - _GAP


def _cells(screen: Screen, case: Row, names: Sequence[str]) -> list[Text]:
    grades = {grade["name"]: grade for grade in case["grades"]}
    return [_cell(screen, grades.get(name), case["run"]) for name in names]


def _told(screen: Screen, names: Sequence[str], cells: Sequence[Text]) -> Text:
    """`outcome 2/3, handoff ?, + 4`: what did not pass by name, how many did."""
    given = [(name, cell) for name, cell in zip(names, cells, strict=True) if cell]
    passed = [cell for _, cell in given if cell.plain == screen.marks.passed]
    told = [Text.assemble(screen.text(name), " ", cell) for name, cell in given if cell.plain != screen.marks.passed]
    if passed:
        told.append(Text(f"{screen.marks.passed} {len(passed)}", style="green"))
    return screen.join(told, ", ")


def mark(screen: Screen, verdict: str) -> Text:
    """The sign of a verdict word."""
    marks = screen.marks
    signs = {"passed": marks.passed, "failed": marks.failed, "invalid": marks.broke}
    return Text(signs.get(verdict, marks.nothing), style=STATUS_STYLES[verdict])


def _cell(screen: Screen, grade: Row | None, run: int) -> Text:
    """One grade of one case over its trials: a sign when they agree, else passed/trials."""
    marks = screen.marks
    if grade is None:
        return Text("")
    weight = "red" if grade["required"] else "yellow"
    if grade["failures"] and grade["failures"] + grade["passed"] == run:
        return Text(marks.broke if grade["failures"] == run else f"{grade['passed']}/{run}", style="yellow")
    if grade["passed"] == grade["of"]:
        return Text(marks.passed, style="green")
    if grade["failed"] == grade["of"]:
        return Text(marks.failed, style=weight)
    if grade["abstained"] == grade["of"]:
        return Text(marks.abstained, style="yellow")
    if grade["passed"] or grade["failed"]:
        return Text(f"{grade['passed']}/{run}", style=weight if grade["failed"] else "yellow")
    return Text(marks.broke if grade["failures"] else marks.nothing, style="yellow")


def legend(screen: Screen, cases: Sequence[Row]) -> str:
    """What the signs beyond passed and failed mean, when they occur."""
    grades = [grade for case in cases for grade in case["grades"]]
    marks, verdicts = screen.marks, {case["verdict"] for case in cases}
    signs = {
        f"{marks.abstained} not observed": any(grade["abstained"] for grade in grades),
        f"{marks.broke} invalid, or grader broke": "invalid" in verdicts or any(g["failures"] for g in grades),
        f"{marks.nothing} not run or not graded": bool({"not_run", "ungraded"} & verdicts),
    }
    return "  ".join(sign for sign, occurs in signs.items() if occurs)
