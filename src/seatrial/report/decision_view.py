"""A release decision on the terminal: both builds, suites and figures side by side, every gate, the verdict last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from rich.console import Console
from rich.text import Text

from seatrial.core.decision import Decision, DecisionVerdict, GateResult, UsedException
from seatrial.report.metric_text import difference_text, figure_of, limit_of, metric_of
from seatrial.report.release_rows import FigureLine, SuiteLine, build_parts, figure_lines, suite_lines
from seatrial.report.screen import Cell, Column, Screen, left, percent, right, times
from seatrial.verdict.comparison import Comparison

__all__ = ["print_decision"]

Row = Mapping[str, Any]

NAMES_SHOWN = 6
"""Cases named per gate, and per list of new, edited or removed ones, without `-v`."""
REASONS_SHOWN = 3
"""In the last line."""

STYLES = {
    DecisionVerdict.PASS: "green",
    DecisionVerdict.REVIEW: "yellow",
    DecisionVerdict.INCOMPLETE: "yellow",
    DecisionVerdict.BLOCK: "red",
}


def print_decision(
    console: Console,
    decision: Decision,
    *,
    summary: Row | None = None,
    comparison: Comparison | None = None,
    verbosity: int = 0,
) -> None:
    """Show a decision. `verbosity` below 0: the verdict's line alone; above 0: every case that counts against a gate.

    `summary` is the content of `results.json` of the candidate, all its runs together: without it suites and figures
    are left out. `comparison` is the one that the decision rests on: without it they stand alone.
    """
    screen = Screen(console)
    if verbosity >= 0:
        everything = verbosity > 0
        _builds(screen, decision)
        if summary is not None:
            _suites(screen, suite_lines(summary, comparison))
            _figures(screen, figure_lines(summary, comparison))
        _gates(screen, decision)
        _against(screen, decision.gates, everything)
        _exceptions(screen, decision.exceptions)
        _changes(screen, decision, everything)
        console.print()
    screen.unbroken(_verdict(screen, decision))


def _builds(screen: Screen, decision: Decision) -> None:
    sides = {"candidate": decision.candidate, "baseline": decision.baseline}
    rows: list[list[Cell]] = [[Text(name, "dim"), screen.join(build_parts(build))] for name, build in sides.items()]
    screen.rows(left("", ""), rows, indent=0, header=False)


# --- suites and figures ----------------------------------------------------------------------------------------------


def _suites(screen: Screen, suites: Sequence[SuiteLine]) -> None:
    compared = any(line.common for line in suites)
    screen.title("Suites", "cases passed, and trial pass rate" + (" beside the baseline's" if compared else ""))
    columns = [*left("suite"), *right("passed", "pass rate")]
    columns += [*right("baseline", "difference"), *left("")] if compared else []
    screen.rows(columns, [_suite(screen, line, compared) for line in suites])


def _suite(screen: Screen, line: SuiteLine, compared: bool) -> list[Cell]:
    name = screen.text(line.suite)
    if not line.gate:
        name.append("  reported only", style="dim")
    passed = Text(f"{line.passed}/{line.total}", style="" if line.passed == line.total else "red")
    rate = Text("none", "yellow") if line.rate is None else Text(percent(line.rate))
    if not compared:
        return [name, passed, rate]
    if line.baseline is None or line.difference is None:
        return [name, passed, rate, Text("none", "dim"), "", ""]
    difference = Text(difference_text("share", line.difference), style=_leaning(line.difference))
    return [name, passed, rate, percent(line.baseline), difference, Text(line.note, "dim")]


def _leaning(difference: float) -> str:
    """Better is green, worse is red, for figures of which more is better."""
    return "dim" if not difference else ("green" if difference > 0 else "red")


def _figures(screen: Screen, figures: Sequence[FigureLine]) -> None:
    compared = any(line.baseline is not None for line in figures)
    screen.title("Figures")
    columns = [*left("", ""), *right("candidate")]
    columns += [*right("baseline", "difference")] if compared else []
    rows: list[list[Cell]] = []
    for group, lines in groupby(figures, key=lambda line: line.group):
        for at, line in enumerate(lines):
            rows.append([Text("" if at else group, "dim"), *_figure(screen, line, compared)])
    _rows(screen, [*columns, *left("counted over")], rows)


def _rows(screen: Screen, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]) -> None:
    """A table whose last column is wrapped where the screen is narrow, and left out where it is very narrow."""
    cells = [[screen.text(name) for name, _ in columns], *([_cell(screen, cell) for cell in row] for row in rows)]
    *others, last = (max(cell.cell_len for cell in column) + _GAP for column in zip(*cells, strict=True))
    kept = len(columns) if sum(others) + min(last, _WRAPPED) <= screen.console.width else len(columns) - 1
    screen.rows(columns[:kept], [row[:kept] for row in rows])


_GAP = 2
_WRAPPED = 32
"""Columns that a wrapped column needs, so that the others keep their width."""


def _cell(screen: Screen, cell: Cell) -> Text:
    return screen.text(cell) if isinstance(cell, str) else cell


def _figure(screen: Screen, line: FigureLine, compared: bool) -> list[Cell]:
    value = Text(line.text, style="yellow" if line.value is None else "")
    cells: list[Cell] = [screen.join([line.name, line.kind], ": "), value]
    if compared:
        cells += [line.baseline_text, Text(line.difference_text, style="" if line.difference else "dim")]
    return [*cells, Text(line.counts, "dim")]


# --- gates -----------------------------------------------------------------------------------------------------------


def _gates(screen: Screen, decision: Decision) -> None:
    screen.console.print()
    screen.line(Text("RELEASE DECISION", style="bold"))
    if not decision.gates:
        screen.line(Text("no gate", style="dim"), indent=2)
        return
    columns = [*left("gate"), *right("figure"), *left("limit", "verdict", "counted over")]
    rows: list[list[Cell]] = []
    for group, gates in groupby(decision.gates, key=_group):
        rows.append([screen.text(group, "dim"), "", "", "", ""])
        rows += [_gate(screen, gate) for gate in gates]
    _rows(screen, columns, rows)


def _group(gate: GateResult) -> str:
    return gate.name.rpartition(".")[0] or gate.name


def _gate(screen: Screen, gate: GateResult) -> list[Cell]:
    quiet = "" if gate.decides else "dim"
    figure = figure_of(gate) or screen.marks.dash
    return [
        screen.text(f"  {metric_of(gate)}", quiet),
        Text(figure, quiet),
        Text(limit_of(gate), quiet),
        _word(gate),
        screen.text(gate.counts, "dim"),
    ]


def _word(gate: GateResult) -> Text:
    if not gate.applies:
        return Text("does not apply", style="dim")
    if gate.verdict is DecisionVerdict.PASS:
        return Text("pass", style="green")
    if gate.excepted:
        return Text(f"{gate.verdict}, excepted", style="dim")
    return Text(gate.verdict.upper(), style=f"bold {STYLES[gate.verdict]}")


def _against(screen: Screen, gates: Sequence[GateResult], everything: bool) -> None:
    """Why each gate that does not hold does not, the heaviest first."""
    wrong = [gate for gate in gates if gate.verdict is not DecisionVerdict.PASS and gate.applies]
    told = [gate for gate in wrong if gate.reason or gate.cases]
    if not told:
        return
    screen.title("Why")
    for gate in sorted(told, key=lambda gate: (gate.excepted, -gate.verdict.weight)):
        word = screen.text(gate.name, "dim" if gate.excepted else STYLES[gate.verdict])
        screen.line(Text.assemble(word, "  ", screen.text(gate.reason)), indent=2)
        if gate.cases:
            screen.line(screen.text(_named(gate.cases, everything), "dim"), indent=6)


def _named(names: Sequence[str], everything: bool) -> str:
    shown = names if everything else names[:NAMES_SHOWN]
    rest = f" and {len(names) - len(shown)} more; -v names all" if len(shown) < len(names) else ""
    return ", ".join(shown) + rest


# --- what else a reader has to know ----------------------------------------------------------------------------------


def _exceptions(screen: Screen, exceptions: Sequence[UsedException]) -> None:
    if not exceptions:
        return
    screen.title("Exceptions")
    rows: list[list[Cell]] = []
    for one in exceptions:
        state = Text("used", "yellow") if one.used else Text("not used", "bold yellow")
        parts = [one.target, one.reason, f"by {one.approver}", f"until {one.expires}", one.note]
        rows.append([state, screen.join(parts)])
    screen.rows(left("", ""), rows, header=False)


def _changes(screen: Screen, decision: Decision, everything: bool) -> None:
    changes = [
        ("new", decision.new, "held to absolute gates only"),
        ("edited", decision.edited, "held to absolute gates only"),
        ("removed", decision.removed, "in the baseline, did not run"),
    ]
    told = [(word, names, note) for word, names, note in changes if names]
    if not told:
        return
    screen.title("Cases that cannot be compared")
    rows: list[list[Cell]] = [
        [
            Text(word, style="yellow" if word == "removed" else "cyan"),
            Text.assemble(screen.text(_named(names, everything)), "  ", (note, "dim")),
        ]
        for word, names, note in told
    ]
    screen.rows(left("", ""), rows, header=False)


def _verdict(screen: Screen, decision: Decision) -> Text:
    word = Text(decision.verdict.upper(), style=f"bold reverse {STYLES[decision.verdict]}")
    reasons = list(decision.reasons[:REASONS_SHOWN]) or _counts(decision)
    rest = len(decision.reasons) - len(decision.reasons[:REASONS_SHOWN])
    if rest:
        reasons.append(f"and {times(rest, 'more reason', 'more reasons')}")
    return Text.assemble(word, "  ", screen.join(reasons))


def _counts(decision: Decision) -> list[str]:
    """Gates that hold, where no reason was given."""
    applying = [gate for gate in decision.gates if gate.decides]
    holding = sum(gate.verdict is DecisionVerdict.PASS for gate in applying)
    return [f"{holding} of {times(len(applying), 'gate')} hold"]
