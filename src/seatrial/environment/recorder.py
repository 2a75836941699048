"""The one place where a trial's events come together.

Adapters, stand-in tools and approvals record here what happens while it does (`live`); here is what is told of later:
by an agent's author, by a recorder in another process, or once the trial has ended. `freeze` gives the finished events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import to_json
from seatrial.core.figures import figure_of
from seatrial.core.trace import CallState, Event, Handoff, ModelCallEvent, Observable, ToolCallEvent
from seatrial.environment.failure import error_text
from seatrial.environment.freezing import events_of
from seatrial.environment.handing_over import is_handoff_tool
from seatrial.environment.live import LiveRecorder, StepLimitReached, limit_of_its_own
from seatrial.environment.reported_once import unrecorded
from seatrial.environment.reports import check_handoff, check_tool_call, read_arguments, usage_of
from seatrial.environment.spending import CostLimitReached

__all__ = ["Recorder", "StepLimitReached", "error_text", "is_handoff_tool", "limit_of_its_own", "read_arguments"]


class Recorder(LiveRecorder):
    """Collects the events of one trial."""

    on_freeze: Callable[[], None] | None = None
    """Called once, before the events are final: for an adapter that learns late what happened."""

    def freeze(self) -> tuple[Event, ...]:
        """The events so far. A tool call that never ended has failed with `never ended`; a hand-off whose tool never
        ended was not completed.

        An approval that was denied or stayed unanswered, and of whose action there is no tool call, stopped that call:
        it stands at the end as a refused one. Never raises; see `problems`.
        """
        if self.on_freeze is not None:
            self._learn_late(self.on_freeze)
        return events_of(self._entries, self.problems)

    def _learn_late(self, learn: Callable[[], None]) -> None:
        self.on_freeze = None
        over, self._over = self._over, False
        try:
            learn()
        except (StepLimitReached, CostLimitReached):  # the trial has ended for a reason of its own
            pass
        except Exception as error:  # noqa: BLE001  an adapter reads what its agent left: no other trial's matter
            self.problems.append(f"what the agent left cannot be read: {error_text(error)}")
        finally:
            self._over = over

    def apply(self, change: Mapping[str, Any]) -> None:
        """Make a change that a recorder elsewhere told of by `on_change`; in the order in which they were told."""
        with self._lock:
            self._entries.apply(change)
            self.observes.update(Observable(name) for name in change.get("observes", ()))
            for name, why in change.get("lacks", {}).items():
                self.observes.discard(Observable(name))
                self.unobserved[Observable(name)] = why
            self.ordered = change.get("ordered", self.ordered)
            self.spending.estimates.update(change.get("estimates", ()))

    # --- what an agent's author reports ------------------------------------------------------------------------------

    def report(self, item: Any, *, agent: str | None = None) -> int:
        """Record a ToolCall, HandoffEvent or ModelCall that already happened. `agent` is who made a call that names
        nobody; None = the last hand-off's target.

        Raises TypeError for anything else, and TypeError or ValueError naming a field that cannot be kept; then
        nothing is recorded. CostLimitReached, once it is recorded, when the trial may spend no more.
        """
        number = self._report(item, agent)
        self.spending.check()
        return number

    def _report(self, item: Any, agent: str | None = None) -> int:
        if isinstance(item, ToolCall):
            return self._report_tool_call(item, agent if item.agent is None else item.agent)
        if isinstance(item, HandoffEvent):
            return self._report_handoff(item)
        if isinstance(item, ModelCall):
            return self._report_model_call(item, agent if item.agent is None else item.agent)
        raise TypeError(f"an event is a ToolCall, HandoffEvent or ModelCall, not {type(item).__name__}")

    def report_turn(self, events: Sequence[Any], others: Sequence[Any]) -> None:
        """Record a turn that its author reports afterwards: `events` in their order, then the `others`.

        What stands in both, or was recorded in this turn as it happened, is recorded once. Where the order between
        tool calls and hand-offs stays unknown, `ordered` becomes False.
        """
        fresh, in_place = unrecorded(events, others, self._entries.of_turn())
        for item in fresh:
            self._report(item)
        if not in_place and {ToolCallEvent, Handoff} <= {kind for kind, _ in self._entries.of_turn()}:
            self.ordered = False
            self._entries.tell({"ordered": False})

    def _report_tool_call(self, call: ToolCall, agent: str | None) -> int:
        """As a call that begins and ends, of which nobody knows how long it took."""
        state = check_tool_call(call)
        if Observable.TOOL_CALLS not in self.observes:
            self.observe(Observable.TOOL_CALLS)
        if is_handoff_tool(call.name):
            number = self._begin_handoff(str(call.name), call.arguments, agent=agent, step=None)
            self.end_tool_call(number, error=call.error, state=state)
            return number
        self._count_tool_call()
        arguments, malformed = read_arguments(call.arguments)
        result, error = to_json(call.result), None if call.error is None else error_text(call.error)
        fields = {
            "agent": agent or self._handoffs.active_agent,
            "name": str(call.name),
            "call_id": call.call_id,
            "arguments": arguments,
            "malformed": malformed,
            "state": state or (CallState.EXECUTED if error is None else CallState.FAILED),
            "result": result,
            "error": error,
            "attempt": 1 if call.call_id is None else self._attempt(call.call_id),
            "step": None,
        }
        return self._entries.begin(ToolCallEvent, fields, ended=True)

    def _report_handoff(self, event: HandoffEvent) -> int:
        check_handoff(event)
        self.observe(Observable.HANDOFFS)
        if event.context is not None:
            self.observe(Observable.HANDOFF_CONTEXT)
        known = self._handoffs.tell_again(event.target, event.reason, event.context)
        if known is not None:
            return known
        return self._handoffs.add(event.source, event.target, reason=event.reason, context=event.context)

    def _report_model_call(self, call: ModelCall, agent: str | None) -> int:
        usage = usage_of(call)
        self.observe(Observable.MODEL_CALLS, Observable.USAGE)
        self._count_model_call()
        number = self._entries.begin(ModelCallEvent, {"model": call.model, "agent": agent or self.active_agent})
        self.end_model_call(number, usage=usage, cost_usd=call.cost_usd, error=call.error)
        self.amend(number, latency_ms=figure_of(call.latency_ms))
        return number
