"""What a review of a baseline looks at: how it differs from another one, or from a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.core.encoding import dumps
from seatrial.core.run import RunInfo
from seatrial.verdict.baseline import Baseline, digests_of, side_of_baseline
from seatrial.verdict.comparison import Comparison, compare
from seatrial.verdict.sides import Side

__all__ = ["BaselineDiff", "Changed", "baseline_diff", "run_diff"]


@dataclass(frozen=True)
class Changed:
    """A setting that differs, as text."""

    name: str
    """Such as `approver` or `agent.config.model`."""
    before: str
    """Empty when it was not there."""
    after: str


@dataclass(frozen=True)
class BaselineDiff:
    """Two baselines, or a baseline and a run."""

    settings: tuple[Changed, ...]
    """Build, agent spec, digests; of two baselines also who approved it, why, until when."""
    comparison: Comparison
    """Cases that were added, removed or edited, and passes that changed."""


def baseline_diff(before: Baseline, after: Baseline) -> BaselineDiff:
    """How a baseline differs from an earlier one."""
    settings = _changed(_approval(before) | _build(before), _approval(after) | _build(after))
    return BaselineDiff(settings, compare(side_of_baseline(before), side_of_baseline(after)))


def run_diff(before: Baseline, info: RunInfo, side: Side) -> BaselineDiff:
    """How a run (`side` holds its cases) differs from a baseline; the policy is no part of a run."""
    known = {name: value for name, value in _build(before).items() if name != "digests.policy"}
    run = {"build_id": info.build_id, **_flat("agent", info.agent), **_flat("digests", digests_of(info))}
    return BaselineDiff(_changed(known, run), compare(side_of_baseline(before), side))


def _approval(baseline: Baseline) -> dict[str, str]:
    expires = "" if baseline.expires is None else str(baseline.expires)
    return {
        "approver": baseline.approver,
        "reason": baseline.reason,
        "approved": baseline.approved,
        "expires": expires,
        "fresh": "yes" if baseline.fresh else "no",
        "run_ids": ", ".join(baseline.run_ids),
    }


def _build(baseline: Baseline) -> dict[str, str]:
    return {
        "build_id": baseline.build_id,
        **_flat("agent", baseline.agent),
        **_flat("digests", baseline.digests),
    }


def _flat(name: str, value: Any) -> dict[str, str]:
    """`{"agent.config.model": "small"}`: every leaf by its path."""
    return dict(_leaves(name, value))


def _leaves(name: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}.{key}", inner)
    else:
        yield name, value if isinstance(value, str) else dumps(value)


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Changed, ...]:
    pairs = ((name, before.get(name, ""), after.get(name, "")) for name in {**before, **after})
    return tuple(Changed(*pair) for pair in pairs if pair[1] != pair[2])
