"""What a gate decides about a release, with the evidence: `release-decision.json`."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from seatrial.core.frozen import Frozen

__all__ = ["Decision", "DecisionVerdict", "GateResult", "UsedException"]


class DecisionVerdict(StrEnum):
    """The four answers, mildest first. Of several, the precedence is block > incomplete > review > pass."""

    PASS = "pass"
    REVIEW = "review"
    INCOMPLETE = "incomplete"
    BLOCK = "block"


class GateResult(Frozen):
    """One gate or review condition."""

    name: str
    """`group.minimum_METRIC`, `group.maximum_METRIC` or `review.METRIC_exceeds`."""
    metric: str
    verdict: DecisionVerdict
    figure: float | None = None
    """None: could not be computed; `reason` says why."""
    limit: float
    counts: str = ""
    """What the figure was counted over, such as `39 of 40 trials`."""
    interval: tuple[float, float] | None = None
    """Two-sided 95 %, where the metric has one."""
    reason: str = ""
    excepted: bool = False
    """An exception keeps it from deciding."""
    applies: bool = True
    """False: no selected case can produce the figure; listed, decides nothing."""
    cases: tuple[str, ...] = ()
    """Cases that count against it."""


class UsedException(Frozen):
    """An exception that stood in the file, and what became of it."""

    target: str
    """`case ID` or `gate NAME`."""
    reason: str
    approver: str
    expires: str
    used: bool
    note: str = ""
    """Why it was not used: expired, or it would cover critical safety."""


class Decision(Frozen):
    """The answer to "may this build be released?", relative to its inputs."""

    version: int = 1
    verdict: DecisionVerdict
    candidate: dict[str, Any]
    """Build id, run ids, agent."""
    baseline: dict[str, Any] | None = None
    """Build id, approver, date; None without a baseline."""
    gates: tuple[GateResult, ...] = ()
    exceptions: tuple[UsedException, ...] = ()
    new: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Cases of the baseline that the candidate did not run."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, most serious first."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Of every input: trial records, baseline, policy, exceptions."""
    decided: str = ""
    """UTC, ISO 8601 with Z."""
