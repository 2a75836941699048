"""What an adapter says that it observes, held against what it delivered.

In every situation: what the adapter declares, each trial must claim; what is not declared must not be claimed, and no
event of it may be there; what is declared and happened must be claimed. Over all situations: what is declared must
happen in one that the framework has.
"""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.core.trace import Approval, Handoff, Message, ModelCallEvent, Observable, Retrieval, SafetyEvent, Trace
from seatrial.testing.conformance.expected import Expected, Facts, Plan
from seatrial.testing.conformance.findings import Findings
from seatrial.testing.conformance.report import Words
from seatrial.testing.conformance.script import Ways

__all__ = ["check_claims", "check_shown_somewhere", "shown_by"]


def shown_by(expected: Expected, ways: Ways) -> frozenset[Observable]:
    """Which kinds of evidence a situation gives rise to."""
    there = {
        Observable.OUTPUT: expected.outputs,
        Observable.MESSAGES: expected.said,
        Observable.MODEL_CALLS: expected.model_calls,
        Observable.USAGE: [call for call in expected.model_calls if call.usage is not None],
        Observable.TOOL_CALLS: expected.tool_calls,
        Observable.HANDOFFS: expected.handoffs,
        Observable.HANDOFF_CONTEXT: "context" in ways.handoff_carries
        and [one for one in expected.handoffs if one.context],
        Observable.APPROVALS: expected.approvals,
    }
    return frozenset(observable for observable, items in there.items() if items)


def check_claims(findings: Findings, expected: Expected, trace: Trace, facts: Facts) -> None:
    """The trace claims what it must and nothing else, and holds nothing that is not declared."""
    claimed = trace.observes
    must = facts.always | (shown_by(expected, facts.ways) & facts.declared)
    _each(findings, must - claimed, "declared, so claimed by the trace", "not claimed")
    _each(findings, claimed - facts.declared, "not declared, so not claimed by the trace", "claimed")
    for observable, seen in delivered(trace).items():
        if seen and observable not in facts.declared:
            findings.add(
                f"observes {observable}", Words("nothing of it, for it is not declared"), Words(f"{seen} of it")
            )


def check_shown_somewhere(findings: Findings, absent: Plan, others: Iterable[Plan], facts: Facts) -> None:
    """What a situation that is absent would show is not declared, or shown by one of the others, those that run."""
    shown = frozenset[Observable]().union(*(shown_by(plan.expected(1), facts.ways) for plan in others))
    unproven = (shown_by(absent.expected(1), facts.ways) & facts.declared) - shown
    _each(findings, unproven, "declared, so shown by some situation", "every situation that shows it is absent")


def _each(findings: Findings, observables: Iterable[Observable], expected: str, seen: str) -> None:
    for observable in sorted(observables):
        findings.add(f"observes {observable}", Words(expected), Words(seen))


def delivered(trace: Trace) -> dict[Observable, int]:
    """How much of each kind is in a trace."""
    said = [message for message in trace.of(Message) if message.role == "assistant"]
    calls, handoffs = list(trace.of(ModelCallEvent)), list(trace.of(Handoff))
    return {
        Observable.MESSAGES: len(said),
        Observable.MODEL_CALLS: len(calls),
        Observable.USAGE: sum(call.usage is not None for call in calls),
        Observable.TOOL_CALLS: len(trace.tool_calls),
        Observable.HANDOFFS: len(handoffs),
        Observable.HANDOFF_CONTEXT: sum(handoff.context is not None for handoff in handoffs),
        Observable.APPROVALS: len(list(trace.of(Approval))),
        Observable.RETRIEVAL: len(list(trace.of(Retrieval))),
        Observable.SAFETY: sum(event.source == "agent" for event in trace.of(SafetyEvent)),
    }
