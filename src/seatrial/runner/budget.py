"""Money and time: which trials may still start.

**Reservation.** Before a trial starts, what it may cost is set aside:
1. the 95th percentile of what trials of its own case cost so far in this run (all attempts, judges included);
2. else its case's limit: `limits.cost_usd`, else `thresholds.max_estimated_cost_usd`;
3. else the dearest trial of any case so far;
4. else all that is left: nobody knows anything yet, so the first trial shows what one costs before others start.
   (With `--allow-unknown-cost` nothing is set aside once a trial has ended and nobody knows what it cost.)

A trial starts when what was spent, what is set aside for trials in flight and its own reservation fit into the budget;
else the source waits for trials in flight, which may turn out cheaper, and ends when there is none. So the total
exceeds the budget by no more than the trials in flight exceed their reservations. A trial's retries belong to it.

**Unknown costs.** A call of a model without a price ends the run before it is made where an adapter sees it coming
(`seatrial.environment.spending`), else after the trial that reported it; so does an answer whose cost is unknown while
no cost was ever known, and a judge's grade that does not say what it cost. One that is lost in between (a time-out in
the middle of a call, a reply without usage, a judge that broke) counts as the larger of what is known of it and its
reservation. With `--allow-unknown-cost` all of these count as what is known of them. What never reached the agent costs
nothing.

**Time** runs from the first trial, on a monotonic clock; no trial starts after it.

Trials in flight always run to their end.
"""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from math import fsum
from operator import attrgetter

from seatrial.core.case import Case
from seatrial.core.ledger import Counted, Ledger
from seatrial.core.ports import PlannedCase, Sink, TrialSource
from seatrial.core.trace import ModelCallEvent, StopReason, Trace
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.core.usage import Price, known_cost_of_trace
from seatrial.stats.estimate import quantile

__all__ = ["NO_LIMIT", "Budget", "WithinBudget", "cost_of_attempt", "known_cost_of_attempt", "own_limit"]

_SLACK = 1e-9
"""Ten times 0.1 fit into 1."""
_NAME_THE_MODEL = "name the model under `prices` in seatrial.yaml"
Key = tuple[str, int]


@dataclass(frozen=True)
class Budget:
    """What a run may spend; None = no limit."""

    cost_usd: float | None = None
    time_s: float | None = None
    allow_unknown_cost: bool = False

    @property
    def limited(self) -> bool:
        """Whether anything is limited at all."""
        return self.cost_usd is not None or self.time_s is not None


NO_LIMIT = Budget()


def own_limit(case: Case) -> float | None:
    """What the case itself says a trial may cost, in USD."""
    stop = case.limits.cost_usd
    return case.thresholds.max_estimated_cost_usd if stop is None else stop


def cost_of_attempt(record: Counted) -> float | None:
    """USD of one attempt, judges included; None when part of it is unknown."""
    if record.cost_usd is None and _never_began(record):
        return record.judge_cost_usd
    if record.cost_usd is None or record.judge_cost_usd is None:
        return None
    return record.cost_usd + record.judge_cost_usd


def _never_began(record: Counted) -> bool:
    return record.stop_reason is StopReason.HARNESS_ERROR and record.invalid_reason is InvalidReason.FIXTURE


def known_cost_of_attempt(record: Counted) -> float:
    """The same as far as the record knows it."""
    return (record.cost_usd or 0.0) + (record.judge_cost_usd or 0.0)


@dataclass
class _InFlight:
    reserved: float
    estimated: bool
    """False: all that was left."""
    paid: float = 0.0
    known: bool = True
    judges: frozenset[str] = frozenset()
    """Names of the case's graders that ask a model."""


def _judges(planned: PlannedCase) -> frozenset[str]:
    return frozenset([grader.name for grader in planned.graders if getattr(grader, "judge", False)])


class WithinBudget:
    """A TrialSource and a Sink around others: hands out trials that fit into the budget, and counts what they cost."""

    def __init__(
        self,
        source: TrialSource,
        sink: Sink,
        budget: Budget,
        *,
        prices: Mapping[str, Price] | None = None,
        kept: Iterable[TrialRecord] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`kept`: every attempt on record already (a run that is resumed); what they cost counts."""
        self.problem = ""
        """Why the run must not go on spending: a price is unknown. Empty: nothing of the kind."""
        self.remedy = _NAME_THE_MODEL
        """What makes it known."""
        self._source, self._sink, self._budget = source, sink, budget
        self._prices = prices or {}
        self._clock = clock
        self._began: float | None = None
        self._withheld: PlannedCase | None = None
        self._index = 0
        self._in_flight: dict[Key, _InFlight] = {}
        self._costs: dict[str, array[float]] = {}
        self._spent = 0.0
        self._dearest: float | None = None
        self._blind = False
        """A trial ended of which nobody knows what it cost."""
        self._lock = threading.RLock()
        self._count_kept(Ledger.of(kept))

    @property
    def spent_usd(self) -> float:
        """USD spent as far as it is known, with what stands for unknown costs."""
        return self._spent

    @property
    def ran_out(self) -> bool:
        """Whether a trial was held back to the end."""
        return self._withheld is not None

    # --- a source ----------------------------------------------------------------------------------------------------

    def next(self) -> tuple[PlannedCase, int] | None:
        """The next trial that fits; None when none does now, or there is none."""
        with self._lock:
            if self._withheld is None:
                trial = self._source.next()
                if trial is None:
                    return None
                self._withheld, self._index = trial
            planned, index = self._withheld, self._index
            reservation = self._reservation(planned.case)
            if self.problem or self._out_of_time() or not self._fits(reservation):
                return None
            self._withheld = None
            reservation.judges = _judges(planned)
            self._in_flight[planned.case.id, index] = reservation
            return planned, index

    def finished(self, record: Counted) -> None:
        """A trial ended: nothing is set aside for it any more."""
        with self._lock:
            trial = self._in_flight.pop((record.case_id, record.trial_index), None)
            if trial is not None:
                self._end(record.case_id, trial)
            self._source.finished(record)

    def _end(self, case_id: str, trial: _InFlight) -> None:
        """What is known of a cost counts, if it is allowed that the rest is not."""
        if trial.known or (self._budget.allow_unknown_cost and trial.paid):
            self._learn(case_id, trial.paid)
        else:
            self._blind = True

    def _out_of_time(self) -> bool:
        now = self._clock()
        self._began = now if self._began is None else self._began
        return self._budget.time_s is not None and now - self._began >= self._budget.time_s

    def _reservation(self, case: Case) -> _InFlight:
        if self._budget.cost_usd is None:
            return _InFlight(0.0, estimated=False)
        seen = self._costs.get(case.id)
        known = quantile(seen, 0.95) if seen else own_limit(case)
        if known is None:
            known = self._dearest
        if known is not None:
            return _InFlight(known, estimated=True)
        free = self._blind and self._budget.allow_unknown_cost
        return _InFlight(0.0 if free else max(self._left, 0.0), estimated=False)

    @property
    def _left(self) -> float:
        reserved = fsum(trial.reserved for trial in self._in_flight.values())
        return (self._budget.cost_usd or 0.0) - self._spent - reserved

    def _fits(self, reservation: _InFlight) -> bool:
        if self._budget.cost_usd is None:
            return True
        slack = _SLACK * self._budget.cost_usd
        free = reservation.estimated and reservation.reserved == 0
        return reservation.reserved <= self._left + slack and (free or self._left > slack)

    # --- a sink ------------------------------------------------------------------------------------------------------

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Keep an attempt, and count what it cost."""
        kept = self._sink.write(record, trace)
        with self._lock:
            self._pay(record, trace)
        return kept

    def _pay(self, record: TrialRecord, trace: Trace) -> None:
        trial = self._in_flight.get((record.case_id, record.trial_index)) or _InFlight(0.0, estimated=False)
        cost = cost_of_attempt(record)
        if cost is None:
            trial.known = False
            cost = known_cost_of_trace(trace, self._prices) if record.cost_usd is None else record.cost_usd
            cost += fsum(grade.cost_usd or 0.0 for grade in record.grades)
            if self._budget.cost_usd is not None and not self._budget.allow_unknown_cost:
                self._note_unknown(record, trace, trial.judges)
                cost = max(cost, trial.reserved if trial.estimated else 0.0)
        trial.paid += cost
        self._spent += cost

    def _note_unknown(self, record: TrialRecord, trace: Trace, judges: frozenset[str]) -> None:
        if self.problem:
            return
        self.problem = self._unknown(record, trace)
        silent = next((grade for grade in record.grades if grade.name in judges and grade.cost_usd is None), None)
        if silent is not None and not self.problem:
            self.problem = f"the cost of {record.key} is unknown: its judge {silent.name!r} does not say what it cost"
            self.remedy = "give the judge's Grade a cost_usd"

    def _unknown(self, record: TrialRecord, trace: Trace) -> str:
        """What makes every further cost unknown too; empty when it is this one's only."""
        refused = record.stop_reason is StopReason.BUDGET and record.invalid_reason is InvalidReason.HARNESS
        unpriced = record.detail.removeprefix("budget: ") if refused else ""
        if record.cost_usd is None and not unpriced:
            unpriced = next((f"the price of model {name!r} is unknown" for name in self._unpriced(trace)), "")
        answered = record.stop_reason is StopReason.ANSWERED and record.cost_usd is None
        if not unpriced and answered and self._dearest is None:
            unpriced = f"the cost of {record.key} is unknown: neither a priced model call nor an estimate was observed"
        return unpriced

    def _unpriced(self, trace: Trace) -> Iterable[str]:
        calls = (call for call in trace.of(ModelCallEvent) if call.cost_usd is None)
        return (call.model for call in calls if call.model is not None and call.model not in self._prices)

    def _learn(self, case_id: str, cost: float) -> None:
        self._costs.setdefault(case_id, array("d")).append(cost)
        self._dearest = cost if self._dearest is None else max(self._dearest, cost)

    def _count_kept(self, kept: Ledger) -> None:
        for case_id in kept.case_ids:
            entries = kept.entries(kept.of_case(case_id))
            for _, attempts in groupby(entries, key=attrgetter("trial_index")):
                every = list(attempts)
                paid = fsum(map(known_cost_of_attempt, every))
                known = None not in map(cost_of_attempt, every)
                self._spent += paid
                self._end(case_id, _InFlight(0.0, estimated=False, paid=paid, known=known))
