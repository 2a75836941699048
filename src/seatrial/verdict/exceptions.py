"""Accepted deviations: which of them stand today, and what became of each.

An exception in force takes a case out of every figure, or keeps a gate from deciding. It is void from the day after it
expires. Critical safety takes none: gates of the group `safety` and its counts cannot be excepted, and an excepted case
still enters those counts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date

from seatrial.core.decision import UsedException
from seatrial.core.policy import ExceptionRule, Exceptions, Gate
from seatrial.verdict.gate_metrics import CRITICAL_SAFETY

__all__ = ["Standing", "standing"]


@dataclass(frozen=True)
class Standing:
    """Exceptions as they stand today."""

    cases: frozenset[str]
    """Cases that leave the figures."""
    gates: frozenset[str]
    """Names of gates that decide nothing."""
    used: tuple[UsedException, ...]
    """Every exception of the file, in its order."""


def standing(exceptions: Exceptions, *, today: date, gates: Sequence[Gate], known: Collection[str]) -> Standing:
    """What `exceptions` amount to for these gates; `known` are the cases of candidate and baseline."""
    voids = [(rule, _void(rule, today, gates, known)) for rule in exceptions.exceptions]
    in_force = [rule for rule, void in voids if not void]
    named = {rule.gate for rule in in_force}
    return Standing(
        cases=frozenset(rule.case for rule in in_force if rule.case is not None),
        gates=frozenset(gate.name for gate in gates if gate.aliases & named and not protected(gate)),
        used=tuple(_shown(rule, void, gates) for rule, void in voids),
    )


def protected(gate: Gate) -> bool:
    """Whether no exception can keep this gate from deciding."""
    return gate.group == "safety" or gate.metric.name in CRITICAL_SAFETY


def _void(rule: ExceptionRule, today: date, gates: Sequence[Gate], known: Collection[str]) -> str:
    if today > rule.expires:
        return f"void: it expired, its last day was {rule.expires}"
    if rule.case is not None:
        return "" if rule.case in known else "not used: neither candidate nor baseline has such a case"
    meant = _meant(rule, gates)
    if not meant:
        return "not used: the policy has no such gate"
    return "void: critical safety takes no exception" if all(map(protected, meant)) else ""


def _meant(rule: ExceptionRule, gates: Sequence[Gate]) -> list[Gate]:
    return [gate for gate in gates if rule.gate in gate.aliases]


def _shown(rule: ExceptionRule, void: str, gates: Sequence[Gate]) -> UsedException:
    still = rule.case is not None and any(gate.metric.name in CRITICAL_SAFETY for gate in gates)
    return UsedException(
        target=f"case {rule.case}" if rule.case is not None else f"gate {rule.gate}",
        reason=rule.reason,
        approver=rule.approver,
        expires=rule.expires.isoformat(),
        used=not void,
        note=void or ("it still enters the counts of critical safety" if still else ""),
    )
