"""The one place where a trial's events are written down as they happen.

Adapters, stand-in tools, approvals and user code all record here, from any thread. Values are turned into JSON data
at once, so that what the agent changes later does not change the trace. An event gets its number when it begins;
its end fills it in. `freeze` gives the finished events.
"""

from __future__ import annotations

import contextlib
import threading
import time
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import to_json
from seatrial.core.trace import (
    Approval,
    CallState,
    ErrorEvent,
    Event,
    Fault,
    Guardrail,
    Handoff,
    Message,
    ModelCallEvent,
    Observable,
    Retrieval,
    SafetyEvent,
    ToolCallEvent,
    Usage,
)
from seatrial.environment.failure import TrialOver, error_text
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.reported_once import each_once, identity_of, identity_of_entry
from seatrial.environment.reports import (
    check_handoff,
    check_tool_call,
    read_arguments,
    usage_of,
)
from seatrial.environment.spending import CostLimitReached, Spending

__all__ = ["Recorder", "StepLimitReached", "error_text", "is_handoff_tool", "limit_of_its_own", "read_arguments"]


class StepLimitReached(BaseException):
    """The trial's hard stop. A BaseException, so that an agent's own `except Exception` does not swallow it."""


def limit_of_its_own(limit: str, error: Exception) -> StepLimitReached:
    """What ends a trial whose agent, or its framework, has reached a limit of its own, in the framework's words."""
    said = str(error).partition("\n")[0]
    return StepLimitReached(f"the agent's own {limit} was reached ({said})")


_OPEN = "open"
"""Marks a hand-off whose tool has begun and not ended."""
_HANDOFF = frozenset(Handoff.model_fields)
_Entry = tuple[type, dict[str, Any]]
_KINDS: dict[str, type] = {
    kind.model_fields["kind"].default: kind
    for kind in (
        Message,
        ModelCallEvent,
        ToolCallEvent,
        Retrieval,
        Handoff,
        Approval,
        Guardrail,
        Fault,
        SafetyEvent,
        ErrorEvent,
    )
}


class Recorder:
    """Collects the events of one trial."""

    def __init__(self, step_limit: int | None = None) -> None:
        self.turn = 1
        """Number of the user turn that events belong to from now on."""
        self.step_limit = step_limit
        self.limit_reached = False
        self.ordered = True
        """False once tool calls and hand-offs were reported without their common order."""
        self.observes: set[Observable] = set()
        """What this trial could see beyond the adapter's own set."""
        self.unobserved: dict[Observable, str] = {}
        """Why this trial could not see what it did not."""
        self.on_freeze: Callable[[], None] | None = None
        """Called once, before the events are final: for an adapter that learns late what happened."""
        self.on_change: Callable[[dict[str, Any]], None] | None = None
        """Called with every change of the record as it happens, as JSON data that `apply` takes."""
        self.identity: Callable[[], str | None] = lambda: None
        """Who acts before the first hand-off, for tool calls that hand over."""
        self.spending = Spending()
        """What its model calls cost, and when it must stop."""
        self._entries: list[_Entry] = []
        self._lock = threading.RLock()
        self._began = time.perf_counter()
        self._model_calls = 0
        self._tool_calls = 0
        self._active_agent: str | None = None
        self._attempts: dict[str, int] = defaultdict(int)
        self._over = False
        self._withdrawn: list[int] = []
        self._unchecked: set[int] = set()
        """Numbers of events with fields that were put there by others."""
        self._by_tool: set[int] = set()
        """Hand-offs that calls of tools made."""
        self._told: set[int] = set()
        """Those of them that somebody told of once more, as a hand-off."""

    # --- what is there ---------------------------------------------------------------------------------------------

    @property
    def active_agent(self) -> str | None:
        """Target of the last completed hand-off; None before the first."""
        return self._active_agent

    @property
    def model_calls(self) -> int:
        """Model calls begun so far."""
        return self._model_calls

    def elapsed_ms(self) -> float:
        """Milliseconds since the trial began, monotonic, to the microsecond."""
        return round((time.perf_counter() - self._began) * 1000, 3)

    def _since(self, at_ms: float) -> float:
        return round(self.elapsed_ms() - at_ms, 3)

    def observe(self, *observables: Observable) -> None:
        """This trial can see these kinds of evidence."""
        if self.observes.issuperset(observables):
            return
        new = [each for each in observables if each not in self.observes]
        self.observes.update(new)
        for observable in new if self.unobserved else ():
            self.unobserved.pop(observable, None)
        if self.on_change is not None:
            self._tell({"observes": sorted(self.observes)})

    def lacks(self, observable: Observable, why: str) -> None:
        """This trial cannot see this kind of evidence, whatever was thought before."""
        self.observes.discard(observable)
        self.unobserved[observable] = why
        self._tell({"lacks": {observable: why}})

    def end(self) -> None:
        """The trial is over: whoever begins a model or tool call from now on gets TrialOver."""
        self._over = True

    def freeze(self) -> tuple[Event, ...]:
        """The events so far. A tool call that never ended has failed with `never ended`; a hand-off whose tool never
        ended was not completed.

        An approval that was denied or stayed unanswered, and of whose action there is no tool call, stopped that call:
        it stands at the end as a refused one.
        """
        self._learn_late()
        with self._lock:
            gone = sorted(self._withdrawn)
            entries = [(kind, dict(fields)) for kind, fields in self._entries if fields["number"] not in gone]
            unchecked = set(self._unchecked)
        events: list[Event] = []
        for kind, fields in entries:
            trusted = kind is ToolCallEvent and fields["number"] not in unchecked
            if gone:
                _move_up(fields, gone)
            if kind is ToolCallEvent and "state" not in fields:
                fields.update(state=CallState.FAILED, error="never ended")
            if fields.pop(_OPEN, False):
                fields["completed"] = False
            events.append(ToolCallEvent.trusted(fields) if trusted else kind(**fields))
        return (*events, *_stopped_calls(events))

    # --- writing ---------------------------------------------------------------------------------------------------

    def _begin(self, kind: type, **fields: Any) -> int:
        with self._lock:
            number = len(self._entries) + 1
            fields.update(number=number, at_ms=self.elapsed_ms(), turn=self.turn)
            self._entries.append((kind, fields))
            if self.on_change is not None:
                self._changed(number)
            return number

    def _changed(self, number: int) -> None:
        if self.on_change is not None:
            kind, fields = self._entries[number - 1]
            usage = fields.get("usage")
            shown = {"usage": usage.model_dump()} if isinstance(usage, Usage) else {}
            self._tell({"kind": kind.model_fields["kind"].default, **fields, **shown})  # type: ignore[attr-defined]

    def _tell(self, change: dict[str, Any]) -> None:
        if self.on_change is not None:
            self.on_change(change)

    def _learn_late(self) -> None:
        learn, self.on_freeze = self.on_freeze, None
        if learn is None:
            return
        over, self._over = self._over, False
        with contextlib.suppress(StepLimitReached, CostLimitReached):  # the trial has ended for a reason of its own
            learn()
        self._over = over

    def apply(self, change: Mapping[str, Any]) -> None:
        """Make a change that a recorder elsewhere told of by `on_change`; in the order in which they were told."""
        with self._lock:
            if "kind" in change:
                fields = {name: value for name, value in change.items() if name != "kind"}
                at = fields["number"] - 1
                self._entries[at : at + 1] = [(_KINDS[change["kind"]], fields)]
                self._unchecked.add(at + 1)
            self.observes.update(Observable(name) for name in change.get("observes", ()))
            for name, why in change.get("lacks", {}).items():
                self.observes.discard(Observable(name))
                self.unobserved[Observable(name)] = why
            self._withdrawn.extend(change.get("withdrawn", ()))
            self.ordered = change.get("ordered", self.ordered)

    def _fields(self, number: int) -> dict[str, Any]:
        return self._entries[number - 1][1]

    def _finish(self, number: int, **fields: Any) -> None:
        with self._lock:
            self._fields(number).update(fields)
            self._changed(number)

    def _check_not_over(self) -> None:
        if self._over:
            raise TrialOver("the trial is over: no call begins any more")

    def _count_step(self, *, model: bool) -> None:
        self._check_not_over()
        with self._lock:
            self._model_calls += model
            self._tool_calls += not model
            steps = self._model_calls or self._tool_calls
            if self.step_limit is None or steps <= self.step_limit or not (model or self._model_calls == 0):
                return
            self.limit_reached = True
        raise StepLimitReached(f"the limit of {self.step_limit} steps was reached")

    def message(self, role: str, content: Any, *, agent: str | None = None) -> int:
        """Something was said."""
        return self._begin(Message, role=role, content=to_json(content), agent=agent)

    def begin_model_call(self, model: str | None = None, *, agent: str | None = None) -> int:
        """A model call begins: one step. Raises StepLimitReached when there were as many as allowed, CostLimitReached
        when the trial may spend no more."""
        self.spending.check_price(model)
        self._count_step(model=True)
        return self._begin(ModelCallEvent, model=model, agent=agent)

    def end_model_call(
        self,
        number: int,
        *,
        usage: Usage | None = None,
        model: str | None = None,
        cost_usd: float | None = None,
        latency_ms: float | None = None,
        error: object = None,
    ) -> None:
        """A model call ends. `latency_ms` None takes the time since it began."""
        with self._lock:
            fields = self._fields(number)
            if model is not None:
                fields["model"] = model
            fields["latency_ms"] = self._since(fields["at_ms"]) if latency_ms is None else latency_ms
            fields.update(usage=usage, cost_usd=cost_usd, error=None if error is None else error_text(error))
            self._changed(number)
        self.spending.add_call(fields["model"], usage, cost_usd)

    def begin_tool_call(
        self,
        name: str,
        arguments: Any = None,
        *,
        call_id: str | None = None,
        agent: str | None = None,
        asked: Any = None,
        step: int | None = None,
        stand_in: bool = False,
        reported: bool = False,
    ) -> int:
        """A tool call begins. `asked` is what the model asked for, when it differs; `step` the model call's number.
        A call of a hand-off tool is put on record as the hand-off that it is.

        Raises StepLimitReached when no model call was seen and there were as many tool calls as allowed, and
        CostLimitReached when the trial may spend no more, unless the call is `reported` after it happened.
        """
        if not reported:
            self.spending.check()
        if is_handoff_tool(str(name)):
            return self._begin_handoff(str(name), arguments, agent=agent, step=step)
        self._count_step(model=False)
        read, malformed = read_arguments(arguments)
        fields: dict[str, Any] = {"name": str(name), "call_id": call_id, "agent": agent, "arguments": read}
        fields.update(malformed=malformed, step=step, stand_in=stand_in)
        if call_id is not None:
            fields["attempt"] = self._attempt(call_id)
        if asked is not None:
            as_asked, _ = read_arguments(asked)
            fields["asked"] = as_asked if as_asked != read else None
        return self._begin(ToolCallEvent, **fields)

    def _begin_handoff(self, name: str, arguments: Any, *, agent: str | None, step: int | None) -> int:
        """The target may act within the tool's body already, so it has the conversation from now on."""
        self._check_not_over()
        asked = asked_handoff(name, arguments)
        self.observe(Observable.HANDOFFS)
        if asked.context is not None:
            self.observe(Observable.HANDOFF_CONTEXT)
        source = agent or self._active_agent or self.identity() or "agent"
        number = self.handoff(source, asked.target, reason=asked.reason, context=asked.context, step=step)
        self._by_tool.add(number)
        self._finish(number, **{_OPEN: True})
        return number

    def _attempt(self, call_id: str) -> int:
        with self._lock:
            self._attempts[call_id] += 1
            return self._attempts[call_id]

    def end_tool_call(
        self,
        number: int,
        *,
        result: Any = None,
        error: object = None,
        state: CallState | None = None,
        told: Any = None,
        duration_ms: float | None = None,
    ) -> None:
        """A tool call ends: `failed` with an error, else `executed`, unless `state` says otherwise.

        `duration_ms` None takes the time since it began.
        """
        if state is None:
            state = CallState.EXECUTED if error is None else CallState.FAILED
        fields = self._fields(number)
        if fields.pop(_OPEN, False):
            self.settle_handoff(number, completed=state is CallState.EXECUTED)
            return
        if fields["malformed"] and state is CallState.EXECUTED and fields.get("stand_in"):
            state = CallState.INVALID_ARGUMENTS
        result_json = to_json(result)
        told_json = None if told is None else to_json(told)
        ended = {
            "state": state,
            "result": result_json,
            "told": told_json if told_json != result_json else None,
            "error": None if error is None else error_text(error),
            "duration_ms": self._since(fields["at_ms"]) if duration_ms is None else duration_ms,
        }
        with self._lock:
            fields.update(ended, ended=len(self._entries) + 1)
            self._changed(number)

    def amend(self, number: int, **fields: Any) -> None:
        """Correct fields of an event already begun, when an adapter learns more (JSON data only)."""
        kind = self._entries[number - 1][0]
        is_handoff = kind is Handoff  # a tool's call that turned out to be one has less to tell
        self._unchecked.add(number)
        self._finish(number, **{key: value for key, value in fields.items() if not is_handoff or key in _HANDOFF})

    def tell(self, number: int, told: Any) -> None:
        """What the model was told of a tool call, where the adapter learns that later."""
        shown = to_json(told)
        with self._lock:
            kind, fields = self._entries[number - 1]
            if kind is Handoff:
                return
            fields["told"] = shown if shown != fields.get("result") else None
            self._changed(number)

    def call_without_id(self, name: str, arguments: Any, *, after: int) -> int | None:
        """Number of a tool call with these arguments that began after event `after` and that no model call claims."""
        wanted, _ = read_arguments(arguments)
        with self._lock:
            for kind, fields in self._entries[after:]:
                free = kind is ToolCallEvent and fields["call_id"] is None and fields["step"] is None
                if free and fields["name"] == name and fields["arguments"] == wanted:
                    return int(fields["number"])
        return None

    def open_call(self, name: str, arguments: Any, *, besides: Collection[int] = ()) -> int | None:
        """Number of the first tool call with these arguments that has begun and not ended; none of `besides`."""
        wanted, _ = read_arguments(arguments)
        with self._lock:
            for kind, fields in self._entries:
                is_open = kind is ToolCallEvent and "state" not in fields and fields["number"] not in besides
                if is_open and fields["name"] == name and wanted in (fields["arguments"], fields.get("asked")):
                    return int(fields["number"])
        return None

    def open_handoff(self, name: str, arguments: Any, *, besides: Collection[int] = ()) -> int | None:
        """Number of the first hand-off of this turn that a model asked for by such a call; none of `besides`."""
        target = asked_handoff(name, arguments).target
        for kind, fields in self._this_turn():
            asked = kind is Handoff and fields["step"] is not None and fields["number"] not in besides
            if asked and fields["target"] == target:
                return int(fields["number"])
        return None

    def withdraw(self, number: int) -> None:
        """Take a tool call back that did not happen after all (it runs again later, or was a hand-off).

        Later events move up when the trace is made, so that numbers stay positions.
        """
        with self._lock:
            self._withdrawn.append(number)
            self._tell({"withdrawn": [number]})
            if self._entries[number - 1][0] is Handoff:
                return
            self._tool_calls -= 1
            self._attempts[self._fields(number).get("call_id") or ""] -= 1

    def handoff(
        self,
        source: str,
        target: str,
        *,
        reason: str | None = None,
        context: Mapping[str, Any] | None = None,
        completed: bool = True,
        step: int | None = None,
    ) -> int:
        """The conversation goes from `source` to `target` (or was refused: `completed=False`).

        With the model call's number, `step`, it is the hand-off that a tool has put on record since, if one has.
        """
        known = None if step is None else self._handoff_by_tool(str(target), step)
        if known is not None:
            self._finish(known, step=step, source=str(source), agent=str(source))
            return known
        if completed:
            self._active_agent = target
        shown = None if context is None else to_json(context)
        said = None if reason is None else str(reason)
        fields = {"reason": said, "context": shown, "completed": completed, "step": step, "agent": str(source)}
        return self._begin(Handoff, source=str(source), target=str(target), **fields)

    def _handoff_by_tool(self, target: str, step: int) -> int | None:
        """Number of a hand-off to this target that a tool's call made after model call `step`, and no model claims."""
        with self._lock:
            for kind, fields in self._entries[step:]:
                made = kind is Handoff and fields["number"] in self._by_tool - set(self._withdrawn)
                if made and fields["target"] == target and fields["step"] is None:
                    return int(fields["number"])
        return None

    def settle_handoff(self, number: int, *, completed: bool) -> None:
        """Only now it is known whether a hand-off on record was completed; who has the conversation follows."""
        with self._lock:
            self._fields(number)["completed"] = completed
            made = [fields for kind, fields in self._entries if kind is Handoff and fields["completed"]]
            self._active_agent = made[-1]["target"] if made else None
            self._changed(number)

    def approval(
        self,
        action: str,
        arguments: Any,
        decision: str,
        *,
        approved_arguments: Any = None,
        approver: str | None = None,
        call_id: str | None = None,
        agent: str | None = None,
    ) -> int:
        """An approval was asked for and answered (or stayed `unanswered`)."""
        number = self._begin(
            Approval,
            action=action,
            arguments=read_arguments(arguments)[0],
            decision=decision,
            approved_arguments=None if approved_arguments is None else to_json(approved_arguments),
            approver=approver,
            call_id=call_id,
            agent=agent,
        )
        self._finish(number, ended=number + 1)
        return number

    def retrieval(self, query: Any, contexts: Any, *, agent: str | None = None) -> int:
        """Contexts were looked up."""
        return self._begin(Retrieval, query=to_json(query), contexts=tuple(to_json(list(contexts))), agent=agent)

    def guardrail(self, name: str, passed: bool, details: Any = None, *, agent: str | None = None) -> int:
        """A guard of the agent itself spoke."""
        return self._begin(Guardrail, name=name, passed=passed, details=to_json(details), agent=agent)

    def fault(self, tool: str, fault: str, *, call: int | None = None, details: Any = None) -> int:
        """The fixture injected a fault."""
        return self._begin(Fault, tool=tool, fault=fault, call=call, details=to_json(details))

    def safety(self, event: str, evidence: Any = None, *, source: str = "harness", agent: str | None = None) -> int:
        """Something that must not happen was seen."""
        return self._begin(SafetyEvent, event=event, evidence=to_json(evidence), source=source, agent=agent)

    def error(self, error: BaseException, *, agent: str | None = None) -> int:
        """An exception was seen."""
        return self._begin(ErrorEvent, type=type(error).__name__, message=str(error), agent=agent)

    # --- what an agent's author reports ------------------------------------------------------------------------------

    def report(self, item: Any) -> int:
        """Record a ToolCall, HandoffEvent or ModelCall that already happened.

        Raises TypeError for anything else, and TypeError or ValueError naming a field that cannot be kept; then
        nothing is recorded. CostLimitReached, once it is recorded, when the trial may spend no more.
        """
        number = self._report(item)
        self.spending.check()
        return number

    def _report(self, item: Any) -> int:
        if isinstance(item, ToolCall):
            return self._report_tool_call(item)
        if isinstance(item, HandoffEvent):
            return self._report_handoff(item)
        if isinstance(item, ModelCall):
            return self._report_model_call(item)
        raise TypeError(f"an event is a ToolCall, HandoffEvent or ModelCall, not {type(item).__name__}")

    def report_turn(self, events: Sequence[Any], others: Sequence[Any]) -> None:
        """Record a turn that its author reports afterwards: `events` in their order, then the `others`.

        What stands in both, or was recorded in this turn as it happened, is recorded once. Where the order between
        tool calls and hand-offs stays unknown, `ordered` becomes False.
        """
        events, others = each_once(events), each_once(others)
        known = Counter(identity_of_entry(*entry) for entry in self._this_turn() if entry[0] is not Message)
        listed = Counter(identity_of(item) for item in events)
        rest = [item for item in others if not _take(listed, item)]
        placed = [(item, _take(known, item)) for item in events]
        late = [item for item in rest if not _take(known, item)]
        for item in (*(item for item, recorded in placed if not recorded), *late):
            self._report(item)
        if _out_of_place(placed, late) and {ToolCallEvent, Handoff} <= {kind for kind, _ in self._this_turn()}:
            self.ordered = False
            self._tell({"ordered": False})

    def _this_turn(self) -> list[_Entry]:
        with self._lock:
            entries = [entry for entry in self._entries if entry[1]["turn"] == self.turn]
        return [(kind, fields) for kind, fields in entries if fields["number"] not in self._withdrawn]

    def _report_tool_call(self, call: ToolCall) -> int:
        """As a call that begins and ends, of which nobody knows how long it took."""
        state = check_tool_call(call)
        self.observe(Observable.TOOL_CALLS)
        if is_handoff_tool(str(call.name)):
            number = self._begin_handoff(str(call.name), call.arguments, agent=call.agent, step=None)
            self.end_tool_call(number, error=call.error, state=state)
            return number
        self._count_step(model=False)
        arguments, malformed = read_arguments(call.arguments)
        result, error = to_json(call.result), None if call.error is None else error_text(call.error)
        with self._lock:
            return self._begin(
                ToolCallEvent,
                agent=call.agent or self._active_agent,
                name=str(call.name),
                call_id=call.call_id,
                arguments=arguments,
                malformed=malformed,
                state=state or (CallState.EXECUTED if error is None else CallState.FAILED),
                result=result,
                error=error,
                attempt=1 if call.call_id is None else self._attempt(call.call_id),
                ended=len(self._entries) + 2,
                step=None,
            )

    def _report_handoff(self, event: HandoffEvent) -> int:
        check_handoff(event)
        self.observe(Observable.HANDOFFS)
        if event.context is not None:
            self.observe(Observable.HANDOFF_CONTEXT)
        known = self._just_by_tool(event.target)
        if known is not None:
            self._told.add(known)
            more = {"reason": event.reason, "context": None if event.context is None else to_json(event.context)}
            self._finish(known, **{name: value for name, value in more.items() if value is not None})
            return known
        return self.handoff(event.source, event.target, reason=event.reason, context=event.context)

    def _just_by_tool(self, target: str) -> int | None:
        """Number of the last hand-off, where a tool's call to this target made it and nobody told of it yet."""
        with self._lock:
            last = next((fields for kind, fields in reversed(self._entries) if kind is Handoff), None)
            if last is None or last["target"] != target or not last["completed"]:
                return None
            number = int(last["number"])
            return number if number in self._by_tool - self._told - set(self._withdrawn) else None

    def _report_model_call(self, call: ModelCall) -> int:
        usage = usage_of(call)
        self.observe(Observable.MODEL_CALLS, Observable.USAGE)
        self._count_step(model=True)
        number = self._begin(ModelCallEvent, model=call.model, agent=call.agent or self._active_agent)
        self.end_model_call(number, usage=usage, cost_usd=call.cost_usd, error=call.error)
        self.amend(number, latency_ms=call.latency_ms)
        return number


def _stopped_calls(events: Sequence[Event]) -> Iterator[ToolCallEvent]:
    """The calls that approvals stopped before they became tool calls."""
    if all(type(event) is not Approval for event in events):
        return
    calls = [event for event in events if isinstance(event, ToolCallEvent)]
    number = len(events)
    for approval in events:
        if not isinstance(approval, Approval) or approval.decision not in ("denied", "unanswered"):
            continue
        if is_handoff_tool(approval.action) or any(_is_of(approval, call) for call in calls):
            continue
        number += 1
        stopped = ToolCallEvent(
            number=number,
            at_ms=approval.at_ms,
            agent=approval.agent,
            turn=approval.turn,
            name=approval.action,
            call_id=approval.call_id,
            arguments=approval.arguments,
            state=CallState.REFUSED,
            error=f"approval {approval.decision}",
            ended=number + 1,
        )
        calls.append(stopped)
        yield stopped


def _is_of(approval: Approval, call: ToolCallEvent) -> bool:
    """Whether an approval is about this call: its id, its name and arguments, or asked for in its body."""
    if approval.call_id is not None and call.call_id is not None:
        return approval.call_id == call.call_id
    same = call.name == approval.action and approval.arguments in (call.arguments, call.asked)
    return same or call.number < approval.number < (call.ended or approval.number + 1)


def _out_of_place(placed: Sequence[tuple[Any, bool]], late: Sequence[Any]) -> bool:
    """Whether some reported calls or hand-offs do not stand where they happened.

    Those without a place do not, nor does one that was reported before one that the trial had recorded already.
    """
    recorded = [known for _, known in placed]
    misplaced = False in recorded and True in recorded[recorded.index(False) :]
    return misplaced or any(isinstance(item, (ToolCall, HandoffEvent)) for item in late)


def _take(counts: Counter[str], item: Any) -> bool:
    """Whether there is one more that is the same; it is used up."""
    key = identity_of(item) if counts else ""
    if counts[key] <= 0:
        return False
    counts[key] -= 1
    return True


def _move_up(fields: dict[str, Any], gone: list[int]) -> None:
    """Numbers of events as they are once the withdrawn ones (sorted) have gone."""
    for key in ("number", "ended", "step", "call"):
        if isinstance(fields.get(key), int):
            fields[key] = (
                None if key == "call" and fields[key] in gone else fields[key] - bisect_left(gone, fields[key])
            )
