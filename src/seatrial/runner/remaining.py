"""What is left of a run that was started before: trials on record are not run again, and none is forgotten.

A trial is known by its case's id and its number, nothing else. One whose last attempt ended in a fault that its case
retries, with attempts left, goes on with the next attempt; so does one whose last attempt the harness broke off.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from seatrial.core.case import Retries
from seatrial.core.ledger import Counted, Entry, Ledger
from seatrial.core.ports import Earlier, PlannedCase, TrialSource
from seatrial.core.trial import TrialRecord
from seatrial.runner.retrying import worth_retrying

__all__ = ["Earlier", "Finished", "Remaining", "earlier"]

Place = tuple[str, int]
"""Case id and trial number."""


def earlier(planned: Sequence[PlannedCase], kept: Iterable[TrialRecord]) -> Earlier:
    """Sort what is on record by whether it needs more."""
    records = Ledger.of(kept)
    retries = {item.case.id: item.case.retries for item in planned}
    more: dict[Place, int] = {}
    broken_off: Counter[Place] = Counter()
    for entry in records.entries():
        if entry.broken_off:
            broken_off[entry.case_id, entry.trial_index] += 1
    for case_id in records.case_ids:
        for trial in _last_attempts(records, case_id):
            place = (case_id, trial.trial_index)
            if _has_more(trial, retries.get(case_id), broken_off[place]):
                more[place] = trial.attempt
    return Earlier(Finished(records, more), more, {place: broken_off[place] for place in more if broken_off[place]})


def _has_more(entry: Entry, retries: Retries | None, broken_off: int) -> bool:
    if retries is None or not (entry.broken_off or retries.attempts > 1):
        return False
    return worth_retrying(entry.whole, retries, broken_off=broken_off)


def _last_attempts(records: Ledger, case_id: str) -> Iterator[Entry]:
    """Of every trial of the case, in order."""
    entries = records.entries(records.of_case(case_id))
    return (deque(attempts, maxlen=1)[0] for _, attempts in groupby(entries, key=attrgetter("trial_index")))


class Finished(Mapping[Place, Entry]):
    """The last attempt of every trial on record that needs no more; looked up as it is asked for."""

    def __init__(self, records: Ledger, more: Container[Place]) -> None:
        self._records = records
        self._more = more

    def __getitem__(self, place: Place) -> Entry:
        entry = None if place in self._more else self._records.last(*place)
        if entry is None:
            raise KeyError(place)
        return entry

    def __iter__(self) -> Iterator[Place]:
        places = dict.fromkeys((entry.case_id, entry.trial_index) for entry in self._records.entries())
        return (place for place in places if place not in self._more)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Remaining:
    """A TrialSource: another one's trials without those on record; it is told of these as if they had just run."""

    def __init__(self, source: TrialSource, finished: Mapping[Place, Counted]) -> None:
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

    def finished(self, record: Counted) -> None:
        """A trial ended."""
        self._source.finished(record)
