"""Finds the cases whose result depends on order or company, the fewest others that bring it about, and what they share.

1. Every case alone, then all of them: in file order and over again in the same process, reversed, in seeded shuffles,
   and side by side.
2. A case that came out otherwise anywhere runs alone again, a few times. What varies there is its own; if that is all,
   it is flaky or nothing is wrong.
3. Else the order that showed it is played again. A result that does not come back is flaky too. Otherwise the trials
   before it are narrowed down, and what is left of them has to bring it about every time.
4. In one of those the shared state is looked at before and after the company: what changed is suspect, unless a trial
   that does no harm changes it in the same way.

The chance that a case which fails every other time by itself is taken for dependent is below 1 in 500.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeVar

from seatrial.proving.arrangement import Arrangement
from seatrial.proving.bench import Played
from seatrial.verdict.isolation import CaseIsolation, Change, Finding, Isolation, Seen, differing, varying

__all__ = ["Orders", "Runs", "fewest", "isolate"]

T = TypeVar("T")

REPEATS = 5
"""Times that a suspicious case runs alone, and that its company must bring the difference about."""
_ENOUGH_TOGETHER = 3
"""Of so many repeats side by side: there the outcome depends on chance, too."""
_HARMLESS = 2
"""Others that are asked what they change."""
_MOST_RUNS = 60
"""Arrangements tried to narrow down one case's company."""


class Runs(Protocol):
    """Runs arrangements, each in a process of its own (see `bench.Bench`)."""

    trials: int
    processes: int

    def run(self, arrangement: Arrangement) -> Played: ...


@dataclass(frozen=True)
class Orders:
    """Which orders are tried."""

    shuffles: int = 3
    seed: int = 0
    concurrency: int = 10
    """Trials at once in the run side by side; 1: there is none."""


@dataclass(frozen=True)
class _Observation:
    """A trial that came to an end in company."""

    where: str
    order: Arrangement
    position: int
    seen: Seen

    @property
    def together(self) -> bool:
        return self.order.concurrency > 1

    @property
    def company(self) -> tuple[str, ...]:
        """What ran before it in that process, in order; side by side all others."""
        cases = self.order.cases
        return cases[: self.position] + (cases[self.position + 1 :] if self.together else ())


@dataclass
class _Search:
    """One search over a project's cases."""

    runs: Runs
    tell: Callable[[str], None]
    known: list[tuple[str, ...]] = field(default_factory=list)
    """Companies that made other cases come out otherwise: the likeliest to do it again."""

    def alone(self, case: str) -> Seen:
        return self.runs.run(Arrangement((case,))).trials[0] or _NOT_REACHED

    def examined(self, case: str, alone: Seen, observations: Sequence[_Observation]) -> CaseIsolation:
        """What is said of a case that came out otherwise somewhere."""
        again = [alone, *(self.alone(case) for _ in range(REPEATS - 1))]
        own = varying(again)
        telling = [item for item in observations if differing(alone, item.seen, own)]
        if not telling:
            return _by_itself(case, again, own)
        suspect = _Suspect(case, alone, own)
        first = min(telling, key=lambda item: (item.together, len(item.company)))
        found = self._together(suspect, first) if first.together else self._in_line(suspect, first)
        return found or suspect.flaky(first)

    def _in_line(self, suspect: _Suspect, item: _Observation) -> CaseIsolation | None:
        """The fewest trials before it that bring the difference about every time; None when they do not."""

        def play(company: Sequence[str], *, suspects: bool = False) -> Played:
            return self.runs.run(Arrangement((*company, suspect.case), suspects=suspects))

        def flips(company: Sequence[str]) -> bool:
            return bool(suspect.differing(play(company).trials[-1]))

        likely = [known for known in self.known if set(known) <= set(item.company)]
        company, complete = next((known for known in likely if flips(known)), None), True
        if company is None:
            if not flips(item.company):
                return None
            self.tell(f"{suspect.case}: looking for the fewest trials before it that matter")
            company, complete = fewest(item.company, flips, _MOST_RUNS)
        played = [play(company, suspects=number == 0) for number in range(REPEATS)]
        always = frozenset.intersection(*(suspect.differing(one.trials[-1]) for one in played))
        if not always:
            return None
        if company not in self.known:
            self.known.append(company)
        harmless = self._harmless(suspect, [case for case in item.company if case not in company])
        shared = [change for change in played[0].changes if change not in harmless] or played[0].changes
        found = suspect.dependent(item, played[0].trials[-1], always, shared)
        return replace(found, company=company, fewest=complete)

    def _harmless(self, suspect: _Suspect, others: Sequence[str]) -> set[Change]:
        """What another trial changes in the very same way, without the case coming out otherwise: no suspect."""
        for other in list(dict.fromkeys(case for case in others if case != suspect.case))[:_HARMLESS]:
            played = self.runs.run(Arrangement((other, suspect.case), suspects=True))
            if not suspect.differing(played.trials[-1]):
                return set(played.changes)
        return set()

    def _together(self, suspect: _Suspect, item: _Observation) -> CaseIsolation | None:
        """Likewise side by side, where chance has its say: most of the repeats suffice."""
        played = [self.runs.run(replace(item.order, suspects=number == 0)) for number in range(REPEATS)]
        trials = [one.trials[item.position] for one in played]
        otherwise = [seen for seen in trials if suspect.differing(seen)]
        if len(otherwise) < _ENOUGH_TOGETHER:
            return None

        def flips(positions: Sequence[int]) -> bool:
            kept = sorted((*positions, item.position))
            order = replace(item.order, cases=tuple(cases[position] for position in kept))
            return bool(suspect.differing(self.runs.run(order).trials[kept.index(item.position)]))

        cases = item.order.cases
        others, complete = tuple(at for at in range(len(cases)) if at != item.position), False
        if len(otherwise) == REPEATS:
            others, complete = fewest(others, flips, _MOST_RUNS)
        company = tuple(cases[position] for position in others)
        differs = frozenset[str]().union(*map(suspect.differing, otherwise))
        found = suspect.dependent(item, otherwise[0], differs, played[0].changes)
        return replace(found, company=company, fewest=complete, together=True)


_NOT_REACHED = Seen({"status": "not reached"})


def _by_itself(case: str, again: Sequence[Seen], own: frozenset[str]) -> CaseIsolation:
    """It varies alone. Where only the outcome's values do (a time, an id), its verdict is sound all the same."""
    decisive = {name for name in own if not name.startswith("outcome ")}
    other = next((seen for seen in again if differing(again[0], seen, own - decisive)), None)
    if other is None:
        return CaseIsolation(case, alone=again[0])
    counts = Counter(seen.status for seen in again)
    where = "alone: " + ", ".join(f"{count} times {status}" for status, count in counts.items())
    found = CaseIsolation(case, finding=Finding.FLAKY, alone=again[0], otherwise=other, where=where)
    return replace(found, differs=tuple(sorted(decisive)))


@dataclass(frozen=True)
class _Suspect:
    """A case with how it comes out alone."""

    case: str
    alone: Seen
    own: frozenset[str]
    """Features that vary by themselves."""

    def differing(self, seen: Seen | None) -> frozenset[str]:
        """In what it comes out otherwise; nothing where it was not reached."""
        return frozenset() if seen is None else differing(self.alone, seen, self.own)

    def flaky(self, item: _Observation) -> CaseIsolation:
        """It came out otherwise there, and not when the same was done again."""
        where = f"once {item.where}, and not when that was repeated"
        return replace(self._told(item.seen, self.differing(item.seen), where), finding=Finding.FLAKY)

    def dependent(
        self, item: _Observation, otherwise: Seen | None, differs: frozenset[str], shared: Sequence[Change]
    ) -> CaseIsolation:
        found = self._told(otherwise, differs, item.where)
        return replace(found, finding=Finding.DEPENDENT, shared=tuple(shared))

    def _told(self, otherwise: Seen | None, differs: frozenset[str], where: str) -> CaseIsolation:
        features = tuple(sorted(differs))
        return CaseIsolation(self.case, alone=self.alone, otherwise=otherwise, differs=features, where=where)


def isolate(
    runs: Runs, cases: Mapping[str, str], orders: Orders, tell: Callable[[str], None] = lambda text: None
) -> Isolation:
    """Examine the cases (id -> suite, in file order); `tell` gets lines about the progress."""
    search = _Search(runs, tell)
    tell(f"each of {len(cases)} cases alone")
    alone = {case: search.alone(case) for case in cases}
    names, seen = [], dict[str, list[_Observation]]()
    for name, order in _arrangements(tuple(cases), orders):
        tell(name)
        names.append(name)
        for observation in _observations(name, order, runs.run(order)):
            seen.setdefault(order.cases[observation.position], []).append(observation)
    found = [_found(search, case, alone[case], seen.get(case, [])) for case in cases]
    return Isolation(
        cases=tuple(replace(case, suite=cases[case.case_id]) for case in found),
        orders=("alone", *names),
        seed=orders.seed,
        trials=runs.trials,
        processes=runs.processes,
        unseen=tuple(case for case in cases if case not in seen),
    )


def _found(search: _Search, case: str, alone: Seen, observations: Sequence[_Observation]) -> CaseIsolation:
    otherwise = [item for item in observations if differing(alone, item.seen)]
    return search.examined(case, alone, otherwise) if otherwise else CaseIsolation(case, alone=alone)


def _arrangements(ids: tuple[str, ...], orders: Orders) -> Iterator[tuple[str, Arrangement]]:
    yield "in file order, twice over", Arrangement(ids * 2)
    if len(ids) < 2:
        return
    yield "in reversed order", Arrangement(ids[::-1])
    chance = random.Random(orders.seed)  # noqa: S311  an order, no secret
    for number in range(1, orders.shuffles + 1):
        yield f"in shuffled order {number}", Arrangement(tuple(chance.sample(ids, len(ids))))
    if orders.concurrency > 1:
        at_once = min(orders.concurrency, len(ids))
        yield f"side by side, {at_once} at once", Arrangement(ids, at_once)


def _observations(name: str, order: Arrangement, played: Played) -> Iterator[_Observation]:
    for position, seen in enumerate(played.trials):
        if seen is not None:
            yield _Observation(name, order, position, seen)


def fewest(company: Sequence[T], flips: Callable[[Sequence[T]], bool], most_runs: int) -> tuple[tuple[T, ...], bool]:
    """The fewest of `company`, in order, with which `flips` still holds, and whether the search came to an end.

    Delta debugging (Zeller and Hildebrandt 2002): halves first, then finer parts and what is left without them; so a
    single culprit among n takes about log2 n runs. No one of the result can be left out.
    """
    left, parts, runs = tuple(company), 2, 0
    while len(left) > 1:
        size = max(len(left) // parts, 1)
        pieces = [left[at : at + size] for at in range(0, len(left), size)]
        rests = [left[:at] + left[at + size :] for at in range(0, len(left), size)] if len(pieces) > 2 else []
        for number, smaller in enumerate([*pieces, *rests]):
            runs += 1
            if runs > most_runs:
                return left, False
            if flips(smaller):
                left, parts = smaller, 2 if number < len(pieces) else max(parts - 1, 2)
                break
        else:
            if size == 1:
                return left, True
            parts = min(parts * 2, len(left))
    return left, True
