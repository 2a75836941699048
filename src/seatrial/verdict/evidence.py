"""What a gate looks at, and the figure that comes of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from seatrial.core.ledger import Entry
from seatrial.core.trial import TrialStatus
from seatrial.verdict.comparison import CaseComparison
from seatrial.verdict.metrics import CaseResult
from seatrial.verdict.trials import Trial

__all__ = ["Evidence", "Figure", "of_curtailed"]


@dataclass(frozen=True)
class Evidence:
    """The cases that one gate judges: of gating suites, in its scope, without excepted ones."""

    results: tuple[CaseResult, ...]
    pairs: tuple[CaseComparison, ...] = ()
    """Those of them that both sides ran in the same form."""
    no_baseline: str = ""
    """Why there is nothing to compare with; empty when there is."""
    has_rules: bool = False
    """Whether the project has permission rules; this version cannot grade them."""

    @property
    def valid(self) -> Iterator[Trial]:
        """Trials that passed or failed."""
        return (trial for result in self.results for trial in result.recorded if trial.valid)

    @cached_property
    def valid_count(self) -> int:
        """How many they are."""
        return sum(result.valid for result in self.results)

    @property
    def records(self) -> Iterator[Entry]:
        """The deciding attempt of every trial, invalid ones included."""
        return (trial.last for result in self.results for trial in result.recorded)

    @property
    def looked_at(self) -> Iterator[Entry]:
        """Trials in which what happened counts even where nothing was graded: all but the invalid ones."""
        return (record for record in self.records if record.status is not TrialStatus.INVALID)

    def of_risk(self, risk: str) -> Evidence:
        """Only cases of this risk."""
        return replace(
            self,
            results=tuple(result for result in self.results if result.risk == risk),
            pairs=tuple(pair for pair in self.pairs if pair.candidate is not None and pair.candidate.risk == risk),
        )


@dataclass(frozen=True)
class Figure:
    """A metric's value with what it was counted over."""

    value: float | None
    """None: it cannot be computed; `missing` says why."""
    counts: str = ""
    """Such as `39 of 40 trials`."""
    cases: tuple[str, ...] = ()
    """Cases that count against it."""
    interval: tuple[float, float] | None = None
    """Two-sided 95 %."""
    bounds: tuple[float, float] | None = None
    """Lower and upper end of one-sided 95 % bounds."""
    missing: str = ""
    """What evidence is missing; the value, if any, is of what is known."""
    floor: bool = False
    """With `missing`: the missing evidence can only raise the value."""
    absent: bool = False
    """With no value: no selected case can produce it."""

    @classmethod
    def none(cls, missing: str, *, absent: bool = False) -> Figure:
        """A figure that cannot be computed."""
        return cls(None, missing=missing, absent=absent)


_OF_VERDICTS = frozenset({"new_failures", "candidate_failure_count"})
_CURTAILED = "trials stopped once cases were decided (--stop-when-decided), so that only verdicts count"


def of_curtailed(metric: str, figure: Figure) -> Figure:
    """What a figure is worth where trials stopped once their case was decided.

    Verdicts are those of all trials. A count that more trials can only raise is a lower bound; any other figure is of a
    choice of trials that depends on their outcomes.
    """
    if metric in _OF_VERDICTS or figure.value is None:
        return figure
    if figure.floor and metric != "cost_per_success_usd":
        return replace(figure, missing=figure.missing or _CURTAILED)
    return Figure.none(_CURTAILED)
