"""A release policy as people write it: which figures a candidate must reach, and when a person must look."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, StrictBool, model_validator

from seatrial.core.case import Risk
from seatrial.core.frozen import Frozen
from seatrial.core.metric import COMMON_GROUPS, METRICS, Metric, metric_named
from seatrial.errors import UsageError

__all__ = [
    "EVIDENCE_METRICS",
    "ExceptionRule",
    "Exceptions",
    "Gate",
    "GateSpec",
    "Policy",
    "ReviewSpec",
    "Said",
    "bound_and_metric",
    "gates_of",
    "is_known_gate",
    "iso_date",
]

Bound = Literal["minimum", "maximum"]
Limit = Annotated[float, Field(allow_inf_nan=False, strict=True)]

EVIDENCE_METRICS = {"pass_rate": "minimum", "drop_from_baseline": "maximum"}
"""Metrics for which `evidence: beyond` and `proven` exist, with the bound that they exist for."""


class GateSpec(Frozen):
    """One limit on one metric. A plain number is short for `{value: NUMBER}`."""

    value: Limit
    level: Literal["block", "review"] = "block"
    """What a violation leads to."""
    suite: str | None = None
    """Only cases of this suite."""
    risk: Risk | None = None
    """Only cases of this risk."""
    evidence: Literal["observed", "beyond", "proven"] = "observed"
    """How sure one must be: for drop and pass rate only."""
    when_missing: Literal["incomplete", "skip"] = "incomplete"
    """What follows when the figure cannot be computed. Skip: the gate decides nothing, or goes by what is known."""

    @model_validator(mode="before")
    @classmethod
    def _number(cls, data: object) -> object:
        return {"value": data} if isinstance(data, (int, float)) and not isinstance(data, bool) else data


class ReviewSpec(Frozen):
    """Conditions under which a person must look: `METRIC_exceeds: NUMBER`."""

    require_human_review_when: dict[str, Limit] = Field(default_factory=dict)


class Policy(Frozen):
    """`policies/release_policy.yaml`."""

    version: Literal[1] = 1
    alpha: float = Field(default=0.05, gt=0, lt=0.5, strict=True)
    """Probability of blocking an unchanged build by its drop."""
    confirm: StrictBool = True
    """Whether a suspect drop is confirmed on fresh trials of both builds before it blocks."""
    gates: dict[str, dict[str, GateSpec]] = Field(default_factory=dict)
    """Group -> `minimum_METRIC` or `maximum_METRIC` -> limit."""
    review: ReviewSpec = ReviewSpec()


@dataclass(frozen=True)
class Gate:
    """One gate or review condition of a policy, taken apart."""

    name: str
    """`group.minimum_METRIC`, `group.maximum_METRIC` or `review.METRIC_exceeds`."""
    group: str
    """`review` for a review condition."""
    metric: Metric
    bound: Bound
    spec: GateSpec
    condition: bool = False
    """Whether it is a review condition: where no selected case can produce the figure, it does not apply."""

    @property
    def suite(self) -> str | None:
        """The suite whose trials it judges; None: all gating suites."""
        return self.spec.suite or self.group_suite

    @property
    def group_suite(self) -> str | None:
        """The suite that its group names; None for a common group and for a review condition."""
        return None if self.condition or self.group in COMMON_GROUPS else self.group

    @property
    def aliases(self) -> frozenset[str]:
        """The names by which an exception may call it."""
        return frozenset({self.name, f"{self.group}.{self.metric.name}"})


def bound_and_metric(key: str) -> tuple[Bound, str] | None:
    """`("minimum", "pass_rate")` from `minimum_pass_rate`; None when the key has neither form."""
    for bound in ("minimum", "maximum"):
        if key.startswith(f"{bound}_"):
            return bound, key.removeprefix(f"{bound}_")
    return None


def gates_of(policy: Policy) -> Iterator[Gate]:
    """Every gate, then every review condition, as written. Raises UsageError for a name that no metric has."""
    for group, limits in policy.gates.items():
        for key, spec in limits.items():
            parts = bound_and_metric(key)
            if parts is None:
                raise UsageError(f"gates.{group}.{key} names no metric; write minimum_METRIC or maximum_METRIC")
            yield Gate(f"{group}.{key}", group, metric_named(parts[1]), parts[0], spec)
    for key, limit in policy.review.require_human_review_when.items():
        metric = metric_named(key.removesuffix("_exceeds"))
        yield Gate(f"review.{key}", "review", metric, "maximum", GateSpec(value=limit, level="review"), condition=True)


def iso_date(data: object) -> object:
    """For dates that people write: raises ValueError for anything but a date or its text."""
    # pydantic reads a number as seconds since 1970, so that 20261231 would be long past
    if isinstance(data, date) or (isinstance(data, str) and not data.strip().isdigit()):
        return data
    raise ValueError("a date is written YYYY-MM-DD")


Said = Annotated[str, Field(min_length=1, pattern=r"\S")]
"""Text that says something: not blank."""


class ExceptionRule(Frozen):
    """One accepted deviation: a case that leaves every figure, or a gate that decides nothing."""

    case: str | None = None
    gate: str | None = None
    """`group.metric`, or the gate's whole name."""
    reason: Said
    approver: Said
    expires: Annotated[date, BeforeValidator(iso_date)]
    """The last day on which it holds."""

    @model_validator(mode="after")
    def _one_target(self) -> ExceptionRule:
        if (self.case is None) == (self.gate is None):
            raise ValueError("an exception names a case or a gate, one of them")
        return self


class Exceptions(Frozen):
    """`policies/exceptions.yaml`."""

    version: Literal[1] = 1
    exceptions: tuple[ExceptionRule, ...] = ()


def is_known_gate(name: str) -> bool:
    """Whether `group.metric` (or with the bound, or `review.METRIC_exceeds`) can name a gate of some policy."""
    group, dot, key = name.partition(".")
    parts = bound_and_metric(key)
    bare = key.removesuffix("_exceeds") if group == "review" else key
    return bool(group and dot) and (bare if parts is None else parts[1]) in METRICS
