"""What has to come before what.

An entry happened where a call executed, failed or is of unknown state, an approval was granted or
edited, a hand-off was completed; refused and rejected calls did not. A call that executed, and any approval and
hand-off that happened, is completed. One thing comes before another when it was completed before the other began and
they are not of one model turn; an approval asked for within a call, for that call, came before it too. Then a chain
holds when

1. no entry that never happened is followed by one that did;
2. the first of each later name had some completed one of its predecessor before it. That need not be the first of them:
   an attempt that failed may be repeated before the chain goes on, but nothing may go on without any that completed;
3. completed ones contain the chain as a subsequence, by name and arguments, as far as it happened; the last of it may
   have failed.

So with `[verify, refund]`: verify (failed), verify, refund holds; verify (failed), refund, verify, refund does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from seatrial.core.case import OrderEntry
from seatrial.core.grade import Grade
from seatrial.core.grading import abstained, failed, listed, passed, unobserved
from seatrial.core.matching import matches
from seatrial.core.ports import GradingContext
from seatrial.core.trace import Approval, CallState, Handoff, Observable, ToolCallEvent, Trace
from seatrial.graders.tools.calls import argument_mismatches

__all__ = ["tool_order"]


def tool_order(context: GradingContext) -> Grade | None:
    """Every chain holds: each later entry needs a completed earlier one, in another model turn.

    The exact rule is at the top of this module.
    """
    chains = context.expected.tool_order
    if not chains:
        return None
    unseen = unobserved(context.trace, *_needs(entry for chain in chains for entry in chain))
    if unseen:
        return unseen
    broken = [_broken(chain, context) for chain in chains if context.trace.ordered or not _is_mixed(chain)]
    problems = [problem for problem in broken if problem is not None]
    if problems:
        return failed("; ".join(p.reason for p in problems), evidence=[n for p in problems for n in p.evidence])
    if len(broken) < len(chains):
        return abstained("the order between tool calls and hand-offs was not observed")
    return passed("the order is kept: " + listed(_arrows(chain) for chain in chains))


def _kind(entry: OrderEntry) -> Observable:
    prefix, colon, _ = entry.name.partition(":")
    kinds = {"handoff": Observable.HANDOFFS, "approval": Observable.APPROVALS}
    return kinds.get(prefix, Observable.TOOL_CALLS) if colon else Observable.TOOL_CALLS


def _needs(entries: Iterator[OrderEntry]) -> list[Observable]:
    return sorted({_kind(entry) for entry in entries})


def _is_mixed(chain: Sequence[OrderEntry]) -> bool:
    return len({_kind(entry) for entry in chain}) > 1


def _arrows(chain: Sequence[OrderEntry]) -> str:
    return " -> ".join(entry.name for entry in chain)


@dataclass(frozen=True)
class _Happening:
    """One occurrence of an entry."""

    number: int
    ended: int | None
    """None: it did not complete, so nothing comes after it."""
    step: int | None = None
    tool: str | None = None
    """The tool of a call, or the action of an approval."""
    until: float | None = None
    """Of a call: when it ended, infinite when it never did; None: this is no call."""

    def before(self, later: _Happening) -> bool:
        """Whether this had completed when `later` began, and was not asked for in the same model turn."""
        if self.ended is None:
            return False
        apart = self.step is None or self.step != later.step
        return (self.ended <= later.number and apart) or self._permits(later)

    def _permits(self, later: _Happening) -> bool:
        """Whether this is an approval that was asked for within that call."""
        if self.until is not None or later.until is None:
            return False
        return self.tool == later.tool and later.number < self.number < later.until


@dataclass(frozen=True)
class _Problem:
    reason: str
    evidence: tuple[int, ...]


def _broken(chain: Sequence[OrderEntry], context: GradingContext) -> _Problem | None:
    """Why a chain does not hold; entries after the last that happened ask for nothing."""
    happened = [_happenings(entry, context.trace, context.case.input) for entry in chain]
    while happened and not happened[-1]:
        happened.pop()
    names = [entry.name for entry in chain]
    if [] in happened:
        gap = happened.index([])
        after = next(number for number in range(gap, len(happened)) if happened[number])
        first = happened[after][0].number
        return _Problem(
            f"{names[after]} (event {first}) without {names[gap]} before it, which never happened", (first,)
        )
    linked = happened[0] if happened else []
    for place, (before, later) in enumerate(pairwise(happened), start=1):
        linked = [item for item in later if any(earlier.before(item) for earlier in linked)]
        is_new = names[place] not in names[:place]
        if not linked or (is_new and not any(earlier.before(later[0]) for earlier in before)):
            return _out_of_order(names[place - 1], before, names[place], later[0])
    return None


def _out_of_order(former: str, happened: Sequence[_Happening], latter: str, after: _Happening) -> _Problem:
    before = next((item for item in happened if item.ended is not None), happened[0])
    if before.step is not None and before.step == after.step:
        why = f"in the same model turn as {former} (event {before.number})"
    else:
        why = f"not after a completed {former} (event {before.number})"
    return _Problem(f"{latter} (event {after.number}) came {why}", (before.number, after.number))


def _happenings(entry: OrderEntry, trace: Trace, data: Any) -> list[_Happening]:
    kind = _kind(entry)
    name = entry.name if kind is Observable.TOOL_CALLS else entry.name.partition(":")[2]
    if kind is Observable.HANDOFFS:
        return [_Happening(h.number, h.number + 1, h.step) for h in trace.handoffs if _went(h, name, entry, data)]
    if kind is Observable.APPROVALS:
        return [_approved(approval) for approval in trace.approvals if _grants(approval, name, entry, data)]
    return [_called(call) for call in trace.tool_calls if call.name == name and _took_place(call, entry, data)]


def _went(handoff: Handoff, target: str, entry: OrderEntry, data: Any) -> bool:
    there = handoff.completed and handoff.target == target
    return there and matches(entry.arguments or {}, handoff.context or {}, input=data)


def _grants(approval: Approval, name: str, entry: OrderEntry, data: Any) -> bool:
    granted = approval.action == name and approval.decision in ("granted", "edited")
    arguments = approval.arguments if approval.approved_arguments is None else approval.approved_arguments
    return granted and matches(entry.arguments or {}, arguments or {}, input=data)


def _approved(approval: Approval) -> _Happening:
    ended = approval.number + 1 if approval.ended is None else approval.ended
    return _Happening(approval.number, ended, tool=approval.action)


_REAL = (CallState.EXECUTED, CallState.FAILED, CallState.UNKNOWN)


def _took_place(call: ToolCallEvent, entry: OrderEntry, data: Any) -> bool:
    if call.state not in _REAL or (call.malformed and entry.arguments):
        return False
    return not entry.arguments or not argument_mismatches(entry.arguments, call.arguments, data)


def _called(call: ToolCallEvent) -> _Happening:
    ended = call.ended if call.state is CallState.EXECUTED else None
    until = float("inf") if call.ended is None else float(call.ended)
    return _Happening(call.number, ended, call.step, call.name, until)
