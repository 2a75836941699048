"""The grader of where the conversation went.

`target` asks for a completed hand-off to that agent (`null`: for none at all). `reason` and `required_context` look at
the hand-offs to the target, where one of them must satisfy both; without a target at every completed hand-off. A
context path that holds null hands nothing over. `forbidden_context` looks at every hand-off, completed or not; a plain
name is found at any depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.core.case import HandoffExpectation
from seatrial.core.grade import Grade, Tally
from seatrial.core.grading import abstained, count, failed, listed, passed, unobserved
from seatrial.core.matching import MISSING, lookup_path, mismatches
from seatrial.core.ports import GradingContext
from seatrial.core.trace import Handoff, Observable, Trace

__all__ = ["handoff"]

_NO_CONTEXT = "the hand-off's context was not observed"


def handoff(context: GradingContext) -> Grade | None:
    """The conversation was handed over as expected."""
    wanted = context.expected.handoff
    if wanted is None:
        return None
    unseen = unobserved(context.trace, Observable.HANDOFFS)
    if unseen:
        return unseen
    completed = [event for event in context.trace.handoffs if event.completed]
    if not (completed or wanted.expects_target or wanted.max_handoffs is not None or wanted.forbidden_context):
        return None  # only a reason or context to look at, and no hand-off that has one
    relevant = [event for event in completed if not wanted.expects_target or event.target == wanted.target]
    problems, doubts = _judge(wanted, completed, relevant, context)
    evidence = [event.number for event in completed]
    tallies = _tallies(wanted, completed, relevant)
    if problems:
        return failed("; ".join(problems), evidence=evidence, tallies=tallies)
    if doubts:
        return abstained("; ".join(doubts), evidence=evidence, tallies=tallies)
    return passed(_went(completed), evidence=evidence, tallies=tallies)


def _judge(
    wanted: HandoffExpectation, completed: Sequence[Handoff], relevant: Sequence[Handoff], context: GradingContext
) -> tuple[list[str], list[str]]:
    """What is wrong, and what could not be observed."""
    problems = [*_target_problems(wanted, completed), *_number_problems(wanted, completed)]
    problems += _forbidden(wanted, context.trace.handoffs)
    doubts = _unseen(wanted, context.trace)
    findings = [_shortcomings(wanted, event, context) for event in relevant]
    if wanted.expects_target:  # one good hand-off to the target is enough
        findings = sorted(findings, key=lambda finding: tuple(map(len, finding)))[:1]
    for wrong, unseen in findings:
        problems += wrong
        doubts += unseen
    return list(dict.fromkeys(problems)), list(dict.fromkeys(doubts))


def _target_problems(wanted: HandoffExpectation, completed: Sequence[Handoff]) -> Iterator[str]:
    if not wanted.expects_target:
        return
    if wanted.target is None and completed:
        yield f"expected no hand-off, got {_arrows(completed)}"
    elif wanted.target is not None and all(event.target != wanted.target for event in completed):
        yield f"expected a hand-off to {wanted.target}, got {_arrows(completed) or 'none'}"


def _number_problems(wanted: HandoffExpectation, completed: Sequence[Handoff]) -> Iterator[str]:
    most = wanted.max_handoffs
    if most is not None and len(completed) > most:
        yield f"{count(len(completed), 'hand-off')}, at most {most}: {_arrows(completed)}"


def _arrows(handoffs: Sequence[Handoff]) -> str:
    return listed(f"{event.source} -> {event.target}" for event in handoffs)


def _went(completed: Sequence[Handoff]) -> str:
    return f"handed over: {_arrows(completed)}" if completed else "no hand-off"


def _shortcomings(wanted: HandoffExpectation, event: Handoff, context: GradingContext) -> tuple[list[str], list[str]]:
    """What is wrong with one hand-off's reason and context, and what of them could not be observed."""
    problems: list[str] = []
    doubts: list[str] = []
    if wanted.reason is not None and event.reason is None and not context.trace.saw(Observable.HANDOFF_CONTEXT):
        doubts.append("the hand-off's reason was not observed")
    elif wanted.reason is not None:
        found = mismatches(wanted.reason, event.reason, path="reason", input=context.case.input)
        problems += [str(mismatch) for mismatch in found]
    if wanted.required_context and event.context is None:
        doubts.append(_NO_CONTEXT)
    elif wanted.required_context:
        lacking = _lacking(wanted, event)
        problems += [f"context of {event.source} -> {event.target} lacks {listed(lacking)}"] if lacking else []
    return problems, doubts


def _lacking(wanted: HandoffExpectation, event: Handoff) -> list[str]:
    return [path for path in wanted.required_context if lookup_path(event.context, path) in (MISSING, None)]


def _forbidden(wanted: HandoffExpectation, handoffs: Sequence[Handoff]) -> Iterator[str]:
    for event in handoffs:
        found = [path for path in wanted.forbidden_context if _holds(event.context, path)]
        if found:
            yield f"context of {event.source} -> {event.target} holds {listed(found)}"


def _holds(data: Any, path: str) -> bool:
    if isinstance(data, (Mapping, list)) and lookup_path(data, path) is not MISSING:
        return True
    items = data.values() if isinstance(data, Mapping) else data if isinstance(data, list) else ()
    return any(_holds(item, path) for item in items)


def _unseen(wanted: HandoffExpectation, trace: Trace) -> list[str]:
    """Forbidden context cannot be ruled out where a hand-off's context was not observed."""
    unseen = wanted.forbidden_context and any(event.context is None for event in trace.handoffs)
    return [_NO_CONTEXT] if unseen else []


def _tallies(wanted: HandoffExpectation, completed: Sequence[Handoff], relevant: Sequence[Handoff]) -> dict[str, Tally]:
    tallies: dict[str, Tally] = {}
    if wanted.expects_target:
        right = bool(relevant) if wanted.target is not None else not completed
        tallies["handoff_accuracy"] = Tally(hit=right, of=1)
        if wanted.target is not None:
            tallies["handoff_recall"] = Tally(hit=right, of=1)
    seen = [event for event in relevant if event.context is not None]
    if wanted.required_context and seen:
        whole = sum(not _lacking(wanted, event) for event in seen)
        tallies["context_transfer"] = Tally(hit=whole, of=len(seen))
    return tallies
