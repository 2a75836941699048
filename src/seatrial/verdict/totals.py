"""What the valid trials of a case add up to: everything of them that a baseline keeps besides passes.

A sum has the number of trials behind it: what was not observed in a trial is in neither.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import fsum
from typing import NamedTuple

from seatrial.core.ledger import Counted

__all__ = ["JUDGE_SCORE", "MEASURES", "Sum", "Tallied", "Totals", "Way", "together", "totals_of"]

JUDGE_SCORE = "judge_score"
"""The tally by which a judge's grade says its score: how much / 1."""

MEASURES = ("latency_ms", "input_tokens", "output_tokens", "cost_usd", "steps", "tool_call_steps", JUDGE_SCORE)
"""What is summed. A step is a model call; where none was observed it is a tool call, and then stands apart."""


class Sum(NamedTuple):
    """A sum over trials."""

    total: float
    counted: int
    """Trials in which it is known."""

    @property
    def mean(self) -> float | None:
        """A trial's share; None when nothing was counted."""
        return self.total / self.counted if self.counted else None


class Tallied(NamedTuple):
    """A tally summed over trials."""

    hit: float
    of: float

    @property
    def rate(self) -> float | None:
        """None when nothing was counted."""
        return self.hit / self.of if self.of else None


class Way(NamedTuple):
    """Hand-offs from one agent to another."""

    source: str
    target: str
    times: int


@dataclass(frozen=True)
class Totals:
    """Sums over the valid trials of a case, or of several."""

    sums: Mapping[str, Sum] = field(default_factory=dict)
    """By name out of MEASURES; what no trial knows is absent."""
    tallies: Mapping[str, Tallied] = field(default_factory=dict)
    """Of traces and grades, by name, in alphabetical order."""
    tools: Mapping[str, int] = field(default_factory=dict)
    """Calls by tool, in alphabetical order."""
    handoffs: tuple[Way, ...] = ()
    """In alphabetical order."""


def totals_of(records: Iterable[Counted]) -> Totals:
    """The totals of these trials; those that are not valid count in none."""
    valid = [record for record in records if record.valid]
    tools: Counter[str] = Counter()
    for record in valid:
        tools.update(record.tools)
    ways = Counter(way for record in valid for way in record.handoffs)
    return Totals(
        sums=_sums(valid),
        tallies=_tallies(valid),
        tools=dict(sorted(tools.items())),
        handoffs=tuple(Way(*way, count) for way, count in sorted(ways.items())),
    )


def _sums(records: list[Counted]) -> dict[str, Sum]:
    known: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in _measured(record):
            known[name].append(value)
    return {name: Sum(fsum(known[name]), len(known[name])) for name in MEASURES if known[name]}


def _measured(record: Counted) -> Iterator[tuple[str, float]]:
    values = {
        "latency_ms": record.latency_ms,
        "input_tokens": record.tokens.input,
        "output_tokens": record.tokens.output,
        "cost_usd": record.cost_usd,
        "tool_call_steps" if record.steps_are_tool_calls else "steps": record.steps,
        JUDGE_SCORE: _judged(record),
    }
    return ((name, value) for name, value in values.items() if value is not None)


def _judged(record: Counted) -> float | None:
    tallies = [grade.tallies[JUDGE_SCORE] for grade in record.grades if JUDGE_SCORE in grade.tallies]
    of = fsum(tally.of for tally in tallies)
    return fsum(tally.hit for tally in tallies) / of if of else None


def _tallies(records: list[Counted]) -> dict[str, Tallied]:
    sources = chain.from_iterable([record.tallies, *(grade.tallies for grade in record.grades)] for record in records)
    pairs = _gathered({name: (tally.hit, tally.of) for name, tally in source.items()} for source in sources)
    return {name: Tallied(*pair) for name, pair in sorted(pairs.items())}


def together(parts: Iterable[Totals]) -> Totals:
    """The totals of several cases."""
    every = list(parts)
    ways: Counter[tuple[str, str]] = Counter()
    tools: Counter[str] = Counter()
    for part in every:
        tools.update(part.tools)
        ways.update({(source, target): count for source, target, count in part.handoffs})
    sums = _gathered(part.sums for part in every)
    tallies = _gathered(part.tallies for part in every)
    return Totals(
        sums={name: Sum(total, round(counted)) for name, (total, counted) in sums.items()},
        tallies={name: Tallied(*pair) for name, pair in sorted(tallies.items())},
        tools=dict(sorted(tools.items())),
        handoffs=tuple(Way(*way, count) for way, count in sorted(ways.items())),
    )


def _gathered(parts: Iterable[Mapping[str, tuple[float, float]]]) -> dict[str, tuple[float, float]]:
    """Pairs of equal names added up."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for part in parts:
        for name, pair in part.items():
            found[name].append(pair)
    return {
        name: (fsum(first for first, _ in pairs), fsum(second for _, second in pairs)) for name, pairs in found.items()
    }
