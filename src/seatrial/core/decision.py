"""What a gate decides about a release, with the evidence: `release-decision.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from seatrial.core.frozen import Frozen, Word
from seatrial.errors import ExitCode

__all__ = ["Decision", "DecisionVerdict", "GateResult", "UsedException"]


class DecisionVerdict(Word):
    """The four answers, mildest first. Of several, the precedence is block > incomplete > review > pass."""

    PASS = "pass"
    REVIEW = "review"
    INCOMPLETE = "incomplete"
    BLOCK = "block"

    @property
    def weight(self) -> int:
        """Rank in the precedence: the heaviest of several decides."""
        return list(DecisionVerdict).index(self)

    @property
    def exit_code(self) -> ExitCode:
        """What it tells the shell."""
        return _EXIT_CODES[self]


_EXIT_CODES = {
    DecisionVerdict.PASS: ExitCode.PASS,
    DecisionVerdict.REVIEW: ExitCode.REVIEW,
    DecisionVerdict.INCOMPLETE: ExitCode.INCOMPLETE,
    DecisionVerdict.BLOCK: ExitCode.FAILED,
}


class GateResult(Frozen):
    """One gate or review condition."""

    name: str
    """`group.minimum_METRIC`, `group.maximum_METRIC` or `review.METRIC_exceeds`."""
    metric: str
    bound: Literal["minimum", "maximum"] = "maximum"
    level: Literal["block", "review"] = "block"
    """What a violation leads to, as the policy says."""
    verdict: DecisionVerdict
    """What it would decide alone; see `decides`."""
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
    """False: it has nothing to judge (`reason` says why); listed, decides nothing."""
    cases: tuple[str, ...] = ()
    """Cases that count against it."""

    @property
    def condition(self) -> bool:
        """Whether it is a review condition, not a gate."""
        return self.name.startswith("review.") and self.name.endswith("_exceeds")

    @property
    def decides(self) -> bool:
        """Whether its verdict enters the decision."""
        return self.applies and not self.excepted


class UsedException(Frozen):
    """An exception that stood in the file, and what became of it."""

    target: str
    """`case ID` or `gate NAME`."""
    reason: str
    approver: str
    expires: str
    used: bool
    note: str = ""
    """Why it was not used (expired, no such case, it would cover critical safety), or what it does not cover."""


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
    """Cases of the baseline that the candidate did not run, or that no longer decide."""
    reasons: tuple[str, ...] = ()
    """Why the verdict is what it is, most serious first."""
    digests: dict[str, str] = Field(default_factory=dict)
    """Of every input: trial records, baseline, policy, exceptions."""
    decided: str = ""
    """UTC, ISO 8601 with Z."""

    @property
    def exit_code(self) -> ExitCode:
        """What it tells the shell."""
        return self.verdict.exit_code
