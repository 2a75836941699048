"""Which calls were needed, which were made, and which were too many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.core.case import RequiredCall, Times
from seatrial.core.grade import Grade, Tally
from seatrial.core.grading import count, failed, listed, passed, unobserved
from seatrial.core.matching import maximum_matching, show
from seatrial.core.ports import GradingContext
from seatrial.core.trace import CallState, Observable, ToolCallEvent
from seatrial.errors import nearest
from seatrial.graders.tools.calls import argument_mismatches, place_of, ratio_tallies, words_for

__all__ = ["required_tools"]

_ONCE = Times(min=1, max=1)
_AT_LEAST_ONCE = Times()


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
        as_wanted = call.state.value == self.call.state
        found = [] if as_wanted else [f"it was {words_for(call.state)}, not {self.call.state}"]
        return found + [str(mismatch) for mismatch in argument_mismatches(self.call.arguments, call.arguments, data)]


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
        parts.append("unexpected " + listed(f"{calls[at].name} ({place_of(calls, at)})" for at in found.surplus))
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
        **ratio_tallies("required_tool_recall", recall),
        **ratio_tallies("tool_precision", precision),
        "tool_f1": Tally(hit=_f1(names, called), of=1),
    }


def _f1(expected: set[str], called: set[str]) -> float:
    if not expected and not called:
        return 1.0
    return 2 * len(expected & called) / (len(expected) + len(called))
