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
    whole = suites[-1]
    trials = " and ".join(f"{side.valid:,}" for side in (whole.baseline, whole.candidate))
    over = f"{times(whole.cases, 'case')} in common, {trials} trials"
    screen.title("Suites", f"cases passed, trial pass rate; {over}")
    rows: list[list[Cell]] = [
        [
            _suite_name(screen, suite),
            _passed(suite.baseline, suite.cases),
            _passed(suite.candidate, suite.cases),
            Text(difference_text("share", suite.delta), style=_leaning(suite.delta)),
        ]
        for suite in suites
    ]
    screen.rows([*left("suite"), *right("baseline", "candidate", "difference")], rows)


def _suite_name(screen: Screen, suite: SuitePair) -> Text:
    name = screen.text(suite.suite) if suite.suite else Text("together", style="dim")
    if not suite.gate and suite.suite:
        name.append("  reported only", style="dim")
    return name


def _passed(side: SuiteFigure, cases: int) -> str:
    return f"{side.passed_cases:,}/{cases:,}  {percent(side.rate):>6}"


# --- tools and hand-offs ---------------------------------------------------------------------------------------------


def _tools(screen: Screen, tools: tuple[ToolPair, ...]) -> None:
    if not tools:
        return
    screen.title("Tools", "calls a trial; of required and of called ones how many were right")
    rows: list[list[Cell]] = [
        [tool.tool, *_a_trial(screen, tool), _ratios(screen, tool.recall), _ratios(screen, tool.precision)]
        for tool in tools
    ]
    screen.rows([*left("tool"), *right("calls", "difference", "of required", "of called")], rows)


def _a_trial(screen: Screen, pair: ToolPair | HandoffPair) -> list[Cell]:
    counts = pair.calls if isinstance(pair, ToolPair) else pair.count
    before, after = (count / trials for count, trials in zip(counts, pair.trials, strict=True))
    difference = Text(difference_text("number", after - before), style="" if after != before else "dim")
    return [screen.join([f"{before:.2f}", f"{after:.2f}"], f" {screen.marks.arrow} "), difference]


def _ratios(screen: Screen, tallies: tuple[Tallied | None, Tallied | None]) -> Text:
    if not any(tally is not None and tally.of for tally in tallies):
        return Text(screen.marks.nothing, style="dim")
    return screen.join([_ratio(screen, tally) for tally in tallies], f" {screen.marks.arrow} ")


def _ratio(screen: Screen, tally: Tallied | None) -> Text:
    if tally is None or not tally.of:
        return Text(screen.marks.nothing, style="dim")
    return Text(f"{tally.hit:g}/{tally.of:g}", style="" if tally.hit == tally.of else "red")


def _handoffs(screen: Screen, handoffs: tuple[HandoffPair, ...]) -> None:
    if not handoffs:
        return
    screen.title("Hand-offs", "a trial")
    rows: list[list[Cell]] = [
        [screen.join([pair.source, pair.target], f" {screen.marks.arrow} "), *_a_trial(screen, pair)]
        for pair in handoffs
    ]
    screen.rows([*left("from and to"), *right("times", "difference")], rows)


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
    notes = [_share(measure.delta, measure.baseline.value), *_lacking(measure)]
    return [*cells, difference, Text("  ".join(note for note in notes if note), style="dim")]


def _share(delta: float, before: float | None) -> str:
    """The difference as a share of the baseline, where it is at least one percent."""
    share = round(100 * delta / before) if before else 0
    return f"{share:+} %" if share else ""


def _figure(figure: Figure, unit: Unit) -> Text:
    if figure.value is None:
        return Text("unknown", style="yellow")
    return Text(figure_text(unit, figure.value))


def _lacking(measure: Measure) -> Iterator[str]:
    """What is missing from a mean: it is over the trials that know the figure."""
    for side, figure in (("baseline", measure.baseline), ("candidate", measure.candidate)):
        if figure.counted < figure.of:
            yield f"{side}: {figure.counted:,} of {times(figure.of, 'trial')}"
