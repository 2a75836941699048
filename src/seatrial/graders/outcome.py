"""The grader of the environment's final state, as it was observed."""

from __future__ import annotations

from seatrial.core.grade import Grade
from seatrial.core.grading import abstained, failed, listed, passed
from seatrial.core.matching import MISSING, Mismatch, matches, mismatches
from seatrial.core.ports import GradingContext

__all__ = ["outcome"]


def outcome(context: GradingContext) -> Grade | None:
    """Every expected key was observed and matches. A key that nobody observed abstains: it did not "not happen"."""
    wanted, seen = context.expected.outcome, context.outcome
    if wanted is None:
        return None
    if seen is None:
        return abstained("the outcome was not observed")
    unseen = [key for key, matcher in wanted.items() if key not in seen and not matches(matcher, MISSING)]
    found = _mismatches(context, {key: matcher for key, matcher in wanted.items() if key not in unseen})
    if found:
        return failed("; ".join(map(str, found)))
    if unseen:
        return abstained(f"{listed(unseen)} of the outcome {'was' if len(unseen) == 1 else 'were'} not observed")
    return passed("the outcome is as expected")


def _mismatches(context: GradingContext, wanted: dict[str, object]) -> list[Mismatch]:
    return mismatches(wanted, dict(context.outcome or {}), path="outcome", input=context.case.input)
