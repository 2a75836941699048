"""A trace held against what it must say, one kind of evidence after the other.

What the adapter does not declare is not compared here: `claims` sees to it that nothing of it is there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from seatrial.core.encoding import to_json
from seatrial.core.trace import (
    Approval,
    CallState,
    Fault,
    Handoff,
    Message,
    ModelCallEvent,
    Observable,
    StopReason,
    ToolCallEvent,
    Trace,
    Usage,
)
from seatrial.testing.conformance.claims import check_claims
from seatrial.testing.conformance.expected import AGENT, Asked, Call, Expected, Facts, Passed
from seatrial.testing.conformance.findings import Findings

__all__ = ["check_trace"]


@dataclass(frozen=True)
class _Seen:
    """A trace beside what is expected of it."""

    expected: Expected
    trace: Trace
    facts: Facts
    findings: Findings

    @property
    def models(self) -> list[ModelCallEvent]:
        return list(self.trace.of(ModelCallEvent))

    def model(self, step: int | None) -> int | None:
        """Event number of a model call by its place; None where there is no such call."""
        models = self.models
        return models[step - 1].number if step is not None and 0 < step <= len(models) else None


def check_trace(findings: Findings, expected: Expected, trace: Trace, facts: Facts) -> None:
    """Every way in which the trace says something else than it must."""
    seen = _Seen(expected, trace, facts, findings)
    check_claims(findings, expected, trace, facts)
    _check_end(seen)
    _check_numbers(seen)
    for observable, check in _CHECKS.items():
        if facts.observes(observable):
            check(seen)
    _check_faults(seen)


# --- how it ended ----------------------------------------------------------------------------------------------------


def _check_end(seen: _Seen) -> None:
    expected, trace, findings = seen.expected, seen.trace, seen.findings
    if expected.stop is not trace.stop_reason:
        raised = f" ({trace.error.summary})" if trace.error else ""
        findings.add("stop reason", str(expected.stop), f"{trace.stop_reason}{raised}")
    elif expected.stop is StopReason.AGENT_ERROR:
        findings.contains("error of the trial", expected.error, trace.error.message if trace.error else None)
    else:
        findings.equal("error of the trial", None, trace.error and trace.error.summary)


def _check_output(seen: _Seen) -> None:
    outputs = [output for output in seen.trace.outputs if output is not None]
    if seen.expected.stop is StopReason.ANSWERED:
        seen.findings.equal("answers", list(seen.expected.outputs), outputs)
        seen.findings.equal("final output", seen.expected.outputs[-1], seen.trace.output)
    else:
        seen.findings.equal("final output", None, seen.trace.output)


def _check_numbers(seen: _Seen) -> None:
    numbers = [event.number for event in seen.trace.events]
    seen.findings.equal("numbers of the events", list(range(1, len(numbers) + 1)), numbers)


# --- models ----------------------------------------------------------------------------------------------------------


def _check_models(seen: _Seen) -> None:
    expected, models, findings = seen.expected.model_calls, seen.models, seen.findings
    findings.equal("steps", len(expected), seen.trace.steps)
    if not findings.same_length("model calls", expected, models, [call.agent for call in models]):
        return
    for place, (wanted, call) in enumerate(zip(expected, models, strict=True), 1):
        what = f"model call {place}"
        findings.equal(f"{what}: agent", wanted.agent, call.agent)
        findings.equal(f"{what}: turn", wanted.turn, call.turn)
        if wanted.error:
            findings.contains(f"{what}: error", wanted.error, call.error)
        else:
            findings.equal(f"{what}: model", "scripted", call.model)
            findings.equal(f"{what}: error", None, call.error)


def _check_usage(seen: _Seen) -> None:
    for place, (wanted, call) in enumerate(zip(seen.expected.model_calls, seen.models, strict=False), 1):
        usage = None if wanted.error else _carried(wanted.usage, seen.facts.ways.usage_kinds)
        seen.findings.equal(f"model call {place}: usage", _said(usage), _said(call.usage))


def _carried(usage: Usage | None, kinds: frozenset[str]) -> Usage | None:
    if usage is None:
        return None
    return Usage(**{kind: count for kind, count in usage.model_dump().items() if kind in kinds})


def _said(usage: Usage | None) -> dict[str, int]:
    """The kinds of which something is known and that are not zero: no tokens of a part is the same as unsaid."""
    counts = {} if usage is None else usage.model_dump(exclude_none=True)
    return {kind: count for kind, count in counts.items() if count or kind in ("input", "output")}


def _check_said(seen: _Seen) -> None:
    said = [message for message in seen.trace.of(Message) if message.role == "assistant"]
    spoken = [(message.agent, message.content, message.turn) for message in said]
    wanted = [(one.agent, one.text, one.turn) for one in seen.expected.said]
    seen.findings.equal("what the agents said (agent, text, turn)", wanted, spoken)


# --- tools -----------------------------------------------------------------------------------------------------------


def _check_tools(seen: _Seen) -> None:
    expected, calls = seen.expected.tool_calls, seen.trace.tool_calls
    if not seen.findings.same_length("tool calls", expected, calls, [f"{call.name} {call.state}" for call in calls]):
        return
    pairs = _paired(expected, calls)
    for place, (wanted, call) in enumerate(pairs, 1):
        _check_call(seen, f"tool call {place} ({wanted.name})", wanted, call)
    _check_ids(seen, pairs)
    if seen.expected.overlapping:
        _check_overlap(seen, *(call for _, call in pairs))


def _paired(expected: Sequence[Call], calls: Sequence[ToolCallEvent]) -> list[tuple[Call, ToolCallEvent]]:
    """Each expected call with the seen one that is meant; calls of one step have no order among themselves."""
    left = list(calls)
    pairs: list[tuple[Call, ToolCallEvent]] = []
    for _, group in groupby(expected, key=lambda call: call.step):
        together = list(group)
        window, left = left[: len(together)], left[len(together) :]
        for wanted in together:
            best = max(window, key=lambda call: _likeness(wanted, call))
            window.remove(best)
            pairs.append((wanted, best))
    return pairs


def _likeness(wanted: Call, call: ToolCallEvent) -> int:
    return 2 * (call.name == wanted.name) + (to_json(wanted.arguments) in (call.arguments, call.asked))


def _check_call(seen: _Seen, what: str, wanted: Call, call: ToolCallEvent) -> None:
    findings = seen.findings
    for field in ("name", "turn", "agent", "malformed", "stand_in"):
        findings.equal(f"{what}: {field}", getattr(wanted, field), getattr(call, field))
    findings.equal(f"{what}: state", str(wanted.state), str(call.state))
    findings.equal(f"{what}: arguments", to_json(wanted.arguments), call.arguments)
    findings.equal(f"{what}: arguments as asked", wanted.asked, call.asked)
    findings.equal(f"{what}: attempt", 1, call.attempt)
    _check_result(seen, what, wanted, call)
    _check_place(seen, what, wanted, call)


def _check_result(seen: _Seen, what: str, wanted: Call, call: ToolCallEvent) -> None:
    findings = seen.findings
    if wanted.state is CallState.EXECUTED:
        findings.equal(f"{what}: result", to_json(wanted.result), call.result)
        findings.equal(f"{what}: error", None, call.error)
        return
    findings.contains(f"{what}: error", wanted.error, call.error)
    findings.equal(f"{what}: result", None, call.result)
    if wanted.told and seen.facts.ways.says_told:
        findings.holds(f"{what}: what the model was told", call.told is not None, "something", call.told)


def _check_place(seen: _Seen, what: str, wanted: Call, call: ToolCallEvent) -> None:
    """Asked for by the right model call, begun before the next, ended before the one that got its result."""
    findings, asking = seen.findings, seen.model(wanted.step)
    if not seen.facts.observes(Observable.MODEL_CALLS):
        findings.equal(f"{what}: step", None, call.step)
        return
    if seen.facts.ways.says_step:
        findings.equal(f"{what}: step (number of the model call that asked for it)", asking, call.step)
    elif wanted.state is CallState.REFUSED:
        return  # that it never ran is known at the end only
    _check_between(seen, what, wanted.step, call.number)
    after = seen.model(wanted.step + 1 if wanted.until is None else wanted.until)
    if after is not None:
        ended = call.ended is not None and call.ended <= after
        findings.holds(f"{what}: ended", ended, f"before the model call with number {after}", call.ended)


def _check_between(seen: _Seen, what: str, step: int, number: int) -> None:
    asking, following = seen.model(step), seen.model(step + 1)
    if asking is not None:
        seen.findings.holds(f"{what}: number", number > asking, f"above {asking}, the model call's", number)
    if following is not None:
        seen.findings.holds(f"{what}: number", number < following, f"below {following}, the next model call's", number)


def _check_ids(seen: _Seen, pairs: Sequence[tuple[Call, ToolCallEvent]]) -> None:
    ids = [call.call_id for _, call in pairs if call.call_id is not None]
    if not seen.facts.own_call_ids:
        seen.findings.equal("call ids", [wanted.call_id for wanted, _ in pairs], [call.call_id for _, call in pairs])
    elif len(set(ids)) < len(ids):
        seen.findings.holds("call ids", False, "different ones", ids)


def _check_overlap(seen: _Seen, first: ToolCallEvent, second: ToolCallEvent) -> None:
    ends = (first.ended, second.ended)
    began_first = max(first.number, second.number) < min(end or 0 for end in ends)
    seen.findings.holds(
        "the two calls", began_first, "both begun before one ended", (first.number, second.number, ends)
    )


def _check_faults(seen: _Seen) -> None:
    faults = list(seen.trace.of(Fault))
    seen.findings.equal("faults (tool, fault)", list(seen.expected.faults), [(one.tool, one.fault) for one in faults])
    calls = {call.number for call in seen.trace.tool_calls}
    for one in faults:
        if seen.facts.observes(Observable.TOOL_CALLS):
            seen.findings.holds(
                "fault: call", one.call in calls, f"number of the call it hit, {sorted(calls)}", one.call
            )


# --- hand-offs and approvals ---------------------------------------------------------------------------------------


def _check_handoffs(seen: _Seen) -> None:
    expected, handoffs, findings = seen.expected.handoffs, seen.trace.handoffs, seen.findings
    if not findings.same_length("hand-offs", expected, handoffs, [(one.source, one.target) for one in handoffs]):
        return
    for place, (wanted, handoff) in enumerate(zip(expected, handoffs, strict=True), 1):
        _check_handoff(seen, f"hand-off {place}", wanted, handoff)


def _check_handoff(seen: _Seen, what: str, wanted: Passed, handoff: Handoff) -> None:
    findings, carried = seen.findings, seen.facts.ways.handoff_carries
    for field in ("source", "target", "completed"):
        findings.equal(f"{what}: {field}", getattr(wanted, field), getattr(handoff, field))
    findings.equal(f"{what}: reason", wanted.reason if "reason" in carried else None, handoff.reason)
    if "context" not in carried:
        findings.holds(f"{what}: context", not handoff.context, "none, for it carries none", handoff.context)
    elif seen.facts.observes(Observable.HANDOFF_CONTEXT):
        findings.equal(f"{what}: context", to_json(wanted.context), handoff.context)
    if seen.facts.observes(Observable.MODEL_CALLS):
        if seen.facts.ways.says_step:
            findings.equal(f"{what}: step", seen.model(wanted.step), handoff.step)
        _check_between(seen, what, wanted.step, handoff.number)


def _check_approvals(seen: _Seen) -> None:
    expected, approvals, findings = seen.expected.approvals, seen.trace.approvals, seen.findings
    if not findings.same_length("approvals", expected, approvals, [(one.action, one.decision) for one in approvals]):
        return
    for place, (wanted, approval) in enumerate(zip(expected, approvals, strict=True), 1):
        _check_approval(seen, f"approval {place}", wanted, approval)


def _check_approval(seen: _Seen, what: str, wanted: Asked, approval: Approval) -> None:
    findings = seen.findings
    findings.equal(f"{what}: action", wanted.action, approval.action)
    findings.equal(f"{what}: arguments", to_json(wanted.arguments), approval.arguments)
    findings.equal(f"{what}: decision", wanted.decision, approval.decision)
    findings.equal(f"{what}: approved arguments", to_json(wanted.approved), approval.approved_arguments)
    findings.equal(f"{what}: approver", wanted.approver, approval.approver)
    findings.equal(f"{what}: agent", AGENT, approval.agent)
    if seen.facts.observes(Observable.MODEL_CALLS):
        _check_between(seen, what, wanted.step, approval.number)
    for call in seen.trace.tool_calls:
        answered = call.ended is None or approval.number < call.ended
        findings.holds(f"{what}: number", answered, f"below {call.ended}, the end of its call", approval.number)
        if None not in (approval.call_id, call.call_id):
            findings.equal(f"{what}: call id", call.call_id, approval.call_id)


_CHECKS: dict[Observable, Callable[[_Seen], None]] = {
    Observable.OUTPUT: _check_output,
    Observable.MODEL_CALLS: _check_models,
    Observable.USAGE: _check_usage,
    Observable.MESSAGES: _check_said,
    Observable.TOOL_CALLS: _check_tools,
    Observable.HANDOFFS: _check_handoffs,
    Observable.APPROVALS: _check_approvals,
}
