"""Spans played into a trial's record in the order of their times, so that numbers and logical times come out right.

- A tool call belongs to the model call that asked for it, by call id or by name and arguments; where no messages are on
  record, to the last model call of its agent that had ended before it began.
- A tool that hands over (`transfer_to_X`, `transfer_to_agent`, `handoff`) is a hand-off. So is a span of one; both for
  the same one are one.
- What the spans cannot show is not observed, and says why.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from seatrial.agents.otel.meaning import (
    Asked,
    Role,
    asked_by,
    cost_of,
    handoff_of,
    model_of,
    retrieved_by,
    said_by,
    tool_of,
    usage_of,
)
from seatrial.agents.otel.span import Span
from seatrial.agents.otel.tree import SpanTree
from seatrial.core.trace import CallState
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.recorder import Recorder, read_arguments

__all__ = ["play"]

_STATES = {state.value: state for state in CallState}


def play(spans: Iterable[Span], recorder: Recorder, began_ns: int, *, whole: bool = False) -> None:
    """Record what these spans of one turn say; the trial began at `began_ns`.

    `whole`: nothing comes after them, so what became of a call that has no end is unknown. Raises StepLimitReached when
    that were more steps than allowed.
    """
    tree = SpanTree(spans)
    turn = _Turn(tree, recorder, began_ns)
    for _, _, act, span, role in sorted(_moments(tree), key=lambda moment: moment[:2]):
        turn.begin(span, role) if act == "begin" else turn.end(span, role)
    if whole:
        turn.lose()


def _moments(tree: SpanTree) -> Iterable[tuple[int, int, str, Span, Role]]:
    """Beginnings and ends in time; at one instant what ends goes before what begins."""
    for order, (span, role) in enumerate(tree.spans):
        yield span.start_ns, 1 + order, "begin", span, role
        if span.end_ns is not None:
            instant = span.end_ns == span.start_ns
            yield span.end_ns, 1 + order if instant else 0, "end", span, role


@dataclass
class _Turn:
    """One turn as it is played."""

    tree: SpanTree
    recorder: Recorder
    began_ns: int
    open: dict[str, int] = field(default_factory=dict)
    """Event numbers of calls, by the id of their span."""
    asked: list[tuple[int, Asked]] = field(default_factory=list)
    """Calls asked for and not yet begun, with the number of the model call."""
    last_model: dict[str | None, int] = field(default_factory=dict)
    """Number of the last model call that ended, by agent."""
    handed: dict[tuple[str | None, str], Role] = field(default_factory=dict)
    """Hand-offs that were told once, and by which kind of span: a tool's and the framework's own are one."""

    def begin(self, span: Span, role: Role) -> None:
        """A span begins."""
        agent = self.tree.agent(span)
        if role is Role.MODEL:
            self.open[span.span_id] = self._begun(self.recorder.begin_model_call(model_of(span), agent=agent), span)
        elif role is Role.TOOL:
            self._begin_tool(span, agent)
        elif role is Role.HANDOFF:
            handed = handoff_of(span)
            if handed.target is not None:
                more = {"reason": handed.reason, "context": handed.context, "completed": handed.completed}
                self._hand_over(handed.source or agent, handed.target, span, role, **more)
        elif role is Role.RETRIEVAL:
            query, contexts = retrieved_by(span)
            self._begun(self.recorder.retrieval(query, contexts, agent=agent), span)
        elif role is Role.GUARDRAIL:
            self._begun(self.recorder.guardrail(span.name, span.error is None, agent=agent), span)

    def end(self, span: Span, role: Role) -> None:
        """A span ends."""
        if role is Role.MODEL:
            self._end_model(span)
        elif role is Role.TOOL and span.span_id in self.open:
            self._end_tool(span)

    # --- model calls --------------------------------------------------------------------------------------------------

    def _end_model(self, span: Span) -> None:
        number, agent = self.open[span.span_id], self.tree.agent(span)
        self.recorder.end_model_call(
            number, usage=usage_of(span), cost_usd=cost_of(span), latency_ms=_lasted(span), error=span.error
        )
        self.asked += [(number, asked) for asked in asked_by(span)]
        self.last_model[agent] = number
        if said := said_by(span):
            self.recorder.message("assistant", said, agent=agent)

    # --- tool calls ---------------------------------------------------------------------------------------------------

    def _begin_tool(self, span: Span, agent: str | None) -> None:
        call = tool_of(span)
        step, asked = self._asked_for(call.name, call.arguments, call.call_id, agent)
        if is_handoff_tool(call.name):
            self._hand_over_by_tool(span, agent, call.name, call.arguments, step)
            return
        if span.stopped:  # for approval: it runs again, in a span of its own
            return
        number = self.recorder.begin_tool_call(
            call.name,
            call.arguments,
            call_id=call.call_id or (asked.call_id if asked else None),
            agent=agent,
            step=step,
            stand_in=bool(span.attributes.get("seatrial.stand_in")),
        )
        self.open[span.span_id] = self._begun(number, span)

    def _asked_for(
        self, name: str, arguments: Any, call_id: str | None, agent: str | None
    ) -> tuple[int | None, Asked | None]:
        """The model call that asked for a call, and what it asked."""
        wanted, _ = read_arguments(arguments)
        for place, (number, asked) in enumerate(self.asked):
            same_id = call_id is not None and asked.call_id == call_id
            same = asked.name == name and read_arguments(asked.arguments)[0] == wanted
            if same_id or (same and None in (call_id, asked.call_id)):
                del self.asked[place]
                return number, asked
        return self.last_model.get(agent), None

    def lose(self) -> None:
        """Calls whose spans never ended: nobody knows what became of them."""
        ended = {span.span_id for span, _ in self.tree.spans if span.end_ns is not None}
        for span, role in self.tree.spans:
            if role is Role.TOOL and span.span_id in self.open and span.span_id not in ended:
                never = "its span never ended"
                self.recorder.end_tool_call(self.open[span.span_id], error=never, state=CallState.UNKNOWN)

    def _end_tool(self, span: Span) -> None:
        state = _STATES.get(str(span.attributes.get("seatrial.state")))
        failed = span.error or ("Error" if span.attributes.get("gen_ai.tool.status") == "error" else None)
        self.recorder.end_tool_call(
            self.open[span.span_id],
            result=tool_of(span).result,
            error=failed,
            state=state,
            duration_ms=_lasted(span),
        )

    # --- hand-offs ----------------------------------------------------------------------------------------------------

    def _hand_over_by_tool(self, span: Span, agent: str | None, name: str, arguments: Any, step: int | None) -> None:
        asked = asked_handoff(name, arguments)
        if asked.target == "unknown":
            return
        context = asked.context or None
        self._hand_over(agent, asked.target, span, Role.TOOL, step=step, reason=asked.reason, context=context)

    def _hand_over(self, source: str | None, target: str, span: Span, role: Role, **more: Any) -> None:
        before = self.handed.pop((source, target), role)
        if before is not role:
            return
        self.handed[source, target] = role
        number = self.recorder.handoff(source or "unknown", target, **{"completed": span.error is None, **more})
        self._begun(number, span)

    def _begun(self, number: int, span: Span) -> int:
        self.recorder.amend(number, at_ms=(span.start_ns - self.began_ns) / 1_000_000)
        return number


def _lasted(span: Span) -> float:
    return ((span.end_ns or span.start_ns) - span.start_ns) / 1_000_000
