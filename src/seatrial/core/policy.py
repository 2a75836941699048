"""A release policy as people write it: which figures a candidate must reach, and when a person must look."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field, model_validator

from seatrial.core.case import Risk
from seatrial.core.frozen import Frozen

__all__ = ["ExceptionRule", "Exceptions", "GateSpec", "Policy", "ReviewSpec"]


class GateSpec(Frozen):
    """One limit on one metric. A plain number is short for `{value: NUMBER}`."""

    value: float = Field(allow_inf_nan=False, strict=True)
    level: Literal["block", "review"] = "block"
    """What a violation leads to."""
    suite: str | None = None
    """Only cases of this suite."""
    risk: Risk | None = None
    """Only cases of this risk."""
    evidence: Literal["observed", "beyond", "proven"] = "observed"
    """How sure one must be: for drop and pass rate only."""
    when_missing: Literal["incomplete", "skip"] = "incomplete"
    """What follows when the figure cannot be computed."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, data: object) -> object:
        return {"value": data} if isinstance(data, (int, float)) and not isinstance(data, bool) else data


class ReviewSpec(Frozen):
    """Conditions under which a person must look: `METRIC_exceeds: NUMBER`."""

    require_human_review_when: dict[str, float] = Field(default_factory=dict)


class Policy(Frozen):
    """`policies/release_policy.yaml`."""

    version: Literal[1] = 1
    alpha: float = Field(default=0.05, gt=0, lt=0.5, strict=True)
    """Probability of blocking an unchanged build by its drop."""
    confirm: bool = True
    """Whether a suspect drop is confirmed on fresh trials of both builds before it blocks."""
    gates: dict[str, dict[str, GateSpec]] = Field(default_factory=dict)
    """Group -> `minimum_METRIC` or `maximum_METRIC` -> limit."""
    review: ReviewSpec = ReviewSpec()


class ExceptionRule(Frozen):
    """One accepted deviation: a case that leaves every figure, or a gate that decides nothing."""

    case: str | None = None
    gate: str | None = None
    """`group.metric`."""
    reason: str = Field(min_length=1)
    approver: str = Field(min_length=1)
    expires: date
    """The last day on which it holds."""

    @model_validator(mode="after")
    def _one_target(self) -> ExceptionRule:
        if (self.case is None) == (self.gate is None):
            raise ValueError("an exception names a case or a gate, one of them")
        return self


class Exceptions(Frozen):
    """`policies/exceptions.yaml`."""

    exceptions: tuple[ExceptionRule, ...] = ()
