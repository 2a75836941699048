"""Whether cases depend on order or company: what is compared, what was found, and what it tells the shell.

Reference is the case alone, in a fresh process. A case is *dependent* when it comes out otherwise after (or beside)
other trials, every time it is tried; *flaky* when it does not come out the same under the same circumstances, so that
nothing can be laid to the others. What varies of a case that runs alone is never compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from seatrial.core.encoding import dumps
from seatrial.core.trial import TrialRecord
from seatrial.errors import ExitCode
from seatrial.verdict.trials import reason_of

__all__ = [
    "CaseIsolation",
    "Change",
    "Finding",
    "Isolation",
    "Seen",
    "differing",
    "seen_in",
    "varying",
]


@dataclass(frozen=True)
class Seen:
    """One trial as it is compared."""

    features: Mapping[str, str]
    """`status`, `stop`, `error`, `grade NAME`, `outcome KEY`, each with its value as text."""
    reason: str = ""
    """Why it did not pass; shown, never compared."""

    @property
    def status(self) -> str:
        return self.features.get("status", "unknown")


def seen_in(record: TrialRecord) -> Seen:
    """What is compared of a trial: verdict, grades and outcome; neither the output's words nor durations."""
    features = {"status": " ".join(map(str, filter(None, (record.status, record.invalid_reason))))}
    features["stop"] = str(record.stop_reason)
    if record.error is not None:
        features["error"] = record.error.type
    for grade in record.grades:
        score = "" if grade.score is None else f" {grade.score:.9g}"
        features[f"grade {grade.name}"] = f"{grade.verdict}{score}"
    features |= {f"grade {failure.name}": f"raised {failure.error}" for failure in record.grader_failures}
    features |= {f"outcome {key}": dumps(value, sort_keys=True) for key, value in (record.outcome or {}).items()}
    return Seen(features, reason_of(record))


def differing(one: Seen, other: Seen, left_out: Iterable[str] = ()) -> frozenset[str]:
    """The features in which two trials differ."""
    names = (one.features.keys() | other.features.keys()) - set(left_out)
    return frozenset(name for name in names if one.features.get(name) != other.features.get(name))


def varying(repeats: Sequence[Seen]) -> frozenset[str]:
    """The features that are not the same in all repeats."""
    return frozenset[str]().union(*(differing(repeats[0], other) for other in repeats[1:]))


class Finding(StrEnum):
    """What is said of a case."""

    INDEPENDENT = "independent"
    DEPENDENT = "dependent"
    """On trials before it or at the same time."""
    FLAKY = "flaky"
    """It differs from itself, so that it cannot be told whether it depends on others."""


@dataclass(frozen=True)
class Change:
    """Something shared that other trials changed before the case ran: a suspect, not a proof."""

    kind: str
    """global, chance, environment, cwd, thread, file or module."""
    what: str
    """`module:NAME`, the variable's name, the file ..."""
    how: str = ""
    """What changed in it; empty where values are not told."""


@dataclass(frozen=True)
class CaseIsolation:
    """What was found of one case."""

    case_id: str
    suite: str = ""
    finding: Finding = Finding.INDEPENDENT
    alone: Seen | None = None
    otherwise: Seen | None = None
    """How it came out in company, or (flaky) another time."""
    differs: tuple[str, ...] = ()
    """Features in which the two differ, every time (dependent) or sometimes (flaky)."""
    where: str = ""
    """The order that showed it first."""
    company: tuple[str, ...] = ()
    """The fewest trials found that bring it about, in order; the case itself may be among them."""
    together: bool = False
    """Whether they run at the same time rather than before it."""
    fewest: bool = True
    """False: the search for fewer was given up."""
    shared: tuple[Change, ...] = ()
    """What the company changes that the case might read."""


@dataclass(frozen=True)
class Isolation:
    """The whole answer."""

    cases: tuple[CaseIsolation, ...]
    """In file order."""
    orders: tuple[str, ...]
    """The orders that were tried."""
    seed: int
    trials: int
    """Run altogether."""
    processes: int
    """Fresh processes that ran them."""
    unseen: tuple[str, ...] = ()
    """Cases that were never reached in company, because a trial before them ended the process each time."""
    notes: tuple[str, ...] = ()
    """What else the answer does not cover."""

    def found(self, finding: Finding) -> tuple[CaseIsolation, ...]:
        """The cases of which this is said."""
        return tuple(case for case in self.cases if case.finding is finding)

    @property
    def exit_code(self) -> ExitCode:
        """FAILED when a case is dependent; else INCOMPLETE when flaky or unseen cases hide the answer; else PASS."""
        if self.found(Finding.DEPENDENT):
            return ExitCode.FAILED
        return ExitCode.INCOMPLETE if self.found(Finding.FLAKY) or self.unseen else ExitCode.PASS
