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

from seatrial.core.trial import TrialRecord

__all__ = ["JUDGE_SCORE", "MEASURES", "Sum", "Tallied", "Totals", "Way", "totals_of"]

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
    count: int


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


def totals_of(records: Iterable[TrialRecord]) -> Totals:
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


def _sums(records: list[TrialRecord]) -> dict[str, Sum]:
    known: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, value in _measured(record):
            known[name].append(value)
    return {name: Sum(fsum(known[name]), len(known[name])) for name in MEASURES if known[name]}


def _measured(record: TrialRecord) -> Iterator[tuple[str, float]]:
    values = {
        "latency_ms": record.latency_ms,
        "input_tokens": record.tokens.input,
        "output_tokens": record.tokens.output,
        "cost_usd": record.cost_usd,
        "tool_call_steps" if record.steps_are_tool_calls else "steps": record.steps,
        JUDGE_SCORE: _judged(record),
    }
    return ((name, value) for name, value in values.items() if value is not None)


def _judged(record: TrialRecord) -> float | None:
    tallies = [grade.tallies[JUDGE_SCORE] for grade in record.grades if JUDGE_SCORE in grade.tallies]
    of = fsum(tally.of for tally in tallies)
    return fsum(tally.hit for tally in tallies) / of if of else None


def _tallies(records: list[TrialRecord]) -> dict[str, Tallied]:
    hits: dict[str, list[float]] = defaultdict(list)
    ofs: dict[str, list[float]] = defaultdict(list)
    for record in records:
        for name, tally in chain(record.tallies.items(), *(grade.tallies.items() for grade in record.grades)):
            hits[name].append(tally.hit)
            ofs[name].append(tally.of)
    return {name: Tallied(fsum(hits[name]), fsum(ofs[name])) for name in sorted(hits)}
