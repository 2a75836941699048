"""The one place where a trial's events are written down as they happen.

Adapters, stand-in tools, approvals and user code all record here, from any thread. Values are turned into JSON data
at once, so that what the agent changes later does not change the trace. An event gets its number when it begins;
its end fills it in. `freeze` gives the finished events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
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

__all__ = ["Recorder", "StepLimitReached", "error_text", "read_arguments"]


class StepLimitReached(BaseException):
    """The trial's hard stop. A BaseException, so that an agent's own `except Exception` does not swallow it."""


def error_text(error: object) -> str:
    """`Type: message` of an exception; other things as text."""
    return f"{type(error).__name__}: {error}" if isinstance(error, BaseException) else str(error)


def read_arguments(arguments: Any) -> tuple[Any, bool]:
    """Arguments as JSON data, and whether they were malformed (no JSON object).

    None, empty text and an empty mapping are no arguments: {}. Text is read as JSON. Malformed arguments are kept
    as they came.
    """
    if arguments is None or arguments == "":
        return {}, False
    if isinstance(arguments, Mapping):
        return to_json(arguments), False
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except ValueError:
            return arguments, True
        return (parsed, False) if isinstance(parsed, dict) else (arguments, True)
    return to_json(arguments), True


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
        self._entries: list[tuple[type, dict[str, Any]]] = []
        self._lock = threading.RLock()
        self._began = time.perf_counter()
        self._model_calls = 0
        self._tool_calls = 0
        self._active_agent: str | None = None

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
        """Milliseconds since the trial began, monotonic."""
        return (time.perf_counter() - self._began) * 1000

    def observe(self, *observables: Observable) -> None:
        """This trial can see these kinds of evidence."""
        self.observes.update(observables)

    def freeze(self) -> tuple[Event, ...]:
        """The events so far. A tool call that never ended has failed with `never ended`."""
        with self._lock:
            entries = [(kind, dict(fields)) for kind, fields in self._entries]
        events: list[Event] = []
        for kind, fields in entries:
            if kind is ToolCallEvent and "state" not in fields:
                fields.update(state=CallState.FAILED, error="never ended")
            events.append(kind(**fields))
        return tuple(events)

    # --- writing ---------------------------------------------------------------------------------------------------

    def _begin(self, kind: type, **fields: Any) -> int:
        with self._lock:
            number = len(self._entries) + 1
            self._entries.append((kind, {"number": number, "at_ms": self.elapsed_ms(), "turn": self.turn, **fields}))
            return number

    def _fields(self, number: int) -> dict[str, Any]:
        return self._entries[number - 1][1]

    def _finish(self, number: int, **fields: Any) -> None:
        with self._lock:
            self._fields(number).update(fields)

    def _count_step(self, *, model: bool) -> None:
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
        """A model call begins: one step. Raises StepLimitReached when there were as many as allowed."""
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
            fields["latency_ms"] = self.elapsed_ms() - fields["at_ms"] if latency_ms is None else latency_ms
            fields.update(usage=usage, cost_usd=cost_usd, error=None if error is None else error_text(error))

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
    ) -> int:
        """A tool call begins. `asked` is what the model asked for, when it differs; `step` the model call's number.

        Raises StepLimitReached when no model call was seen and there were as many tool calls as allowed.
        """
        self._count_step(model=False)
        read, malformed = read_arguments(arguments)
        fields: dict[str, Any] = {"name": str(name), "call_id": call_id, "agent": agent, "arguments": read}
        fields.update(malformed=malformed, step=step, stand_in=stand_in)
        if asked is not None:
            as_asked, _ = read_arguments(asked)
            fields["asked"] = as_asked if as_asked != read else None
        return self._begin(ToolCallEvent, **fields)

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
        """A tool call ends: `failed` with an error, else `executed`, unless `state` says otherwise."""
        if state is None:
            state = CallState.EXECUTED if error is None else CallState.FAILED
        with self._lock:
            fields = self._fields(number)
            if fields["malformed"] and state is CallState.EXECUTED and fields.get("stand_in"):
                state = CallState.INVALID_ARGUMENTS
            spent = self.elapsed_ms() - fields["at_ms"] if duration_ms is None else duration_ms
            told_json = None if told is None else to_json(told)
            result_json = to_json(result)
            fields.update(
                state=state,
                result=result_json,
                told=told_json if told_json != result_json else None,
                error=None if error is None else error_text(error),
                duration_ms=spent,
                ended=len(self._entries) + 1,
            )

    def amend(self, number: int, **fields: Any) -> None:
        """Correct fields of an event already begun, when an adapter learns more (JSON data only)."""
        self._finish(number, **fields)

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
        """The conversation goes from `source` to `target` (or was refused: `completed=False`)."""
        if completed:
            self._active_agent = target
        shown = None if context is None else to_json(context)
        fields = {"reason": reason, "context": shown, "completed": completed, "step": step, "agent": source}
        return self._begin(Handoff, source=str(source), target=str(target), **fields)

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

        Raises TypeError for anything else, naming what it was.
        """
        if isinstance(item, ToolCall):
            self.observe(Observable.TOOL_CALLS)
            return self._report_tool_call(item)
        if isinstance(item, HandoffEvent):
            self.observe(Observable.HANDOFFS)
            if item.context is not None:
                self.observe(Observable.HANDOFF_CONTEXT)
            return self.handoff(item.source, item.target, reason=item.reason, context=item.context)
        if isinstance(item, ModelCall):
            self.observe(Observable.MODEL_CALLS, Observable.USAGE)
            return self._report_model_call(item)
        raise TypeError(f"an event is a ToolCall, HandoffEvent or ModelCall, not {type(item).__name__}")

    def _report_tool_call(self, call: ToolCall) -> int:
        number = self.begin_tool_call(
            call.name, call.arguments, call_id=call.call_id, agent=call.agent or self._active_agent
        )
        state = None if call.state is None else CallState(call.state)
        self.end_tool_call(number, result=call.result, error=call.error, state=state, duration_ms=0.0)
        return number

    def _report_model_call(self, call: ModelCall) -> int:
        number = self.begin_model_call(call.model, agent=call.agent or self._active_agent)
        usage = Usage(
            input=call.input,
            output=call.output,
            cached=call.cached,
            cache_write=call.cache_write,
            reasoning=call.reasoning,
        )
        self.end_model_call(
            number, usage=usage, cost_usd=call.cost_usd, latency_ms=call.latency_ms or 0.0, error=call.error
        )
        return number
