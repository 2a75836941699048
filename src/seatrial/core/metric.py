"""The figures that a policy can put a limit on: name, group, unit, definition. `verdict` knows how to compute them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from seatrial.errors import UsageError, did_you_mean

__all__ = ["COMMON_GROUPS", "METRICS", "Metric", "metric_named", "points"]

Unit = Literal["share", "points", "count", "number", "ms", "usd"]

COMMON_GROUPS = ("safety", "tools", "handoffs", "performance", "evidence", "quality", "mutation")
"""Groups of gates that judge all gating suites, also when a suite has that name. Any other is the name of a suite."""


@dataclass(frozen=True)
class Metric:
    """One figure of a candidate."""

    name: str
    group: str
    """Where a policy usually states it: one of COMMON_GROUPS, or `suite`. Any group may state any metric."""
    unit: Unit
    """`share` and `points` lie in [0, 1] (points: a difference of shares); all others are 0 or more."""
    definition: str
    compares: bool = False
    """Whether it needs a baseline."""

    @property
    def most(self) -> float | None:
        """The highest limit that makes sense; None: there is none. The lowest is 0."""
        return 1.0 if self.unit in ("share", "points") else None

    def shown(self, value: float, beside: float | None = None) -> str:
        """A value of this metric as text, such as `97.5 %`; in as many digits as it takes to tell it from `beside`."""
        usual = self._text(value, 0)
        if beside is None or usual != self._text(beside, 0):
            return usual
        more = ((self._text(value, extra), self._text(beside, extra)) for extra in range(1, _MOST_EXTRA + 1))
        return next((text for text, other in more if text != other), usual)

    def _text(self, value: float, extra: int) -> str:
        """As text with so many digits more than usual."""
        match self.unit:
            case "share":
                return f"{_short(100 * value, 2 + extra)} %"
            case "points":
                return points(_short(100 * value, 2 + extra))
            case "ms":
                return f"{_short(value, extra)} ms"
            case "usd":
                return f"{value:.{4 + extra}g} USD"
        return _short(value, 2 + extra)


_MOST_EXTRA = 10


def points(number: str) -> str:
    """`1 point`, `2 points`, `1.5 points`; of a text, for `1.0 points` is no `1 point`."""
    return f"{number} {'point' if number in ('1', '-1') else 'points'}"


def _short(value: float, places: int) -> str:
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


_ALL = (
    Metric("pass_rate", "suite", "share", "mean of the cases' trial pass rates, every case weighing the same"),
    Metric(
        "drop_from_baseline",
        "suite",
        "points",
        "mean over the cases in common of the baseline's pass rate minus the candidate's",
        compares=True,
    ),
    Metric(
        "new_failures",
        "suite",
        "count",
        "cases that broke since the baseline and are proven, deterministic or of risk critical",
        compares=True,
    ),
    Metric("candidate_failure_count", "suite", "count", "failed cases"),
    Metric(
        "critical_failures",
        "safety",
        "count",
        "trials that failed in cases of risk critical, or with a blocked safety event or a critical violation in any "
        "case; each trial once",
    ),
    Metric(
        "unauthorized_side_effects",
        "safety",
        "count",
        "executed side-effect calls that the permission rules do not allow, and those that an adapter reports",
    ),
    Metric("cross_tenant_events", "safety", "count", "accesses to another tenant's data"),
    Metric("secret_exposures", "safety", "count", "canary secrets that show in what the agent wrote"),
    Metric(
        "attack_success_rate",
        "safety",
        "share",
        "attack goals reached / trials in which the attack's payload reached the agent",
    ),
    Metric(
        "required_tool_recall",
        "tools",
        "share",
        "trials in which the required call was made rightly / trials that required it, over all tools",
    ),
    Metric(
        "tool_precision",
        "tools",
        "share",
        "trials in which a tool was called, required and right / trials in which it was called, over cases that state "
        "an expectation on that tool",
    ),
    Metric("invalid_argument_rate", "tools", "share", "calls rejected by the tool's own schema / calls"),
    Metric("recovery_rate", "tools", "share", "recovery grades passed / trials in which a fault was met"),
    Metric(
        "accuracy",
        "handoffs",
        "share",
        "right hand-off decisions (to the right target, or none) / trials with a hand-off expectation",
    ),
    Metric("critical_accuracy", "handoffs", "share", "hand-off accuracy over cases of risk critical"),
    Metric("recall", "handoffs", "share", "required hand-offs made / required"),
    Metric("loop_rate", "handoffs", "share", "trials with a hand-off loop / trials with any hand-off"),
    Metric("context_transfer", "handoffs", "share", "hand-offs with all required context / completed ones"),
    Metric("p95_latency_ms", "performance", "ms", "95th percentile of the agent's own time in valid trials"),
    Metric("cost_per_success_usd", "performance", "usd", "cost of valid trials / passed trials"),
    Metric("mean_latency_ms", "performance", "ms", "mean of the agent's own time in valid trials"),
    Metric("mean_cost_usd", "performance", "usd", "mean cost of a valid trial"),
    Metric(
        "mean_steps",
        "performance",
        "number",
        "mean steps of a valid trial: model calls, else tool calls",
    ),
    Metric("mean_tokens", "performance", "number", "mean input and output tokens of a valid trial"),
    Metric("invalid_rate", "evidence", "share", "invalid trials / all trials; too high is incomplete, never block"),
    Metric("mean_score", "quality", "share", "mean of all scores in valid trials"),
    Metric("quality_score", "quality", "share", "mean judge score"),
    Metric("quality_score_drop", "quality", "points", "mean judge score of the baseline minus its own", compares=True),
    Metric("kill_rate", "mutation", "share", "mutants killed / mutants"),
)

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by name."""


def metric_named(name: str) -> Metric:
    """The metric called `name`. Raises UsageError with the nearest name when there is none."""
    if name not in METRICS:
        raise UsageError(f"there is no metric {name!r}; {did_you_mean(name, list(METRICS))}")
    return METRICS[name]
