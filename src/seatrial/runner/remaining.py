"""What is left of a run that was started before: trials on record are not run again, and none is forgotten.

A trial is known by its case's id and its number, nothing else. One whose last attempt ended in a fault that its case
retries, with attempts left, goes on with the next attempt; so does one whose last attempt the harness broke off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from seatrial.core.case import Retries
from seatrial.core.ports import Earlier, PlannedCase, TrialSource
from seatrial.core.trial import TrialRecord
from seatrial.runner.retrying import worth_retrying

__all__ = ["Earlier", "Remaining", "earlier"]

Place = tuple[str, int]
"""Case id and trial number."""


def earlier(planned: Sequence[PlannedCase], records: Iterable[TrialRecord]) -> Earlier:
    """Sort what is on record by whether it needs more."""
    last: dict[Place, TrialRecord] = {}
    broken_off: Counter[Place] = Counter()
    for record in records:
        place = (record.case_id, record.trial_index)
        broken_off[place] += record.broken_off
        if place not in last or last[place].attempt < record.attempt:
            last[place] = record
    retries = {item.case.id: item.case.retries for item in planned}
    more = {
        place: record.attempt
        for place, record in last.items()
        if _has_more(record, retries.get(place[0]), broken_off[place])
    }
    finished = {place: record for place, record in last.items() if place not in more}
    return Earlier(finished, more, {place: broken_off[place] for place in more if broken_off[place]})


def _has_more(record: TrialRecord, retries: Retries | None, broken_off: int) -> bool:
    return retries is not None and worth_retrying(record, retries, broken_off=broken_off)


class Remaining:
    """A TrialSource: another one's trials without those on record; it is told of these as if they had just run."""

    def __init__(self, source: TrialSource, finished: Mapping[Place, TrialRecord]) -> None:
        self._source = source
        self._finished = finished

    def next(self) -> tuple[PlannedCase, int] | None:
        """The next trial that is not on record, or None."""
        while (trial := self._source.next()) is not None:
            record = self._finished.get((trial[0].case.id, trial[1]))
            if record is None:
                return trial
            self._source.finished(record)
        return None

    def finished(self, record: TrialRecord) -> None:
        """A trial ended."""
        self._source.finished(record)
