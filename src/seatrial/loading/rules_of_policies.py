"""What can be wrong in a policy or its exceptions beyond the shape of the file: names of metrics and groups, ranges."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from seatrial.core.metric import COMMON_GROUPS, METRICS, Metric
from seatrial.core.policy import EVIDENCE_METRICS, bound_and_metric, is_known_gate
from seatrial.errors import Diagnostic, did_you_mean, nearest
from seatrial.loading.located import Map, Seq, Spot, problem_at, shown

__all__ = ["CONDITIONS", "GATES", "exceptions_problems", "policy_problems"]

GATES = tuple(f"{bound}_{name}" for name in METRICS for bound in ("minimum", "maximum"))
"""Every key that a group of gates takes."""
CONDITIONS = tuple(f"{name}_exceeds" for name in METRICS)
"""Every key of `require_human_review_when`."""

_LIST = "`seatrial metrics` lists the names"


def policy_problems(policy: Map, suites: Collection[str] | None) -> Iterator[Diagnostic]:
    """Problems of a release policy. `suites` are those of the project; None = unknown, then any group may be one."""
    conditions = _map(_map(policy, "review"), "require_human_review_when")
    groups = _map(policy, "gates")
    if not conditions and all(isinstance(limits, Map) and not limits for limits in groups.values()):
        yield problem_at(policy.at, "no-gates", "this policy has no gate: it would let anything pass")
    for group, limits, key_at, _ in groups.entries():
        if suites is not None and group not in suites and group not in COMMON_GROUPS:
            yield _no_suite(f"the group {group!r}", group, key_at, (*suites, *COMMON_GROUPS))
        if isinstance(limits, Map):
            for key, value, spot, value_at in limits.entries():
                yield from _gate_problems(f"gates.{group}.{key}", key, value, spot, value_at, suites)
                yield from _contradiction(group, key, value)
    for key, value, spot, value_at in conditions.entries():
        if key in CONDITIONS:
            yield from _range_problems(key, METRICS[key.removesuffix("_exceeds")], value, value_at)
        else:
            message = f"`review.require_human_review_when.{key}` is no METRIC_exceeds"
            yield problem_at(spot, "unknown-metric", message, _condition_hint(key))


def _map(owner: Map, key: str) -> Map:
    value = owner.get(key)
    return value if isinstance(value, Map) else Map()


def _no_suite(what: str, name: str, spot: Spot, known: Collection[str]) -> Diagnostic:
    groups = ", ".join(COMMON_GROUPS)
    message = f"{what} is no suite of the project" + (f" and none of {groups}" if "group" in what else "")
    close = nearest(name, known)
    return problem_at(spot, "unknown-suite", message, f"did you mean {close!r}?" if close else "")


def _gate_problems(
    name: str, key: str, value: Any, spot: Spot, value_at: Spot, suites: Collection[str] | None
) -> Iterator[Diagnostic]:
    parts = bound_and_metric(key)
    if parts is None or parts[1] not in METRICS:
        yield problem_at(spot, "unknown-metric", f"`{name}` names no metric", _gate_hint(key))
        return
    metric = METRICS[parts[1]]
    if not isinstance(value, Map):
        yield from _range_problems(name, metric, value, value_at)
        return
    if "value" in value:
        yield from _range_problems(f"{name}.value", metric, value["value"], value.values_at["value"])
    if value.get("evidence") in ("beyond", "proven") and EVIDENCE_METRICS.get(metric.name) != parts[0]:
        known = " and ".join(f"{bound}_{metric}" for metric, bound in EVIDENCE_METRICS.items())
        message = f"`{name}`: evidence {value['evidence']} exists for {known} only"
        yield problem_at(value.values_at["evidence"], "wrong-value", message)
    suite = value.get("suite")
    if suites is not None and isinstance(suite, str) and suite not in suites:
        yield _no_suite(f"`{name}.suite` {suite!r}", suite, value.values_at["suite"], suites)


def _contradiction(group: str, key: str, value: Any) -> Iterator[Diagnostic]:
    """A gate in the group of one suite that asks for the cases of another: there can be none."""
    suite = value.get("suite") if isinstance(value, Map) else None
    if isinstance(suite, str) and group not in COMMON_GROUPS and suite != group:
        message = f"`gates.{group}.{key}.suite` is {suite!r}, but the group {group!r} judges the suite of its own name"
        hint = f"move the gate to the group {suite!r}, or to a common group such as {_common(key)!r}"
        yield problem_at(value.values_at["suite"], "contradiction", message, hint)


def _common(key: str) -> str:
    """The common group that usually states a gate's metric."""
    parts = bound_and_metric(key)
    metric = METRICS.get(parts[1]) if parts is not None else None
    return metric.group if metric is not None and metric.group in COMMON_GROUPS else "performance"


def _gate_hint(key: str) -> str:
    if key in METRICS:
        return f"write minimum_{key} or maximum_{key}"
    parts = bound_and_metric(key)
    same_bound = [name for name in GATES if parts is None or name.startswith(f"{parts[0]}_")]
    return did_you_mean(key, same_bound) or _LIST


def _condition_hint(key: str) -> str:
    if key in METRICS:
        return f"write {key}_exceeds"
    return did_you_mean(key, CONDITIONS) or _LIST


def _range_problems(name: str, metric: Metric, value: Any, spot: Spot) -> Iterator[Diagnostic]:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return  # the shape of the file says so already
    if value < 0 or (metric.most is not None and value > metric.most):
        wanted = "0 or more" if metric.most is None else f"from 0 to {metric.most:g}"
        percent = metric.most is not None and 1 < value <= 100
        hint = f"{value:g} % is {value / 100:g}" if percent else ""
        yield problem_at(spot, "out-of-range", f"`{name}` should be {wanted}, not {shown(value, spot)}", hint)


def exceptions_problems(written: Map) -> Iterator[Diagnostic]:
    """Problems of accepted deviations: gates that no policy can have."""
    entries = written.get("exceptions")
    for entry in entries if isinstance(entries, Seq) else ():
        name = entry.get("gate") if isinstance(entry, Map) else None
        if isinstance(name, str) and not is_known_gate(name):
            message = f"{name!r} names no gate; write group.metric, such as regression.pass_rate"
            hint = did_you_mean(name.rpartition(".")[2], [*METRICS, *GATES]) or _LIST
            yield problem_at(entry.values_at["gate"], "unknown-metric", message, hint)
