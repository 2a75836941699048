"""What several graders of tools say of calls, compare and count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.core.grade import Tally
from seatrial.core.matching import Mismatch, mismatches
from seatrial.core.trace import CallState, ToolCallEvent

__all__ = ["argument_mismatches", "place_of", "ratio_tallies", "words_for"]


def place_of(calls: Sequence[ToolCallEvent], at: int) -> str:
    """Which call it is, in words."""
    return f"call {at + 1}, event {calls[at].number}"


def words_for(state: CallState) -> str:
    """What became of a call, as `it was ...` goes on."""
    return {
        CallState.UNKNOWN_TOOL: "a call of an unknown tool",
        CallState.INVALID_ARGUMENTS: "rejected for its arguments",
        CallState.UNKNOWN: "of unknown state",
    }.get(state, state.value)


def argument_mismatches(wanted: Any, given: Any, data: Any) -> list[Mismatch]:
    """Why arguments are not those that are wanted; `data` is the case's input. None are the same as empty ones."""
    return mismatches(wanted or {}, given or {}, path="arguments", input=data)


def ratio_tallies(name: str, right: dict[str, bool]) -> dict[str, Tally]:
    """A ratio over tools, and each tool's own part of it; nothing where there is no tool."""
    if not right:
        return {}
    each = {f"{name}/{tool}": Tally(hit=held, of=1) for tool, held in right.items()}
    return {name: Tally(hit=sum(right.values()), of=len(right)), **each}
