"""What valid trials took: time, money, steps, tokens. What is unknown in one of them is never free."""

from __future__ import annotations

from collections.abc import Callable
from math import fsum

from seatrial.core.grading import count
from seatrial.core.ledger import Counted
from seatrial.verdict.evidence import Evidence, Figure
from seatrial.verdict.figures import cost_figure, latency, measured

__all__ = ["cost_per_success", "mean_of_trials", "mean_steps", "p95_latency", "tokens"]


def p95_latency(evidence: Evidence) -> Figure:
    """95th percentile of the agent's own time; a trial that timed out took at least its limit."""
    found = latency(measured(evidence.results))
    if found.p95_ms is None:
        return Figure.none(_none_known("latency", evidence))
    return Figure(found.p95_ms, f"{found.counted} of {count(found.of, 'trial')}", missing=_gap(found.counted, found.of))


def _none_known(what: str, evidence: Evidence) -> str:
    return f"the {what} of no trial is known" if evidence.valid_count else "no case has a valid trial"


def _gap(known: int, of: int) -> str:
    return f"unknown in {of - known} of {count(of, 'trial')}" if known < of else ""


def cost_per_success(evidence: Evidence) -> Figure:
    """Cost of valid trials a passed one. With a cost unknown it is at least what is known."""
    found = cost_figure(measured(evidence.results), sum(result.passes for result in evidence.results))
    valid = found.valid
    if not evidence.valid_count:
        return Figure.none("no case has a valid trial")
    if not found.passes:
        return Figure.none("nothing passed")
    if not valid.counted:
        return Figure.none("the cost of no trial is known")
    return Figure(
        valid.known_usd / found.passes,
        f"{valid.known_usd:.4g} USD, {found.passes} passed of {count(evidence.valid_count, 'trial')}",
        missing=_gap(valid.counted, evidence.valid_count),
        floor=True,
    )


def mean_of_trials(what: str, read: Callable[[Counted], float | None]) -> Callable[[Evidence], Figure]:
    """The mean over valid trials of what `read` finds in a trial; None = unknown there."""

    def compute(evidence: Evidence) -> Figure:
        values = [read(trial.last) for trial in evidence.valid]
        known = [value for value in values if value is not None]
        if not known:
            return Figure.none(_none_known(what, evidence))
        counts = f"{len(known)} of {count(len(values), 'trial')}"
        return Figure(fsum(known) / len(known), counts, missing=_gap(len(known), len(values)))

    return compute


def tokens(record: Counted) -> float | None:
    """Input and output tokens of a trial; None when one of them is unknown."""
    read, written = record.tokens.input, record.tokens.output
    return None if read is None or written is None else read + written


def mean_steps(evidence: Evidence) -> Figure:
    """Mean steps; model calls and tool calls have no mean in common."""
    units = {trial.last.steps_are_tool_calls for trial in evidence.valid if trial.last.steps is not None}
    if len(units) > 1:
        return Figure.none("steps are model calls in some trials and tool calls in others")
    found = mean_of_trials("number of steps", lambda record: record.steps)(evidence)
    by_tools = Figure(found.value, f"{found.counts}, steps (tool calls)", missing=found.missing)
    return by_tools if units == {True} else found
