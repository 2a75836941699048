"""Finished trials, many at once: what is counted of each stays in memory, the rest is read back when it is shown.

A Ledger is the sequence of a run's records. It keeps about a hundred bytes of each: its numbers, packed, and a pointer
to what many trials have in common (their Likeness). Outputs, reasons, outcomes and errors stay where the trial was
written; an Entry's `whole` reads them back.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from operator import eq, itemgetter
from struct import Struct
from typing import Any, NamedTuple, Protocol, overload

from typing_extensions import TypedDict  # Pydantic reads Python's own from 3.12 on

from seatrial.core.costs import Costs, Spent
from seatrial.core.figures import packed, unpacked
from seatrial.core.grade import Grade, GraderFailure, Tally
from seatrial.core.model_json import json_of
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, Tokens, TrialKey, TrialRecord, TrialStatus

__all__ = ["Counted", "Entry", "Ledger", "Likeness", "Read", "Reason", "Told", "told_of"]


class Reason(TypedDict):
    """What a grade says in words."""

    reason: str


class Told(TypedDict):
    """What a report tells of a record beside what is counted, as JSON data; see TrialRecord for each."""

    error: dict[str, Any] | None
    grades: list[Reason]
    output: Any
    output_file: str | None
    outcome: dict[str, Any] | None


def told_of(record: TrialRecord) -> Told:
    """What a report tells of this record."""
    return Told(
        error=None if record.error is None else json_of(record.error),
        grades=[Reason(reason=grade.reason) for grade in record.grades],
        output=record.output,
        output_file=record.output_file,
        outcome=record.outcome,
    )


class Read(Protocol):
    """Reads a record back from its position and its size, as they were given to `Ledger.add`."""

    def __call__(self, at: int, size: int, /) -> TrialRecord:
        """The record. StorageError when it cannot be read."""

    def told(self, at: int, size: int, /) -> Told:
        """What a report tells of it: a third of the work."""


class _InMemory:
    """Records by their numbers."""

    def __init__(self, records: Sequence[TrialRecord]) -> None:
        self._records = records

    def __call__(self, at: int, _: int) -> TrialRecord:
        return self._records[at]

    def told(self, at: int, _: int) -> Told:
        return told_of(self._records[at])


_ROW = Struct("<IIIIHdIQQI")
"""Case, trial, attempt, likeness, reader; latency; number of what it cost; start, as digits; position, size."""
_SIZE, _row_at = _ROW.size, _ROW.unpack_from
_PLACE, _KIND = Struct("<4xII"), Struct(f"<12xI{_SIZE - 16}x")
"""Of a row, its trial and attempt; its likeness."""
_VALID = (TrialStatus.PASSED, TrialStatus.FAILED)
_SECOND = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}")
"""A time as records have it, up to its thousandths."""
_NO_DIGITS = str.maketrans("", "", "-T:.Z")


class Likeness(NamedTuple):
    """What many trials have in common; see TrialRecord for each."""

    status: TrialStatus
    invalid_reason: InvalidReason | None
    broken: InvalidReason | None
    broken_off: bool
    stop_reason: StopReason
    steps: int | None
    steps_are_tool_calls: bool
    tools: Mapping[str, int]
    handoffs: tuple[tuple[str, str], ...]
    tallies: Mapping[str, Tally]
    models: tuple[str, ...]
    observes: tuple[str, ...]
    grades: tuple[Grade, ...]
    """Without reasons, evidence and costs."""
    grader_failures: tuple[GraderFailure, ...]
    """Without messages."""
    has_leftovers: bool
    recorded: int
    replayed: int

    @property
    def valid(self) -> bool:
        return self.status in _VALID


class Entry:
    """One attempt at a trial as a Ledger keeps it. Its fields are those of its TrialRecord, `whole`."""

    __slots__ = ("_ledger", "_row", "alike")

    def __init__(self, ledger: Ledger, row: tuple[Any, ...]) -> None:
        self._ledger, self._row = ledger, row
        self.alike: Likeness = ledger.alike[row[3]]
        """What it has in common with others: one object for all of them."""

    @property
    def whole(self) -> TrialRecord:
        """The record, read back; StorageError when it is no longer there."""
        return self._ledger.read(self._row)

    @property
    def told(self) -> Told:
        """What only `whole` has and a report tells; StorageError as for `whole`."""
        row = self._row
        told: Told = self._ledger.reads[row[4]].told(row[-2], row[-1])
        return told

    def __eq__(self, other: object) -> bool:
        return self.whole == (other.whole if isinstance(other, Entry) else other)

    __hash__ = None  # type: ignore[assignment]  # as unequal numbers may belong to equal records

    @property
    def case_id(self) -> str:
        case_id: str = self._ledger.case_ids[self._row[0]]
        return case_id

    @property
    def trial_index(self) -> int:
        index: int = self._row[1]
        return index

    @property
    def attempt(self) -> int:
        return int(self._row[2])

    @property
    def key(self) -> TrialKey:
        return TrialKey(case_id=self.case_id, trial_index=self.trial_index)

    @property
    def latency_ms(self) -> float | None:
        return unpacked(self._row[5])

    @property
    def spent(self) -> Spent:
        """Its costs and tokens."""
        return self._ledger.costs[self._row[6]]

    @property
    def cost_usd(self) -> float | None:
        return self.spent.cost_usd

    @property
    def judge_cost_usd(self) -> float | None:
        return self.spent.judge_cost_usd

    @property
    def tokens(self) -> Tokens:
        tokens = self.spent.tokens
        return self.whole.tokens if tokens is None else tokens

    @property
    def started(self) -> str | None:
        digits: int = self._row[7]
        return _time(digits) if digits else self.whole.started

    @property
    def status(self) -> TrialStatus:
        return self.alike.status

    @property
    def valid(self) -> bool:
        return self.alike.status in _VALID

    @property
    def invalid_reason(self) -> InvalidReason | None:
        return self.alike.invalid_reason

    @property
    def broken_off(self) -> bool:
        return self.alike.broken_off

    @property
    def stop_reason(self) -> StopReason:
        return self.alike.stop_reason

    @property
    def steps(self) -> int | None:
        return self.alike.steps

    @property
    def steps_are_tool_calls(self) -> bool:
        return self.alike.steps_are_tool_calls

    @property
    def tools(self) -> Mapping[str, int]:
        return self.alike.tools

    @property
    def handoffs(self) -> tuple[tuple[str, str], ...]:
        return self.alike.handoffs

    @property
    def tallies(self) -> Mapping[str, Tally]:
        return self.alike.tallies

    @property
    def models(self) -> tuple[str, ...]:
        return self.alike.models

    @property
    def observes(self) -> tuple[str, ...]:
        return self.alike.observes

    @property
    def grades(self) -> tuple[Grade, ...]:
        """Without their reasons and evidence: these are in `whole`."""
        return self.alike.grades

    @property
    def grader_failures(self) -> tuple[GraderFailure, ...]:
        """Without their messages."""
        return self.alike.grader_failures

    @property
    def has_leftovers(self) -> bool:
        return self.alike.has_leftovers

    @property
    def recorded(self) -> int:
        return self.alike.recorded

    @property
    def replayed(self) -> int:
        return self.alike.replayed


Counted = Entry | TrialRecord
"""A trial of which things are counted: as a Ledger keeps it, or whole."""


class Ledger(Sequence[TrialRecord]):
    """Records in the order in which they were added, each attempt once: the first one counts."""

    def __init__(self, read: Read) -> None:
        self.case_ids: list[str] = []
        """In order of appearance."""
        self._numbers: dict[str, int] = {}
        self._of_case: list[array[int]] = []
        self._retried: set[int] = set()
        """Cases with another attempt than the first of a trial."""
        self.reads = [read]
        """What reads records back, by the numbers that rows have."""
        self._rows = bytearray()
        self.costs = Costs()
        """What they cost, by the numbers that rows have."""
        self._likenesses: dict[tuple[Any, ...], int] = {}
        self.alike: list[Likeness] = []
        """What many of them have in common, by the numbers that rows have."""

    @classmethod
    def of(cls, records: Iterable[TrialRecord]) -> Ledger:
        """A ledger of records that are in memory; a Ledger is one already."""
        if isinstance(records, Ledger):
            return records
        kept = tuple(records)
        ledger = cls(_InMemory(kept))
        for at, record in enumerate(kept):
            ledger.add(record, at)
        return ledger

    @classmethod
    def pooled(cls, parts: Sequence[tuple[Ledger, Mapping[str, int]]]) -> Ledger:
        """Several ledgers as one; trial numbers of each are raised by what is given beside it, by case id."""
        (first, raised), *others = parts
        if not others and not raised:
            return first
        pool = cls(first.reads[0])
        pool.reads = []
        for ledger, offsets in parts:
            pool._take(ledger, offsets)
        return pool

    def _take(self, other: Ledger, offsets: Mapping[str, int]) -> None:
        likenesses = [self._likeness(key, alike) for key, alike in zip(other._likenesses, other.alike, strict=True)]
        books = len(self.reads)
        self.reads += other.reads
        for case, index, attempt, alike, book, latency, spent, *rest in _ROW.iter_unpack(other._rows):
            case_id = other.case_ids[case]
            raised = index + offsets.get(case_id, 0)
            here = self._stand(case_id, raised, attempt)
            if here is not None:
                cost = self.costs.add_block(other.costs.block(spent))
                self._rows += _ROW.pack(here, raised, attempt, likenesses[alike], books + book, latency, cost, *rest)

    def add(self, record: TrialRecord, at: int, size: int = 0) -> bool:
        """Note a record that stands at this position; False when that attempt is on record already."""
        fields = record.__dict__
        case_id, index, attempt, started = _STANDING(fields)
        case = self._stand(case_id, index, attempt)
        if case is None:
            return False
        key, latency, cost = _key(fields), packed(fields["latency_ms"]), self.costs.add(*_SPENT(fields))
        likeness = self._likenesses.get(key)
        if likeness is None:
            likeness = self._likeness(key, _likeness_of(record))
        self._rows += _ROW.pack(case, index, attempt, likeness, 0, latency, cost, _digits(started), at, size)
        return True

    def _stand(self, case_id: str, index: int, attempt: int) -> int | None:
        """The number of the case, to which the row that comes next is noted to belong; None when its attempt has one.

        Rows of a case are kept in order of trial and attempt.
        """
        number = len(self._rows) // _SIZE
        case = self._numbers.get(case_id)
        if case is None:
            case = self._numbers[case_id] = len(self.case_ids)
            self.case_ids.append(case_id)
            self._of_case.append(array("I", (number,)))
        elif not self._insert(self._of_case[case], number, (index, attempt)):
            return None
        if attempt != 1:
            self._retried.add(case)
        return case

    def _insert(self, rows: array[int], number: int, place: tuple[int, int]) -> bool:
        """Put a row's number where it belongs among those of its case; False when its attempt has one."""
        at = len(rows)
        if self._place(rows[-1]) >= place:
            at = bisect_left(rows, place, key=self._place)
            if self._place(rows[at]) == place:
                return False
        rows.insert(at, number)
        return True

    def _place(self, number: int) -> tuple[int, int]:
        """Trial and attempt."""
        index, attempt = _PLACE.unpack_from(self._rows, number * _SIZE)
        return index, attempt

    def _likeness(self, key: tuple[Any, ...], alike: Likeness) -> int:
        """The number of a likeness, which is noted if it is the first of its key."""
        number = self._likenesses.setdefault(key, len(self.alike))
        if number == len(self.alike):
            self.alike.append(alike)
        return number

    # --- reading -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._rows) // _SIZE

    def __iter__(self) -> Iterator[TrialRecord]:
        return (entry.whole for entry in self.entries())

    @overload
    def __getitem__(self, number: int) -> TrialRecord: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[TrialRecord, ...]: ...

    def __getitem__(self, number: int | slice) -> TrialRecord | tuple[TrialRecord, ...]:
        if isinstance(number, slice):
            return tuple(self.entry(each).whole for each in range(len(self))[number])
        return self.entry(range(len(self))[number]).whole

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(other) == len(self) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # it grows

    def read(self, row: tuple[Any, ...]) -> TrialRecord:
        """The record of a row, numbered as it is here."""
        _, index, _, _, reader, *_, at, size = row
        record: TrialRecord = self.reads[reader](at, size)
        return record if record.trial_index == index else record.model_copy(update={"trial_index": index})

    def entry(self, number: int) -> Entry:
        """The `number`-th record, from 0."""
        return Entry(self, _row_at(self._rows, number * _SIZE))

    def entries(self, numbers: Iterable[int] | None = None) -> Iterator[Entry]:
        """These of them; all, in the order in which they were added, where none are named."""
        return map(self.entry, range(len(self)) if numbers is None else numbers)

    def likenesses(self, numbers: Iterable[int]) -> list[Likeness]:
        """What each of these has in common with others."""
        rows, alike, kind = self._rows, self.alike, _KIND.unpack_from
        return [alike[kind(rows, number * _SIZE)[0]] for number in numbers]

    def of_case(self, case_id: str) -> Sequence[int]:
        """Numbers of a case's records, in order of trial and attempt."""
        case = self._numbers.get(case_id)
        return () if case is None else self._of_case[case]

    @property
    def trials(self) -> int:
        """Trials that have a record, each counted once."""
        return sum(map(self.trials_of, self.case_ids))

    def retried(self, case_id: str) -> bool:
        """Whether any trial of a case has another attempt than its first."""
        return bool(self._retried) and self._numbers.get(case_id) in self._retried

    def trials_of(self, case_id: str) -> int:
        """Trials of a case that have a record."""
        rows = self.of_case(case_id)
        if not self.retried(case_id):
            return len(rows)
        return len({self._place(number)[0] for number in rows})

    @property
    def models(self) -> tuple[str, ...]:
        """Every model that answered in any of them, sorted."""
        kinds = {kind for (kind,) in _KIND.iter_unpack(self._rows)}
        return tuple(sorted({model for kind in kinds for model in self.alike[kind].models}))

    def last(self, case_id: str, trial_index: int) -> Entry | None:
        """The last attempt of a trial; None when there is none."""
        rows = self.of_case(case_id)
        at = bisect_left(rows, (trial_index + 1, 0), key=self._place)
        entry = self.entry(rows[at - 1]) if at else None
        return entry if entry is not None and entry.trial_index == trial_index else None


@lru_cache(maxsize=16)  # many trials start within one thousandth, if they take no time
def _digits(time: str | None) -> int:
    """A time as a number; 0 for what is none."""
    if not time or len(time) != 24 or time[19] != "." or time[23] != "Z":
        return 0
    second, thousandths = _second(time[:19]), time[20:23]
    return second * 1000 + int(thousandths) if second and thousandths.isascii() and thousandths.isdigit() else 0


@lru_cache(maxsize=4)
def _second(time: str) -> int:
    """The digits of a time to the second; 0 for what is none."""
    return int(time.translate(_NO_DIGITS)) if _SECOND.fullmatch(time) else 0


@lru_cache(maxsize=16)
def _time(digits: int) -> str:
    seconds, ms = divmod(digits, 1_000)
    return f"{_text_of(seconds)}.{ms:03}Z"


@lru_cache(maxsize=8)  # trials that are looked at together started about the same time
def _text_of(digits: int) -> str:
    """A second as text, from its digits."""
    text = f"{digits:014}"
    return f"{text[:4]}-{text[4:6]}-{text[6:8]}T{text[8:10]}:{text[10:12]}:{text[12:]}"


_STANDING = itemgetter("case_id", "trial_index", "attempt", "started")
_SPENT = itemgetter("cost_usd", "judge_cost_usd", "tokens")
_AS_THEY_ARE = itemgetter(
    *("status", "invalid_reason", "broken", "broken_off", "stop_reason", "steps", "steps_are_tool_calls"),
    *("handoffs", "models", "observes", "recorded", "replayed"),
)
_OF_PARTS = itemgetter("grades", "tools", "tallies", "grader_failures", "leftovers")
_OF_GRADE = itemgetter("name", "verdict", "score", "required")


def _key(fields: dict[str, Any]) -> tuple[Any, ...]:
    """Of the fields of a record: equal for records of one likeness, and only for these."""
    grades, tools, tallies, failures, leftovers = _OF_PARTS(fields)
    plain = _AS_THEY_ARE(fields), tuple(map(_key_of_grade, grades))
    if not (tools or tallies or failures or leftovers):
        return plain
    broken = tuple([(failure.name, failure.error, failure.required) for failure in failures])
    return *plain, tuple(tools.items()), _tallies(tallies), broken, bool(leftovers)


def _key_of_grade(grade: Grade) -> tuple[Any, ...]:
    fields = grade.__dict__
    tallies = fields["tallies"]
    return (*_OF_GRADE(fields), _tallies(tallies)) if tallies else _OF_GRADE(fields)


def _tallies(tallies: Mapping[str, Tally]) -> tuple[Any, ...]:
    return tuple([(name, tally.hit, tally.of) for name, tally in tallies.items()])


_SILENT: Mapping[str, Any] = {"reason": "", "evidence": (), "cost_usd": None}


def _likeness_of(record: TrialRecord) -> Likeness:
    return Likeness(
        status=record.status,
        invalid_reason=record.invalid_reason,
        broken=record.broken,
        broken_off=record.broken_off,
        stop_reason=record.stop_reason,
        steps=record.steps,
        steps_are_tool_calls=record.steps_are_tool_calls,
        tools=record.tools,
        handoffs=record.handoffs,
        tallies=record.tallies,
        models=record.models,
        observes=record.observes,
        grades=tuple(grade.model_copy(update=_SILENT) for grade in record.grades),
        grader_failures=tuple(failure.model_copy(update={"message": ""}) for failure in record.grader_failures),
        has_leftovers=bool(record.leftovers),
        recorded=record.recorded,
        replayed=record.replayed,
    )
