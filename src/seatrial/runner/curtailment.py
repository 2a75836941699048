"""Curtailment: a case gets no more trials than its verdict needs.

A case needs r passes of k trials; it is decided by the r-th pass, or by the fail that puts r out of reach. Trials stop
there **in the order of their numbers**: with s passes and f fails so far, at least min(r - s, k - r + 1 - f) further
trials are needed whatever they give, so that many may be in flight and never one more. Hence every trial that is
started is one that running them one by one would have come to: none is wasted, which trials are on record does not
depend on how many ran at once, and the path-count estimate (`seatrial.stats.sequential`) holds. The price is time: a
case whose every trial must pass runs one trial at a time, beside those of other cases.

An invalid trial is neither pass nor fail; the next one takes its place as long as there is one. So the verdict of every
case is that of all its trials.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence

from seatrial.core.ledger import Counted
from seatrial.core.ports import PlannedCase
from seatrial.core.trial import TrialStatus

__all__ = ["CurtailedTrials"]


class _Course:
    """How far one case is."""

    def __init__(self, planned: PlannedCase) -> None:
        self.planned = planned
        self.passes_to_win = planned.case.thresholds.successes_needed(planned.trials)
        self.fails_to_lose = planned.trials - self.passes_to_win + 1
        self.in_flight = 0
        self.queued = False
        self.waiting = deque(range(1, planned.trials + 1))

    def count(self, record: Counted) -> None:
        self.passes_to_win -= record.status is TrialStatus.PASSED
        self.fails_to_lose -= record.status is TrialStatus.FAILED

    @property
    def ready(self) -> bool:
        """Whether its next trial is needed whatever the ones in flight give."""
        return bool(self.waiting) and self.in_flight < min(self.passes_to_win, self.fails_to_lose)

    @property
    def turn(self) -> tuple[int, int]:
        return self.waiting[0], self.planned.order


class CurtailedTrials:
    """A TrialSource: every case until it is decided, first trials of all cases before second ones."""

    def __init__(self, planned: Sequence[PlannedCase]) -> None:
        self._courses = {case.case.id: _Course(case) for case in planned}
        self._queue: list[tuple[tuple[int, int], str]] = []
        for case_id in self._courses:
            self._queue_if_ready(case_id)

    def next(self) -> tuple[PlannedCase, int] | None:
        """The next trial that is needed for certain; None when there is none before a trial in flight has ended."""
        if not self._queue:
            return None
        _, case_id = heapq.heappop(self._queue)
        course = self._courses[case_id]
        course.queued = False
        index = course.waiting.popleft()
        course.in_flight += 1
        self._queue_if_ready(case_id)
        return course.planned, index

    def finished(self, record: Counted) -> None:
        """A trial ended: its case is nearer to its verdict, or needs another trial in its place."""
        course = self._courses[record.case_id]
        course.in_flight -= 1
        course.count(record)
        self._queue_if_ready(record.case_id)

    def _queue_if_ready(self, case_id: str) -> None:
        course = self._courses[case_id]
        if course.ready and not course.queued:
            course.queued = True
            heapq.heappush(self._queue, (course.turn, case_id))
