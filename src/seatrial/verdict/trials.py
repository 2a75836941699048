"""The trials behind every figure: attempts folded, and the one line that says what went wrong."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from math import fsum
from operator import attrgetter
from typing import NamedTuple, overload

from seatrial.core.encoding import shortened
from seatrial.core.grade import Grade, GraderFailure, Verdict
from seatrial.core.ledger import Counted, Entry, Ledger, Likeness
from seatrial.core.trace import StopReason
from seatrial.core.trial import InvalidReason, Tokens, TrialRecord, TrialStatus
from seatrial.core.usage import summed

__all__ = [
    "NO_TRIALS",
    "Alike",
    "Cost",
    "Deciding",
    "Seen",
    "Trial",
    "Trials",
    "alike",
    "attempts_folded",
    "failure_text",
    "reason_of",
    "stable",
    "together",
]

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]{6,}")
_STOPPED = {
    StopReason.AGENT_ERROR: "the agent raised",
    StopReason.TIMEOUT: "timeout: the time limit was reached",
    StopReason.MAX_STEPS: "max_steps: the step limit was reached",
    StopReason.WAITING_APPROVAL: "waiting_approval: an approval stayed unanswered",
    StopReason.CANCELLED: "cancelled",
    StopReason.BUDGET: "budget: the budget ran out",
    StopReason.HARNESS_ERROR: "harness_error",
}


class Seen:
    """Numbers collected one by one, of which some may not be known."""

    __slots__ = ("known", "unknown")

    def __init__(self) -> None:
        self.known = array("d")
        self.unknown = 0

    def add(self, value: float | None) -> None:
        """One more; None = unknown."""
        if value is None:
            self.unknown += 1
        else:
            self.known.append(value)

    def __len__(self) -> int:
        """How many, the unknown ones included."""
        return len(self.known) + self.unknown


@dataclass(frozen=True)
class Cost:
    """Money spent, in USD, with what is not known of it."""

    known_usd: float = 0.0
    """Sum of the known costs: the total when `unknown` is 0, else a lower bound."""
    counted: int = 0
    """Attempts whose cost is known."""
    unknown: int = 0
    """Attempts whose cost is not; an unknown cost is never free."""

    @classmethod
    def of(cls, records: Iterable[Counted]) -> Cost:
        """The cost of these attempts together."""
        spent = Seen()
        for record in records:
            spent.add(record.cost_usd)
        return cls.together(spent)

    @classmethod
    def together(cls, *parts: Seen) -> Cost:
        """What all of these cost, in USD."""
        known = [*chain.from_iterable(part.known for part in parts)]
        return cls(fsum(known), len(known), sum(part.unknown for part in parts))

    @property
    def usd(self) -> float | None:
        """The exact total; None when part of it is unknown or nothing was counted."""
        return self.known_usd if self.counted and not self.unknown else None


class Trial:
    """One trial with all its attempts: the last one counts, the earlier ones cost."""

    __slots__ = ("attempts", "last")

    def __init__(self, attempts: tuple[Entry, ...]) -> None:
        self.attempts = attempts
        """In order of `attempt`; at least one."""
        self.last = attempts[-1]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Trial) and self.attempts == other.attempts

    __hash__ = None  # type: ignore[assignment]  # entries have none

    @property
    def index(self) -> int:
        """1-based number of the trial."""
        return self.last.trial_index

    @property
    def valid(self) -> bool:
        return self.last.valid

    @property
    def passed(self) -> bool:
        return self.last.status is TrialStatus.PASSED

    @property
    def cost(self) -> Cost:
        """Of all attempts."""
        return Cost.of(self.attempts)

    @property
    def cost_usd(self) -> float | None:
        """Of all attempts; None when part of it is unknown."""
        return self.last.cost_usd if len(self.attempts) == 1 else self.cost.usd

    @property
    def tokens(self) -> Tokens:
        """Of all attempts."""
        return self.last.tokens if len(self.attempts) == 1 else summed(attempt.tokens for attempt in self.attempts)


class Trials(Sequence[Trial]):
    """Trials of one case in order of their numbers, whatever the order in which they finished; made as they are looked
    at."""

    __slots__ = ("_ledger", "_length", "_numbers", "_retried")

    def __init__(self, ledger: Ledger, case_id: str) -> None:
        self._ledger = ledger
        self._numbers = ledger.of_case(case_id)
        self._retried = ledger.retried(case_id)
        self._length = ledger.trials_of(case_id) if self._retried else len(self._numbers)

    def __iter__(self) -> Iterator[Trial]:
        entries = self._ledger.entries(self._numbers)
        if not self._retried:
            return map(Trial, zip(entries))
        return (Trial(tuple(attempts)) for _, attempts in groupby(entries, key=attrgetter("trial_index")))

    def __len__(self) -> int:
        return self._length

    @property
    def deciding(self) -> Iterator[Entry]:
        """The last attempt of each."""
        return (trial.last for trial in self) if self._retried else self._ledger.entries(self._numbers)

    @property
    def replaced(self) -> Iterable[Entry]:
        """Attempts that a later one replaced."""
        if not self._retried:
            return ()
        return (attempt for trial in self for attempt in trial.attempts[:-1])

    @property
    def likenesses(self) -> list[Likeness]:
        """What the deciding attempt of each has in common with others."""
        if self._retried:
            return [entry.alike for entry in self.deciding]
        return self._ledger.likenesses(self._numbers)

    @property
    def retried(self) -> int:
        """How many of them have more than one attempt."""
        return sum(len(trial.attempts) > 1 for trial in self) if self._retried else 0

    @overload
    def __getitem__(self, number: int) -> Trial: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Trial, ...]: ...

    def __getitem__(self, number: int | slice) -> Trial | tuple[Trial, ...]:
        return tuple(self)[number]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]  # its trials have none


NO_TRIALS = Trials(Ledger.of(()), "")


class Deciding(Sequence[Entry]):
    """The deciding attempt of each of these trials; made as they are looked at."""

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._trials = trials

    def __iter__(self) -> Iterator[Entry]:
        return (trial.last for trial in self._trials)

    def __len__(self) -> int:
        return len(self._trials)

    @overload
    def __getitem__(self, number: int) -> Entry: ...

    @overload
    def __getitem__(self, number: slice) -> tuple[Entry, ...]: ...

    def __getitem__(self, number: int | slice) -> Entry | tuple[Entry, ...]:
        return tuple(self)[number]


class Alike(NamedTuple):
    """Trials whose deciding attempts have everything in common that is counted and not measured."""

    shared: Likeness
    trials: int
    """How many they are."""


def alike(trials: Trials) -> tuple[Alike, ...]:
    """The trials by what they have in common, in the order in which each kind first appears."""
    shared = trials.likenesses
    kinds = {id(kind): kind for kind in shared}
    counts = Counter(map(id, shared))
    return tuple([Alike(kind, counts[number]) for number, kind in kinds.items()])


def together(parts: Iterable[Alike]) -> tuple[Alike, ...]:
    """Several such countings as one."""
    kinds: dict[int, Likeness] = {}
    counts: dict[int, int] = {}
    for shared, trials in parts:
        kind = id(shared)
        kinds[kind] = shared
        counts[kind] = counts.get(kind, 0) + trials
    return tuple(map(Alike, kinds.values(), counts.values()))


def attempts_folded(records: Iterable[TrialRecord]) -> dict[str, Trials]:
    """Trials by case id.

    Where one attempt is on record twice (a scheduler may start a trial twice), the first record counts.
    """
    ledger = Ledger.of(records)
    return {case_id: Trials(ledger, case_id) for case_id in ledger.case_ids}


def stable(text: str) -> str:
    """`text` without memory addresses, which differ between runs that behave alike; cut when it is very long."""
    text = shortened(text)
    return _ADDRESS.sub("", text) if " at 0x" in text else text


def failure_text(failure: GraderFailure) -> str:
    """`raised ValueError: message` of a grader that broke."""
    return stable(f"raised {failure.error}: {failure.message}")


def reason_of(record: TrialRecord) -> str:
    """Why this attempt did not pass: what ended it, else its first failing grade; empty when it passed.

    The first error wins: a trial that crashed reports the crash, not what is missing because of it.
    """
    match record.status:
        case TrialStatus.PASSED:
            return ""
        case TrialStatus.UNGRADED:
            return record.detail or "nothing required was graded"
        case TrialStatus.INVALID:
            return stable(_why_invalid(record))
    if record.error is not None:
        return stable(record.error.summary)
    waits_as_scripted = record.stop_reason is StopReason.WAITING_APPROVAL and not record.detail
    if record.stop_reason is not StopReason.ANSWERED and not waits_as_scripted:
        return stable(record.detail or _STOPPED[record.stop_reason])
    failed = next((grade for grade in record.grades if grade.required and grade.verdict is Verdict.FAIL), None)
    return stable(record.detail) if failed is None else _named(failed)


def _named(grade: Grade) -> str:
    return stable(f"{grade.name}: {grade.reason}" if grade.reason else grade.name)


def _why_invalid(record: TrialRecord) -> str:
    broken = next((failure for failure in record.grader_failures if failure.required), None)
    if broken is not None and record.invalid_reason in (InvalidReason.GRADER, InvalidReason.JUDGE):
        return f"{broken.name}: {failure_text(broken)}"
    silent = next((grade for grade in record.grades if grade.required and grade.verdict is Verdict.ABSTAIN), None)
    if silent is not None and record.invalid_reason is InvalidReason.UNOBSERVED:
        return _named(silent)
    return record.detail or f"invalid: {record.invalid_reason or 'harness'}"
