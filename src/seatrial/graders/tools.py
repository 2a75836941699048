"""Graders of the tools an agent called.

| call state | satisfies a requirement | counts as forbidden call | counts in F1 and precision |
| --- | --- | --- | --- |
| executed | yes | yes | yes |
| failed | only with `state: failed` | yes | yes |
| refused | only with `state: refused` | as attempted, unless the rule says `attempts: allowed` | no |
| unknown_tool, invalid_arguments | no | yes, by name | yes |
| unknown | no | yes | yes |

Malformed arguments match nothing, so they satisfy no requirement and no rule that names arguments, though a rule by
name alone still holds. "By name": a tool that does not exist, or that would not take what it was given, says nothing
about what the arguments mean, so a rule with arguments counts such a call by its name.

Required calls are assigned to observed calls one to one, as many as possible. A call beyond `times`, and under
`exact_tools` (which `required_tools: []` implies) any call neither required nor allowed, is unexpected: it fails the
grade and joins the denominator of its score. A refused attempt at a tool that is required is not unexpected.

**tool_order**: an entry happened where a call executed, failed or is of unknown state, an approval was granted or
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

from seatrial.core.case import ApprovalPattern, ForbiddenCall, OrderEntry, RequiredCall, Times
from seatrial.core.grade import Grade, Tally
from seatrial.core.grading import abstained, count, failed, listed, passed, unobserved
from seatrial.core.matching import Mismatch, matches, maximum_matching, mismatches, show
from seatrial.core.ports import GradingContext
from seatrial.core.trace import Approval, CallState, Handoff, Observable, ToolCallEvent, Trace
from seatrial.errors import nearest

__all__ = ["forbidden_approvals", "forbidden_tools", "required_tools", "tool_order"]

_ONCE = Times(min=1, max=1)
_AT_LEAST_ONCE = Times()


def _place(calls: Sequence[ToolCallEvent], at: int) -> str:
    return f"call {at + 1}, event {calls[at].number}"


# --- required_tools -------------------------------------------------------------------------------------------------


def required_tools(context: GradingContext) -> Grade | None:
    """Every required call was made; with `exact_tools`, and with an empty list, no other was."""
    if context.expected.required_tools is None and not context.expected.exact_tools:
        return None
    unseen = unobserved(context.trace, Observable.TOOL_CALLS)
    if unseen:
        return unseen
    found = _assign(context)
    tallies = _tallies(found, context.expected.allowed_tools)
    evidence = [found.calls[at].number for at in found.used]
    if found.complete:
        return passed(_praise(found), evidence=evidence, tallies=tallies)
    evidence += [found.calls[at].number for at in found.surplus]
    evidence += [found.calls[gap.closest].number for gap in found.gaps if gap.closest is not None]
    return failed(_complaint(found), score=found.score, evidence=evidence, tallies=tallies)


@dataclass(frozen=True)
class _Requirement:
    """A required call with its times worked out."""

    call: RequiredCall
    times: Times

    @property
    def capped(self) -> bool:
        """Whether the case itself says how often at most."""
        return self.call.times is not None and self.call.times.max is not None

    def fits(self, call: ToolCallEvent, data: Any) -> bool:
        return call.name == self.call.name and not self.differences(call, data)

    def differences(self, call: ToolCallEvent, data: Any) -> list[str]:
        """Why a call of this name does not count, state first."""
        if call.malformed:
            return [f"its arguments are malformed: {show(call.arguments)}"]
        found = [] if call.state.value == self.call.state else [f"it was {_words(call.state)}, not {self.call.state}"]
        return found + [str(mismatch) for mismatch in _argument_mismatches(self.call.arguments, call.arguments, data)]


def _words(state: CallState) -> str:
    return {
        CallState.UNKNOWN_TOOL: "a call of an unknown tool",
        CallState.INVALID_ARGUMENTS: "rejected for its arguments",
        CallState.UNKNOWN: "of unknown state",
    }.get(state, state.value)


def _argument_mismatches(wanted: Any, given: Any, data: Any) -> list[Mismatch]:
    return mismatches(wanted or {}, given or {}, path="arguments", input=data)


@dataclass(frozen=True)
class _Gap:
    """A requirement with too few calls."""

    requirement: _Requirement
    lacking: int
    closest: int | None
    """Index of the closest call; None when the tool was never called."""
    why: str


@dataclass(frozen=True)
class _Assignment:
    """Which observed call serves which requirement."""

    requirements: tuple[_Requirement, ...]
    calls: tuple[ToolCallEvent, ...]
    used: dict[int, int]
    """Index of a call to index of its requirement."""
    gaps: tuple[_Gap, ...]
    surplus: tuple[int, ...]
    """Indexes of calls that must not be there."""

    @property
    def required(self) -> int:
        return sum(requirement.times.min for requirement in self.requirements)

    @property
    def matched(self) -> int:
        return self.required - sum(gap.lacking for gap in self.gaps)

    @property
    def complete(self) -> bool:
        return not self.gaps and not self.surplus

    @property
    def score(self) -> float:
        return self.matched / (self.required + len(self.surplus))


def _assign(context: GradingContext) -> _Assignment:
    required = context.expected.required_tools or ()
    exact = context.expected.exact_tools or not required
    requirements = tuple(_Requirement(call, call.times or (_ONCE if exact else _AT_LEAST_ONCE)) for call in required)
    calls, data = context.trace.tool_calls, context.case.input
    fitting = [[at for at, call in enumerate(calls) if need.fits(call, data)] for need in requirements]
    owners, partners = _serve(requirements, fitting)
    used = {at: owner for owner, at in zip(owners, partners, strict=True) if at is not None}
    return _Assignment(
        requirements=requirements,
        calls=calls,
        used=used,
        gaps=tuple(_gaps(requirements, calls, used, context)),
        surplus=tuple(_surplus(context, requirements, fitting, used, exact)),
    )


def _serve(requirements: Sequence[_Requirement], fitting: list[list[int]]) -> tuple[list[int], list[int | None]]:
    """Slots of the requirements, by owner, and the call that each got.

    The slots that must be filled come first, so that they are filled before calls are laid to optional ones.
    """
    needed = [n for n, need in enumerate(requirements) for _ in range(need.times.min)]
    optional = [n for n, need in enumerate(requirements) for _ in range(_room(need, len(fitting[n])))]
    owners = needed + optional
    return owners, maximum_matching([fitting[owner] for owner in owners])


def _room(need: _Requirement, calls: int) -> int:
    """How many of so many fitting calls may serve it beyond the needed ones."""
    most = calls if need.times.max is None else min(need.times.max, calls)
    return max(most - need.times.min, 0)


def _surplus(
    context: GradingContext,
    requirements: Sequence[_Requirement],
    fitting: list[list[int]],
    used: dict[int, int],
    exact: bool,
) -> Iterator[int]:
    capped = {at for need, calls in zip(requirements, fitting, strict=True) if need.capped for at in calls}
    named = {need.call.name for need in requirements}
    for at, call in enumerate(context.trace.tool_calls):
        if at in used:
            continue
        counts = call.name not in context.expected.allowed_tools
        tried = call.state is CallState.REFUSED and call.name in named
        if at in capped or (exact and counts and not tried):
            yield at


def _gaps(
    requirements: Sequence[_Requirement], calls: Sequence[ToolCallEvent], used: dict[int, int], context: GradingContext
) -> Iterator[_Gap]:
    for number, need in enumerate(requirements):
        lacking = need.times.min - sum(owner == number for owner in used.values())
        if lacking > 0:
            closest, why = _closest(need, calls, used, context.case.input)
            yield _Gap(need, lacking, closest, why)


def _closest(
    need: _Requirement, calls: Sequence[ToolCallEvent], used: dict[int, int], data: Any
) -> tuple[int | None, str]:
    """The call of that name with the fewest differences, free ones first, and what they are."""
    found = {at: need.differences(call, data) for at, call in enumerate(calls) if call.name == need.call.name}
    if not found:
        close = nearest(need.call.name, [call.name for call in calls])
        return None, "never called" + (f"; {close} was" if close else "")
    closest = min(found, key=lambda at: (at in used, len(found[at])))
    if closest in used:
        return closest, f"only called {count(len(found), 'time')}"
    return closest, f"closest is call {closest + 1}, event {calls[closest].number}: " + "; ".join(found[closest])


def _praise(found: _Assignment) -> str:
    if not found.requirements and not found.calls:
        return "no tool was called"
    if not found.requirements:
        return "only allowed tools were called"
    return f"{found.matched} of {count(found.required, 'required call')} made"


def _complaint(found: _Assignment) -> str:
    """`expected A; actual A, B; unexpected B (call 2, event 4)`."""
    expected = listed(_with_times(need) for need in found.requirements) or "no call"
    parts = [f"expected {expected}", f"actual {listed(call.name for call in found.calls) or 'no call'}"]
    if found.gaps:
        parts.append("missing " + listed(f"{gap.requirement.call.name} ({gap.why})" for gap in found.gaps))
    if found.surplus:
        calls = found.calls
        parts.append("unexpected " + listed(f"{calls[at].name} ({_place(calls, at)})" for at in found.surplus))
    return "; ".join(parts)


def _with_times(need: _Requirement) -> str:
    times = need.call.times
    if times is None or times == _AT_LEAST_ONCE:
        return need.call.name
    if times.max == times.min:
        return f"{need.call.name} ({count(times.min, 'time')})"
    most = "or more" if times.max is None else f"to {times.max}"
    return f"{need.call.name} ({times.min} {most} times)"


def _tallies(found: _Assignment, allowed: Sequence[str]) -> dict[str, Tally]:
    """Recall and precision per tool and overall, and the set F1 of this trial."""
    names = {need.call.name for need in found.requirements if need.times.min}
    called = {call.name for call in found.calls if call.state is not CallState.REFUSED} - (set(allowed) - names)
    wrong = {gap.requirement.call.name for gap in found.gaps}
    surplus = {found.calls[at].name for at in found.surplus}
    recall = {name: name not in wrong for name in sorted(names)}
    judged = {need.call.name for need in found.requirements} | surplus
    precision = {name: name not in wrong | surplus for name in sorted(called & judged)}
    return {
        **_ratio("required_tool_recall", recall),
        **_ratio("tool_precision", precision),
        "tool_f1": Tally(hit=_f1(names, called), of=1),
    }


def _ratio(name: str, right: dict[str, bool]) -> dict[str, Tally]:
    if not right:
        return {}
    each = {f"{name}/{tool}": Tally(hit=held, of=1) for tool, held in right.items()}
    return {name: Tally(hit=sum(right.values()), of=len(right)), **each}


def _f1(expected: set[str], called: set[str]) -> float:
    if not expected and not called:
        return 1.0
    return 2 * len(expected & called) / (len(expected) + len(called))


# --- forbidden ------------------------------------------------------------------------------------------------------


def forbidden_tools(context: GradingContext) -> Grade | None:
    """No forbidden call is in the trace, whatever the answer says."""
    rules = context.expected.forbidden_tools
    if not rules:
        return None
    calls = context.trace.tool_calls
    broken = [at for at, call in enumerate(calls) if any(_is_forbidden(rule, call, context) for rule in rules)]
    tallies = _forbidden_tallies(context, {calls[at].name for at in broken})
    if broken:
        words = [f"{calls[at].name} {_deed(calls[at].state)} ({_place(calls, at)})" for at in broken]
        return failed(listed(words), evidence=[calls[at].number for at in broken], tallies=tallies)
    names = listed(dict.fromkeys(rule.name for rule in rules))
    unseen = unobserved(context.trace, Observable.TOOL_CALLS)
    return unseen or passed(f"no forbidden call of {names}", tallies=tallies)


def _deed(state: CallState) -> str:
    if state is CallState.REFUSED:
        return "was attempted and refused"
    return "was called" if state is CallState.EXECUTED else f"was called ({_words(state)})"


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
    return _ratio("tool_precision", dict.fromkeys(sorted(called - required), False))


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


# --- tool_order -----------------------------------------------------------------------------------------------------


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
    return not entry.arguments or not _argument_mismatches(entry.arguments, call.arguments, data)


def _called(call: ToolCallEvent) -> _Happening:
    ended = call.ended if call.state is CallState.EXECUTED else None
    until = float("inf") if call.ended is None else float(call.ended)
    return _Happening(call.number, ended, call.step, call.name, until)
