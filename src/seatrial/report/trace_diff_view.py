"""Two trajectories on the terminal: where they part, in words, and the steps around it side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.text import Text

from seatrial.report.literal import inline
from seatrial.report.screen import Cell, Screen, left, right, times
from seatrial.report.trace_diff import Difference, StepPair, TraceDiff, changed_arguments
from seatrial.report.trace_view import call_text
from seatrial.verdict.trajectories import Step

__all__ = ["divergence_text", "print_trace_diff", "step_text"]

BEFORE_SHOWN = 2
"""Equal steps shown before the first difference."""
AFTER_SHOWN = 6
"""Steps shown from the first difference on."""
ARGUMENTS_SHOWN = 3
TEXT_SHOWN = 60
"""Characters of an argument's value."""

_MARKS = {
    Difference.NONE: "",
    Difference.ARGUMENTS: "~",
    Difference.STATE: "~",
    Difference.LEFT_OUT: "-",
    Difference.ADDED: "+",
    Difference.OTHER: "~",
}
_STYLES = {Difference.NONE: "dim", Difference.LEFT_OUT: "red", Difference.ADDED: "yellow"}


def print_trace_diff(screen: Screen, diff: TraceDiff, *, everything: bool = False, indent: int = 4) -> None:
    """Show where two trajectories part, and their steps (`everything`: all of them, else those around that place)."""
    screen.line(divergence_text(screen, diff), indent=indent)
    if diff.first is None and not everything:
        return
    start, stop = (0, len(diff.pairs)) if everything or diff.first is None else _window(diff, diff.first)
    rows = [_row(screen, at, diff.pairs[at]) for at in range(start, stop)]
    dim = "dim"
    heads = [_head(diff.names[0], diff.baseline_trial), _head(diff.names[1], diff.candidate_trial)]
    if start:
        rows.insert(0, ["", "", Text(f"{screen.marks.more} {times(start, 'equal step')}", dim), ""])
    if stop < len(diff.pairs):
        rest = len(diff.pairs) - stop
        rows.append(["", "", Text(f"{screen.marks.more} {times(rest, 'more step')}; -v shows all", dim), ""])
    if any(diff.more):
        rows.append(["", "", *(Text(_not_kept(screen, count), dim) for count in diff.more)])
    screen.rows([*right(""), *left("", *heads)], rows, indent=indent)


def _head(side: str, trial: str) -> str:
    return f"{side}, {trial}" if trial else side


def _window(diff: TraceDiff, first: int) -> tuple[int, int]:
    """Indices of the pairs to show; a gap of a single step is not worth a line that tells of it."""
    start, stop = first - BEFORE_SHOWN, first + AFTER_SHOWN
    return (0 if start <= 1 else start), (len(diff.pairs) if stop >= len(diff.pairs) - 1 else stop)


def _not_kept(screen: Screen, count: int) -> str:
    return f"{screen.marks.more} {times(count, 'step')} not compared" if count else ""


def _row(screen: Screen, at: int, pair: StepPair) -> list[Cell]:
    difference = pair.difference
    style = _STYLES.get(difference, "yellow")
    missing = Text(screen.marks.dash, style="dim")
    before, after = (
        missing if step is None else screen.text(step_text(step), side_style)
        for step, side_style in ((pair.baseline, "dim" if style == "dim" else ""), (pair.candidate, style))
    )
    return [Text(str(at + 1), style="dim"), Text(_MARKS[difference], style=f"bold {style}"), before, after]


def step_text(step: Step, limit: int = TEXT_SHOWN) -> str:
    """A step as one would write it: `pay(amount=5): failed`, `hand-off to X`, `approval of pay(amount=5): granted`."""
    done = call_text(step.name, step.arguments, limit)
    if step.kind == "handoff":
        done = f"hand-off to {done if step.arguments else step.name}"
    if step.kind == "approval":
        done = f"approval of {done}"
    state = f": {step.state.replace('_', ' ')}" if step.state else ""
    return f"turn {step.turn}: {done}{state}" if step.turn > 1 else done + state


def divergence_text(screen: Screen, diff: TraceDiff) -> Text:
    """In a sentence where the trajectories first part."""
    if diff.first is None:
        count = f"{times(len(diff.pairs), 'step')} of calls and hand-offs" if diff.pairs else "no call and no hand-off"
        far = f" as far as the {diff.names[0]} keeps them" if any(diff.more) else ""
        return Text(f"both did the same{far} ({count}); they differ in what was said or came of it", style="dim")
    pair = diff.pairs[diff.first]
    told = _told(screen, pair, diff.names[1])
    return Text.assemble((f"they part at step {diff.first + 1}: ", "bold"), told)


def _told(screen: Screen, pair: StepPair, candidate: str) -> Text:
    before, after = pair.baseline, pair.candidate
    if after is None:
        return screen.text(f"the {candidate} leaves out {_named(before)}")
    if before is None:
        return screen.text(f"the {candidate} adds {_named(after)}")
    if pair.difference is Difference.OTHER:
        return screen.text(f"{_named(after)} in place of {_named(before)}")
    arrow = f" {screen.marks.arrow} "
    if pair.difference is Difference.STATE:
        states = [(step.state or "executed").replace("_", " ") for step in (before, after)]
        return Text.assemble(screen.text(f"{_named(after)}: "), screen.join(states, arrow))
    return Text.assemble(screen.text(f"{_named(after)}: "), _arguments(screen, pair, arrow))


def _named(step: Step | None) -> str:
    if step is None:
        return ""
    words = {"call": "", "handoff": "the hand-off to ", "approval": "the approval of "}
    where = f" in turn {step.turn}" if step.turn > 1 else ""
    return f"{words[step.kind]}{step.name}{where}"


def _arguments(screen: Screen, pair: StepPair, arrow: str) -> Text:
    changes = changed_arguments(pair)
    told = [
        Text.assemble(screen.text(f"{name} " if name else ""), screen.join([_value(before), _value(after)], arrow))
        for name, before, after in changes[:ARGUMENTS_SHOWN]
    ]
    if len(changes) > ARGUMENTS_SHOWN:
        told.append(Text(f"and {len(changes) - ARGUMENTS_SHOWN} more"))
    return Text(", ").join(told)


def _value(held: Sequence[Any]) -> str:
    return inline(held[0], TEXT_SHOWN) if held else "none"
