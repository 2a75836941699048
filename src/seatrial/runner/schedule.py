"""Which trials run, in which order: a TrialSource of fixed numbers."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from seatrial.core.ledger import Counted
from seatrial.core.ports import PlannedCase
from seatrial.core.trial import TrialKey

__all__ = ["FixedTrials"]


class FixedTrials:
    """Every case its planned number of trials: first trials of all cases in file order, then second ones, ...

    `only`: no other trials than these; None = all.
    """

    def __init__(self, planned: Sequence[PlannedCase], only: Container[TrialKey] | None = None) -> None:
        trials = self._all(planned)
        self._waiting = trials if only is None else (item for item in trials if _key(*item) in only)

    @staticmethod
    def _all(planned: Sequence[PlannedCase]) -> Iterator[tuple[PlannedCase, int]]:
        most = max((case.trials for case in planned), default=0)
        return ((case, index) for index in range(1, most + 1) for case in planned if index <= case.trials)

    def next(self) -> tuple[PlannedCase, int] | None:
        """The next trial, or None when all were handed out."""
        return next(self._waiting, None)

    def finished(self, record: Counted) -> None:
        """Fixed numbers do not depend on results."""


def _key(planned: PlannedCase, index: int) -> TrialKey:
    return TrialKey(case_id=planned.case.id, trial_index=index)
