"""A gate's verdict on its figure; `seatrial.verdict.gate` says what the rules are."""

from __future__ import annotations

from dataclasses import dataclass

from seatrial.core.decision import DecisionVerdict
from seatrial.core.policy import Gate
from seatrial.verdict.evidence import Figure

__all__ = ["Judgement", "judged"]

_SLACK = 1e-12
"""Figures are sums of fractions: 0.1 + 0.2 does not violate a maximum of 0.3."""
_REVIEWED = {
    "drop_from_baseline": "not proven: that needs the exact test and a confirmation, which this version does not have",
    "quality_score": "no judge is calibrated, so that judges' scores cannot block",
    "quality_score_drop": "no judge is calibrated, so that judges' scores cannot block",
}
"""Metrics whose violation asks for review, with the reason."""


@dataclass(frozen=True)
class Judgement:
    """What one gate decides."""

    verdict: DecisionVerdict
    reason: str = ""
    applies: bool = True


def judged(gate: Gate, figure: Figure) -> Judgement:
    """The verdict of a gate on its figure."""
    skip = gate.spec.when_missing == "skip"
    if figure.value is None:
        reason = f"skipped: {figure.missing}" if skip else figure.missing
        return Judgement(DecisionVerdict.PASS if skip else DecisionVerdict.INCOMPLETE, reason, applies=not skip)
    violated = _violates(gate, figure.value)
    # what is missing can only raise a floor: then a maximum that is exceeded, or a minimum that is reached, is certain
    certain = figure.floor and violated == (gate.bound == "maximum")
    if figure.missing and not certain and not skip:
        return Judgement(DecisionVerdict.INCOMPLETE, _open(gate, figure))
    return _violation(gate, figure, figure.value) if violated else _held(gate, figure)


def _violates(gate: Gate, value: float) -> bool:
    limit = gate.spec.value
    slack = _SLACK * max(1.0, abs(limit))
    return value < limit - slack if gate.bound == "minimum" else value > limit + slack


def _open(gate: Gate, figure: Figure) -> str:
    value = "" if figure.value is None else gate.metric.shown(figure.value, gate.spec.value)
    return f"{'at least ' if figure.floor else ''}{value} as far as is known; {figure.missing}"


def _violation(gate: Gate, figure: Figure, value: float) -> Judgement:
    side = "below the minimum" if gate.bound == "minimum" else "above the maximum"
    words = f"{gate.metric.shown(value, gate.spec.value)} is {side} of {gate.metric.shown(gate.spec.value, value)}"
    if gate.metric.name == "invalid_rate" and gate.bound == "maximum" and not gate.condition:
        return Judgement(DecisionVerdict.INCOMPLETE, f"{words}: not enough valid evidence")
    if gate.metric.name in _REVIEWED:
        return Judgement(DecisionVerdict.REVIEW, f"{words}; {_REVIEWED[gate.metric.name]}")
    if gate.spec.evidence == "beyond" and figure.bounds is not None and not _violates(gate, figure.bounds[1]):
        upper = gate.metric.shown(figure.bounds[1], gate.spec.value)
        return Judgement(DecisionVerdict.REVIEW, f"{words}, but not beyond chance: it may be up to {upper}")
    return Judgement(DecisionVerdict(gate.spec.level), words)


def _held(gate: Gate, figure: Figure) -> Judgement:
    if gate.spec.evidence != "proven":
        return Judgement(DecisionVerdict.PASS)
    if figure.bounds is None:
        reason = "it holds as observed; to prove that takes an interval of the drop, which this version does not have"
        return Judgement(DecisionVerdict.INCOMPLETE, reason)
    if not _violates(gate, figure.bounds[0]):
        return Judgement(DecisionVerdict.PASS)
    wanted, low = gate.spec.value, figure.bounds[0]
    limit, lower = gate.metric.shown(wanted, low), gate.metric.shown(low, wanted)
    return Judgement(
        DecisionVerdict.INCOMPLETE, f"not proven: it may be as low as {lower}, under {limit}; more trials may prove it"
    )
