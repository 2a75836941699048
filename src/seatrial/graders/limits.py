"""Graders of what a trial took: steps, time, money. No measured time or cost stands in a reason."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.core.grade import Grade, Tally
from seatrial.core.grading import abstained, count, failed, passed
from seatrial.core.ports import GradingContext
from seatrial.core.trace import ModelCallEvent, ToolCallEvent

__all__ = ["max_estimated_cost_usd", "max_latency_ms", "max_steps"]


def max_steps(context: GradingContext) -> Grade | None:
    """`step_efficiency`: 1 within the maximum, then 1 - excess / maximum, not below 0; fails above it."""
    most, steps = context.expected.max_steps, context.trace.steps
    if most is None:
        return None
    if steps is None:
        return abstained("neither model calls nor tool calls were observed")
    taken = count(steps, "step") + (" (tool calls)" if context.trace.steps_are_tool_calls else "")
    tallies = {"steps": Tally(hit=steps, of=1)}
    if steps <= most:
        return passed(f"{taken}, at most {most}", tallies=tallies)
    score = max(0.0, 1 - (steps - most) / most)
    return failed(f"{taken}, more than {most}", score=score, evidence=_steps(context)[most:], tallies=tallies)


def _steps(context: GradingContext) -> list[int]:
    """Event numbers of the steps, in order."""
    trace = context.trace
    kind = ToolCallEvent if trace.steps_are_tool_calls else ModelCallEvent
    return [event.number for event in trace.events if isinstance(event, kind)]


def max_latency_ms(context: GradingContext) -> Grade | None:
    """The agent's own time is within the limit."""
    return _within(context.latency_ms, context.case.thresholds.max_latency_ms, "ms", "latency")


def max_estimated_cost_usd(context: GradingContext) -> Grade | None:
    """The cost is known and within the limit."""
    limit = context.case.thresholds.max_estimated_cost_usd
    return _within(context.cost_usd, limit, "USD", "cost", evidence=_model_calls(context))


def _model_calls(context: GradingContext) -> list[int]:
    return [call.number for call in context.trace.of(ModelCallEvent)]


def _within(
    measured: float | None, limit: float | None, unit: str, what: str, evidence: Sequence[int] = ()
) -> Grade | None:
    if limit is None:
        return None
    if measured is None:
        return abstained(f"the {what} is unknown")
    if measured > limit:
        return failed(f"above the limit of {limit:.12g} {unit}", evidence=evidence)
    return passed(f"within the limit of {limit:.12g} {unit}")
