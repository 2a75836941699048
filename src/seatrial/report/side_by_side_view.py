"""Figures of both sides of a comparison on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rich.text import Text

from seatrial.core.metric import Unit
from seatrial.report.metric_text import difference_text, figure_text
from seatrial.report.screen import Cell, Screen, left, percent, right, times
from seatrial.verdict.side_by_side import Figure, HandoffPair, Measure, SideBySide, SuiteFigure, SuitePair, ToolPair
from seatrial.verdict.totals import JUDGE_SCORE, Tallied

__all__ = ["print_side_by_side"]


def print_side_by_side(screen: Screen, figures: SideBySide) -> None:
    """Show suites, tools, hand-offs and figures side by side; nothing where no case can be compared."""
    if not figures.suites:
        return
    _suites(screen, figures.suites)
    _tools(screen, figures.tools)
    _handoffs(screen, figures.handoffs)
    _measures(screen, figures.measures)


def _leaning(difference: float) -> str:
    return "dim" if not difference else ("green" if difference > 0 else "red")


# --- suites ----------------------------------------------------------------------------------------------------------


def _suites(screen: Screen, suites: tuple[SuitePair, ...]) -> None:
    screen.title("Suites", "trial pass rate over the cases that both sides ran in the same form")
    rows: list[list[Cell]] = [
        [
            _suite_name(screen, suite),
            str(suite.cases),
            _passed(suite.baseline),
            _passed(suite.candidate),
            percent(suite.baseline.rate),
            percent(suite.candidate.rate),
            Text(difference_text("share", suite.delta), style=_leaning(suite.delta)),
        ]
        for suite in suites
    ]
    columns = [*left("suite"), *right("cases", "passed", arrow(screen), "rate", arrow(screen), "difference")]
    screen.rows(columns, rows)


def arrow(screen: Screen) -> str:
    """Heads the candidate's column beside the baseline's."""
    return screen.marks.arrow


def _suite_name(screen: Screen, suite: SuitePair) -> Text:
    name = screen.text(suite.suite) if suite.suite else Text("together", style="dim")
    if not suite.gate and suite.suite:
        name.append("  reported only", style="dim")
    return name


def _passed(side: SuiteFigure) -> str:
    return f"{side.passed_cases:,}"


# --- tools and hand-offs ---------------------------------------------------------------------------------------------


def _tools(screen: Screen, tools: tuple[ToolPair, ...]) -> None:
    if not tools:
        return
    screen.title("Tools", "calls a trial; trials in which it was required and rightly called")
    columns = [*left("tool"), *right("calls", arrow(screen), "difference", "right", arrow(screen))]
    rows: list[list[Cell]] = []
    for tool in tools:
        right_calls: list[Cell] = [_ratio(screen, tally) for tally in tool.recall]
        rows.append([tool.tool, *_a_trial(tool), *right_calls])
    screen.rows(columns, rows)


def _a_trial(pair: ToolPair | HandoffPair) -> list[Cell]:
    counts = pair.calls if isinstance(pair, ToolPair) else pair.count
    before, after = (count / trials for count, trials in zip(counts, pair.trials, strict=True))
    difference = Text(difference_text("number", after - before), style="" if after != before else "dim")
    return [f"{before:.2f}", f"{after:.2f}", difference]


def _ratio(screen: Screen, tally: Tallied | None) -> Text:
    if tally is None or not tally.of:
        return Text(screen.marks.nothing, style="dim")
    return Text(f"{tally.hit:g} of {tally.of:g}", style="" if tally.hit == tally.of else "red")


def _handoffs(screen: Screen, handoffs: tuple[HandoffPair, ...]) -> None:
    if not handoffs:
        return
    screen.title("Hand-offs", "a trial")
    rows: list[list[Cell]] = [
        [screen.join([pair.source, pair.target], f" {screen.marks.arrow} "), *_a_trial(pair)] for pair in handoffs
    ]
    screen.rows([*left("from and to"), *right("baseline", "candidate", "difference")], rows)


# --- measures --------------------------------------------------------------------------------------------------------

_MEASURES: dict[str, tuple[str, Unit]] = {
    "median_latency_ms": ("median latency", "ms"),
    "latency_ms": ("mean latency", "ms"),
    "input_tokens": ("input tokens", "number"),
    "output_tokens": ("output tokens", "number"),
    "cost_usd": ("cost", "usd"),
    "steps": ("steps", "number"),
    "tool_call_steps": ("steps (tool calls)", "number"),
    JUDGE_SCORE: ("judge score", "number"),
}


def _measures(screen: Screen, measures: tuple[Measure, ...]) -> None:
    if not measures:
        return
    screen.title("Figures", "a trial, the mean over these cases")
    screen.rows(
        [*left(""), *right("baseline", "candidate", "difference"), *left("")],
        [_measure(measure) for measure in measures],
    )


def _measure(measure: Measure) -> list[Cell]:
    name, unit = _MEASURES[measure.name]
    show: Callable[[Figure], Text] = lambda figure: _figure(figure, unit)  # noqa: E731  twice the same, read at once
    cells: list[Cell] = [name, show(measure.baseline), show(measure.candidate)]
    if measure.delta is None:
        return [*cells, "", Text(", ".join(_lacking(measure)), style="yellow")]
    difference = Text(difference_text(unit, measure.delta), style="" if measure.delta else "dim")
    before = measure.baseline.value
    share = f"{measure.delta / before:+.0%}".replace("%", " %") if before and measure.delta else ""
    return [*cells, difference, Text("  ".join(part for part in (share, *_lacking(measure)) if part), style="dim")]


def _figure(figure: Figure, unit: Unit) -> Text:
    if figure.value is None:
        return Text("unknown", style="yellow")
    return Text(figure_text(unit, figure.value))


def _lacking(measure: Measure) -> Iterator[str]:
    """What is missing from a mean: it is over the trials that know the figure."""
    for side, figure in (("baseline", measure.baseline), ("candidate", measure.candidate)):
        if figure.counted < figure.of:
            yield f"{side}: {figure.counted:,} of {times(figure.of, 'trial')}"
