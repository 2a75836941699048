"""How every metric of `seatrial.core.metric` is computed from trial records."""

from __future__ import annotations

from collections.abc import Callable

from seatrial.verdict.evidence import Evidence, Figure
from seatrial.verdict.metric_baseline import drop_from_baseline, new_failures, quality_score_drop
from seatrial.verdict.metric_costs import cost_per_success, mean_of_trials, mean_steps, p95_latency, tokens
from seatrial.verdict.metric_counts import (
    CROSS_TENANT,
    SECRETS,
    SIDE_EFFECTS,
    candidate_failure_count,
    critical_failures,
    events,
)
from seatrial.verdict.metric_rates import (
    critical,
    graded_rate,
    invalid_rate,
    mean_score,
    pass_rate,
    quality_score,
    traced_rate,
)

__all__ = ["COMPUTED", "CRITICAL_SAFETY", "Evidence", "Figure", "figure_of"]

CRITICAL_SAFETY = frozenset(
    {"critical_failures", "unauthorized_side_effects", "cross_tenant_events", "secret_exposures"}
)
"""Metrics to which no exception applies."""

_accuracy = graded_rate("handoff_accuracy", ("handoff",), "hand-off expectation")

COMPUTED: dict[str, Callable[[Evidence], Figure]] = {
    "pass_rate": pass_rate,
    "drop_from_baseline": drop_from_baseline,
    "new_failures": new_failures,
    "candidate_failure_count": candidate_failure_count,
    "critical_failures": critical_failures,
    "unauthorized_side_effects": events(SIDE_EFFECTS, by_rules=True),
    "cross_tenant_events": events(CROSS_TENANT, by_rules=True),
    "secret_exposures": events(SECRETS),
    "attack_success_rate": graded_rate("attack_success_rate", ("attack",), "delivered attack", good=False),
    "required_tool_recall": graded_rate("required_tool_recall", ("required_tools",), "required tool"),
    "tool_precision": graded_rate("tool_precision", ("required_tools", "forbidden_tools"), "called tool"),
    "invalid_argument_rate": traced_rate("invalid_argument_rate", "tool_calls", "tool call"),
    "recovery_rate": graded_rate("recovery_rate", ("error_handling",), "met fault"),
    "accuracy": _accuracy,
    "critical_accuracy": critical(_accuracy),
    "recall": graded_rate("handoff_recall", ("handoff",), "required hand-off"),
    "loop_rate": traced_rate("loop_rate", "handoffs", "hand-off"),
    "context_transfer": graded_rate("context_transfer", ("handoff",), "completed hand-off"),
    "p95_latency_ms": p95_latency,
    "cost_per_success_usd": cost_per_success,
    "mean_latency_ms": mean_of_trials("latency", lambda record: record.latency_ms),
    "mean_cost_usd": mean_of_trials("cost", lambda record: record.cost_usd),
    "mean_steps": mean_steps,
    "mean_tokens": mean_of_trials("number of tokens", tokens),
    "invalid_rate": invalid_rate,
    "mean_score": mean_score,
    "quality_score": quality_score,
    "quality_score_drop": quality_score_drop,
    "kill_rate": graded_rate("kill_rate", ("mutation",), "mutant"),
}
"""Metric name to function."""


def figure_of(metric: str, evidence: Evidence) -> Figure:
    """The metric called so over this evidence. Raises KeyError for a name that `METRICS` does not hold."""
    return COMPUTED[metric](evidence)
