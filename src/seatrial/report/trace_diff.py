"""Two trajectories aligned: where they first part, and both side by side.

Steps are paired in order so that as little as possible is left over or differs: the same step costs nothing, the same
call with other arguments 1, a step that only one side made 1, another step in its place 1.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seatrial.verdict.comparison import CaseComparison
from seatrial.verdict.trajectories import Step, Trajectory

__all__ = ["Difference", "StepPair", "TraceDiff", "align", "changed_arguments", "trace_diff"]

_MOST_CELLS = 250_000
"""Above this product of lengths (beyond equal beginnings and ends) steps are paired by their places."""


class Difference(StrEnum):
    """How two steps in one place differ."""

    NONE = "none"
    ARGUMENTS = "arguments"
    STATE = "state"
    """The same step with another end, such as a refused call."""
    LEFT_OUT = "left_out"
    """Only the baseline made it."""
    ADDED = "added"
    """Only the candidate made it."""
    OTHER = "other"
    """Another step in its place."""


@dataclass(frozen=True)
class StepPair:
    """One place of the alignment; at least one side has a step."""

    baseline: Step | None
    candidate: Step | None

    @property
    def difference(self) -> Difference:
        """How they differ; arguments before state, for they are the likelier cause."""
        before, after = self.baseline, self.candidate
        if before is None:
            return Difference.ADDED
        if after is None:
            return Difference.LEFT_OUT
        if _place(before) != _place(after):
            return Difference.OTHER
        if before.arguments != after.arguments:
            return Difference.ARGUMENTS
        return Difference.NONE if before == after else Difference.STATE


@dataclass(frozen=True)
class TraceDiff:
    """Two aligned trajectories."""

    pairs: tuple[StepPair, ...]
    more: tuple[int, int] = (0, 0)
    """Steps of baseline and candidate that were not kept and so not compared."""
    baseline_trial: str = ""
    """Which trials these are, in words."""
    candidate_trial: str = ""
    names: tuple[str, str] = ("baseline", "candidate")
    """What the two sides are called."""

    @property
    def first(self) -> int | None:
        """Index of the first pair that differs; None when none does."""
        return next((at for at, pair in enumerate(self.pairs) if pair.difference is not Difference.NONE), None)


def trace_diff(row: CaseComparison) -> TraceDiff | None:
    """The baseline's usual trajectory of a case beside that of the candidate's first failed trial (where none failed:
    its usual one). None when a side has none.
    """
    before, after = row.baseline, row.candidate
    usual = None if before is None else before.usual_trajectory()
    if before is None or after is None or usual is None:
        return None
    failing = after.failing
    other = after.usual_trajectory() if failing is None else after.trajectory(failing)
    if other is None:
        return None
    detail = max(before.detail, after.detail, key=list(type(before.detail)).index)  # the one that keeps less
    return align(
        usual.cut(detail),
        other.cut(detail),
        candidate_trial="usual trial" if failing is None else f"trial {failing.trial_index}",
        baseline_trial="usual trial",
    )


def align(
    before: Trajectory,
    after: Trajectory,
    *,
    baseline_trial: str = "",
    candidate_trial: str = "",
    names: tuple[str, str] = ("baseline", "candidate"),
) -> TraceDiff:
    """Pair the steps of two trajectories; equal ones give pairs without a difference.

    Where the order of one is unknown, calls and hand-offs are compared apart. Where one was cut, only as many steps of
    the other are compared as were kept.
    """
    if not (before.ordered and after.ordered):
        before, after = before.apart, after.apart
    first, second = _as_far_as_kept(before, after), _as_far_as_kept(after, before)
    more = (before.more + len(before.steps) - len(first), after.more + len(after.steps) - len(second))
    return TraceDiff(tuple(_aligned(first, second)), more, baseline_trial, candidate_trial, names)


def _as_far_as_kept(trajectory: Trajectory, other: Trajectory) -> Sequence[Step]:
    return trajectory.steps[: len(other.steps)] if other.more else trajectory.steps


def _place(step: Step) -> tuple[Any, ...]:
    """What makes two steps the same one."""
    return (step.kind, step.name, step.source, step.turn)


def _aligned(before: Sequence[Step], after: Sequence[Step]) -> Iterator[StepPair]:
    start = _equal_beginning(before, after)
    end = _equal_beginning(before[start:][::-1], after[start:][::-1])
    middle = (before[start : len(before) - end], after[start : len(after) - end])
    yield from map(StepPair, before[:start], after[:start])
    yield from _by_place(*middle) if len(middle[0]) * len(middle[1]) > _MOST_CELLS else _cheapest(*middle)
    yield from map(StepPair, before[len(before) - end :], after[len(after) - end :])


def _equal_beginning(before: Sequence[Step], after: Sequence[Step]) -> int:
    equal = (first == second for first, second in zip(before, after, strict=False))
    return next((at for at, same in enumerate(equal) if not same), min(len(before), len(after)))


def _by_place(before: Sequence[Step], after: Sequence[Step]) -> Iterator[StepPair]:
    shorter = min(len(before), len(after))
    yield from map(StepPair, before[:shorter], after[:shorter])
    yield from (StepPair(step, None) for step in before[shorter:])
    yield from (StepPair(None, step) for step in after[shorter:])


def _cost(before: Step, after: Step) -> float:
    if before == after:
        return 0
    return 1 if _place(before) == _place(after) else 1.5


def _cheapest(before: Sequence[Step], after: Sequence[Step]) -> Iterator[StepPair]:
    """The cheapest alignment (Needleman and Wunsch 1970), read off from its table of costs of the rests."""
    costs = _costs_of_rests(before, after)
    i = j = 0
    while i < len(before) and j < len(after):
        if costs[i][j] == costs[i + 1][j + 1] + _cost(before[i], after[j]):
            yield StepPair(before[i], after[j])
            i, j = i + 1, j + 1
        elif costs[i][j] == costs[i + 1][j] + 1:
            yield StepPair(before[i], None)
            i += 1
        else:
            yield StepPair(None, after[j])
            j += 1
    yield from (StepPair(step, None) for step in before[i:])
    yield from (StepPair(None, step) for step in after[j:])


def _costs_of_rests(before: Sequence[Step], after: Sequence[Step]) -> list[list[float]]:
    """`[i][j]`: cost of aligning before[i:] with after[j:]. All costs are halves: sums of them are exact."""
    rows, columns = len(before), len(after)
    costs: list[list[float]] = [[0.0] * (columns + 1) for _ in range(rows + 1)]
    costs[rows] = [float(columns - j) for j in range(columns + 1)]
    for i in reversed(range(rows)):
        costs[i][columns] = float(rows - i)
        for j in reversed(range(columns)):
            paired = costs[i + 1][j + 1] + _cost(before[i], after[j])
            costs[i][j] = min(paired, costs[i + 1][j] + 1, costs[i][j + 1] + 1)
    return costs


_ABSENT = object()


def changed_arguments(pair: StepPair) -> list[tuple[str, tuple[Any, ...], tuple[Any, ...]]]:
    """`(name, before, after)` of arguments that differ, each side's value in a tuple that is empty where it has none.

    Arguments that are no mapping on a side stand as a whole under an empty name.
    """
    before, after = (None if step is None else step.arguments for step in (pair.baseline, pair.candidate))
    before, after = ({} if value is None else value for value in (before, after))
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return [("", (before,), (after,))]
    return [
        (name, _held(before, name), _held(after, name))
        for name in {**before, **after}
        if before.get(name, _ABSENT) != after.get(name, _ABSENT)
    ]


def _held(arguments: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    return (arguments[name],) if name in arguments else ()
