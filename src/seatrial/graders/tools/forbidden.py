"""Calls that must not be made, and approvals that must not be asked for."""

from __future__ import annotations

from seatrial.core.case import ApprovalPattern, ForbiddenCall
from seatrial.core.grade import Grade, Tally
from seatrial.core.grading import failed, listed, passed, unobserved
from seatrial.core.matching import matches
from seatrial.core.ports import GradingContext
from seatrial.core.trace import Approval, CallState, Observable, ToolCallEvent
from seatrial.graders.tools.calls import place_of, ratio_tallies, words_for

__all__ = ["forbidden_approvals", "forbidden_tools"]


def forbidden_tools(context: GradingContext) -> Grade | None:
    """No forbidden call is in the trace, whatever the answer says."""
    rules = context.expected.forbidden_tools
    if not rules:
        return None
    calls = context.trace.tool_calls
    broken = [at for at, call in enumerate(calls) if any(_is_forbidden(rule, call, context) for rule in rules)]
    tallies = _forbidden_tallies(context, {calls[at].name for at in broken})
    if broken:
        words = [f"{calls[at].name} {_deed(calls[at].state)} ({place_of(calls, at)})" for at in broken]
        return failed(listed(words), evidence=[calls[at].number for at in broken], tallies=tallies)
    names = listed(dict.fromkeys(rule.name for rule in rules))
    unseen = unobserved(context.trace, Observable.TOOL_CALLS)
    return unseen or passed(f"no forbidden call of {names}", tallies=tallies)


def _deed(state: CallState) -> str:
    if state is CallState.REFUSED:
        return "was attempted and refused"
    return "was called" if state is CallState.EXECUTED else f"was called ({words_for(state)})"


_BY_NAME = (CallState.UNKNOWN_TOOL, CallState.INVALID_ARGUMENTS)


def _is_forbidden(rule: ForbiddenCall, call: ToolCallEvent, context: GradingContext) -> bool:
    if call.name != rule.name or (call.state is CallState.REFUSED and rule.attempts == "allowed"):
        return False
    if not rule.arguments:
        return True
    if call.state in _BY_NAME:
        return not call.malformed
    versions = [call.arguments] if call.asked is None else [call.arguments, call.asked]
    readable = [version or {} for version in versions if version is None or isinstance(version, dict)]
    return any(matches(rule.arguments, version, input=context.case.input) for version in readable)


def _forbidden_tallies(context: GradingContext, called: set[str]) -> dict[str, Tally]:
    """Precision of tools that no requirement speaks of: each forbidden one that was called is a miss."""
    required = {call.name for call in context.expected.required_tools or ()}
    return ratio_tallies("tool_precision", dict.fromkeys(sorted(called - required), False))


def forbidden_approvals(context: GradingContext) -> Grade | None:
    """The agent did not ask for such an approval."""
    patterns = context.expected.forbidden_approvals
    if not patterns:
        return None
    asked = [
        approval
        for approval in context.trace.approvals
        if any(_fits(pattern, approval, context) for pattern in patterns)
    ]
    if asked:
        words = [f"asked for approval of {approval.action} (event {approval.number})" for approval in asked]
        return failed(listed(words), evidence=[approval.number for approval in asked])
    return unobserved(context.trace, Observable.APPROVALS) or passed("no forbidden approval was asked for")


def _fits(pattern: ApprovalPattern, approval: Approval, context: GradingContext) -> bool:
    return pattern.action == approval.action and matches(
        pattern.arguments or {}, approval.arguments or {}, input=context.case.input
    )
