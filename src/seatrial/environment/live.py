"""What happens in a trial, written down while it happens: what begins, what ends, what may begin no more.

From any thread. Values are turned into JSON data at once, so that what the agent changes later does not change the
trace.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.figures import figure_of
from seatrial.core.trace import (
    Approval,
    CallState,
    ErrorEvent,
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
from seatrial.environment.entries import Entries, Lock
from seatrial.environment.failure import TrialOver, error_text
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.handoffs import OPEN, Handoffs
from seatrial.environment.reports import as_text, read_arguments
from seatrial.environment.spending import Spending

__all__ = ["LiveRecorder", "StepLimitReached", "limit_of_its_own"]


class StepLimitReached(BaseException):
    """The trial's hard stop. A BaseException, so that an agent's own `except Exception` does not swallow it."""


def limit_of_its_own(limit: str, error: Exception) -> StepLimitReached:
    """What ends a trial whose agent, or its framework, has reached a limit of its own, in the framework's words."""
    said = str(error).partition("\n")[0]
    return StepLimitReached(f"the agent's own {limit} was reached ({said})")


_HANDOFF = frozenset(Handoff.model_fields)
_MAYBE = (str, type(None))


class LiveRecorder:
    """Collects the events of one trial as they happen."""

    limit_reached: bool = False
    ordered: bool = True
    """False once tool calls and hand-offs were reported without their common order."""
    _model_calls: int = 0
    _tool_calls: int = 0
    _over: bool = False

    def __init__(
        self,
        step_limit: int | None = None,
        identity: Callable[[], str | None] = lambda: None,
        lock: Lock | None = None,
    ) -> None:
        """`identity` tells who acts before the first hand-off, for tool calls that hand over; `lock` is the trial's."""
        self.step_limit = step_limit
        self.identity = identity
        self._lock = lock or threading.RLock()
        self.observes: set[Observable] = set()
        """What this trial could see beyond the adapter's own set."""
        self.unobserved: dict[Observable, str] = {}
        """Why this trial could not see what it did not."""
        self.problems: list[str] = []
        """What went wrong when the events were made final: they are not all that happened."""
        self._attempts: dict[str, int] = defaultdict(int)
        self._entries = Entries(self._lock)
        self._handoffs = Handoffs(self._entries)
        self.spending = Spending(self._lock)
        """What its model calls cost, and when it must stop."""

    # --- what is there ---------------------------------------------------------------------------------------------

    @property
    def turn(self) -> int:
        """Number of the user turn that events belong to from now on."""
        return self._entries.turn

    @turn.setter
    def turn(self, number: int) -> None:
        self._entries.turn = number

    @property
    def on_change(self) -> Callable[[dict[str, Any]], None] | None:
        """Called with every change of the record as it happens, as JSON data that `apply` takes."""
        return self._entries.on_change

    @on_change.setter
    def on_change(self, tell: Callable[[dict[str, Any]], None] | None) -> None:
        self._entries.on_change = tell

    @property
    def active_agent(self) -> str | None:
        """Target of the last completed hand-off; None before the first."""
        return self._handoffs.active_agent

    @property
    def model_calls(self) -> int:
        """Model calls begun so far."""
        return self._model_calls

    def elapsed_ms(self) -> float:
        """Milliseconds since the trial began, monotonic, to the microsecond."""
        return self._entries.elapsed_ms()

    def observe(self, *observables: Observable) -> None:
        """This trial can see these kinds of evidence."""
        if self.observes.issuperset(observables):
            return
        self.observes.update(observables)
        if self.unobserved:
            for observable in observables:
                self.unobserved.pop(observable, None)
        if self._entries.on_change is not None:
            self._entries.tell({"observes": sorted(self.observes)})

    def lacks(self, observable: Observable, why: str) -> None:
        """This trial cannot see this kind of evidence, whatever was thought before."""
        self.observes.discard(observable)
        self.unobserved[observable] = why
        self._entries.tell({"lacks": {observable: why}})

    def end(self) -> None:
        """The trial is over: whoever begins a model or tool call from now on gets TrialOver."""
        self._over = True

    # --- writing ---------------------------------------------------------------------------------------------------

    def _check_not_over(self) -> None:
        if self._over:
            raise TrialOver("the trial is over: no call begins any more")

    def _count_model_call(self) -> None:
        self._check_not_over()
        with self._lock:
            self._model_calls = steps = self._model_calls + 1
        self._check_steps(steps)

    def _count_tool_call(self) -> None:
        """A step where no model call was seen."""
        self._check_not_over()
        with self._lock:
            self._tool_calls = steps = self._tool_calls + 1
        if not self._model_calls:
            self._check_steps(steps)

    def _check_steps(self, steps: int) -> None:
        if self.step_limit is not None and steps > self.step_limit:
            self.limit_reached = True
            raise StepLimitReached(f"the limit of {self.step_limit} steps was reached")

    def begin_turn(self, number: int, said: Any) -> None:
        """The user says this, and later events belong to the turn of this number. Raises CostLimitReached when the
        trial may spend no more."""
        self.spending.check()
        self._entries.turn = number
        self._entries.begin(Message, {"role": "user", "content": to_json(said), "agent": None})

    def message(self, role: str, content: Any, *, agent: str | None = None) -> int:
        """Something was said."""
        fields = {"role": as_text(role) or "", "content": to_json(content), "agent": as_text(agent)}
        return self._entries.begin(Message, fields)

    def begin_model_call(self, model: str | None = None, *, agent: str | None = None) -> int:
        """A model call begins: one step. Raises StepLimitReached when there were as many as allowed, CostLimitReached
        when the trial may spend no more."""
        name = as_text(model)
        self.spending.check_price(name)
        self._count_model_call()
        return self._entries.begin(ModelCallEvent, {"model": name, "agent": as_text(agent)})

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
            fields = self._entries.fields(number)
            if model is not None:
                fields["model"] = as_text(model)
            fields["latency_ms"] = self._entries.since(fields["at_ms"]) if latency_ms is None else figure_of(latency_ms)
            fields.update(usage=usage, cost_usd=figure_of(cost_usd), error=None if error is None else error_text(error))
            self._entries.changed(number)
        self.spending.add_call(fields["turn"], fields["model"], usage, cost_usd)

    def estimate(self, cost_usd: float) -> None:
        """What the agent itself says that the present turn cost, in USD."""
        self.spending.estimates[self.turn] = cost_usd
        self._entries.tell({"estimates": [[self.turn, cost_usd]]})

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
        if not (type(name) is str and isinstance(agent, _MAYBE) and isinstance(call_id, _MAYBE)):
            name, agent, call_id = as_text(name) or "", as_text(agent), as_text(call_id)
        if is_handoff_tool(name):
            return self._begin_handoff(name, arguments, agent=agent, step=step)
        self._count_tool_call()
        read, malformed = read_arguments(arguments)
        fields: dict[str, Any] = {
            "agent": agent,
            "name": name,
            "call_id": call_id,
            "arguments": read,
            "malformed": malformed,
            "step": step,
            "stand_in": stand_in,
        }
        if call_id is not None:
            fields["attempt"] = self._attempt(call_id)
        if asked is not None:
            as_asked, _ = read_arguments(asked)
            fields["asked"] = as_asked if as_asked != read else None
        return self._entries.begin(ToolCallEvent, fields)

    def _begin_handoff(self, name: str, arguments: Any, *, agent: str | None, step: int | None) -> int:
        """The target may act within the tool's body already, so it has the conversation from now on."""
        self._check_not_over()
        asked = asked_handoff(name, arguments)
        self.observe(Observable.HANDOFFS)
        if asked.context is not None:
            self.observe(Observable.HANDOFF_CONTEXT)
        source = agent or self.active_agent or self.identity() or "agent"
        number = self._handoffs.add(source, asked.target, reason=asked.reason, context=asked.context, step=step)
        self._handoffs.opened(number)
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
        fields = self._entries.fields(number)
        if fields.pop(OPEN, False):
            self.settle_handoff(number, completed=state is CallState.EXECUTED)
            return
        if fields["malformed"] and state is CallState.EXECUTED and fields.get("stand_in"):
            state = CallState.INVALID_ARGUMENTS
        result_json = to_json(result)
        told_json = None if told is None else to_json(told)
        ended: dict[str, Any] = {
            "state": state,
            "result": result_json,
            "told": told_json if told_json != result_json else None,
            "error": None if error is None else error_text(error),
            "duration_ms": self._entries.since(fields["at_ms"]) if duration_ms is None else figure_of(duration_ms),
        }
        with self._lock:
            ended["ended"] = len(self._entries.all) + 1
            fields.update(ended)
            self._entries.changed(number)

    def amend(self, number: int, **fields: Any) -> None:
        """Correct fields of an event already begun, when an adapter learns more (JSON data only)."""
        is_handoff = self._entries.kind(number) is Handoff  # a tool's call that turned out to be one has less to tell
        self._entries.unchecked.add(number)
        self._entries.fill(number, **{key: value for key, value in fields.items() if not is_handoff or key in _HANDOFF})

    def tell(self, number: int, told: Any) -> None:
        """What the model was told of a tool call, where the adapter learns that later."""
        shown = to_json(told)
        with self._lock:
            if self._entries.kind(number) is Handoff:
                return
            fields = self._entries.fields(number)
            fields["told"] = shown if shown != fields.get("result") else None
            self._entries.changed(number)

    def call_without_id(self, name: str, arguments: Any, *, after: int) -> int | None:
        """Number of a tool call with these arguments that began after event `after` and that no model call claims."""
        wanted, _ = read_arguments(arguments)

        def fits(fields: dict[str, Any]) -> bool:
            free = fields["call_id"] is None and fields["step"] is None
            return free and fields["name"] == name and bool(fields["arguments"] == wanted)

        return self._entries.first(ToolCallEvent, fits, after=after)

    def open_call(self, name: str, arguments: Any, *, besides: Collection[int] = ()) -> int | None:
        """Number of the first tool call with these arguments that has begun and not ended; none of `besides`."""
        wanted, _ = read_arguments(arguments)

        def fits(fields: dict[str, Any]) -> bool:
            is_open = "state" not in fields and fields["number"] not in besides
            return is_open and fields["name"] == name and wanted in (fields["arguments"], fields.get("asked"))

        return self._entries.first(ToolCallEvent, fits)

    def open_handoff(self, name: str, arguments: Any, *, besides: Collection[int] = ()) -> int | None:
        """Number of the first hand-off of this turn that a model asked for by such a call; none of `besides`."""
        return self._handoffs.asked_for(asked_handoff(name, arguments).target, besides=besides)

    def withdraw(self, number: int) -> None:
        """Take a tool call back that did not happen after all (it runs again later, or was a hand-off).

        Later events move up when the trace is made, so that numbers stay positions.
        """
        with self._lock:
            self._entries.withdraw(number)
            if self._entries.kind(number) is not Handoff:
                self._tool_calls -= 1
                self._attempts[self._entries.fields(number).get("call_id") or ""] -= 1

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
        add = self._handoffs.add
        return add(source, target, reason=reason, context=context, completed=completed, step=step)

    def settle_handoff(self, number: int, *, completed: bool) -> None:
        """Only now it is known whether a hand-off on record was completed; who has the conversation follows."""
        self._handoffs.settle(number, completed=completed)

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
        fields = {
            "action": as_text(action) or "",
            "arguments": read_arguments(arguments)[0],
            "decision": decision,
            "approved_arguments": None if approved_arguments is None else to_json(approved_arguments),
            "approver": as_text(approver),
            "call_id": as_text(call_id),
            "agent": as_text(agent),
        }
        return self._entries.begin(Approval, fields, ended=True)

    def retrieval(self, query: Any, contexts: Any, *, agent: str | None = None) -> int:
        """Contexts were looked up."""
        found = tuple(to_json(list(contexts)))
        return self._entries.begin(Retrieval, {"query": to_json(query), "contexts": found, "agent": as_text(agent)})

    def guardrail(self, name: str, passed: bool, details: Any = None, *, agent: str | None = None) -> int:
        """A guard of the agent itself spoke."""
        known = {"name": as_text(name) or "", "passed": bool(passed)}
        return self._entries.begin(Guardrail, {**known, "details": to_json(details), "agent": as_text(agent)})

    def fault(self, tool: str, fault: str, *, call: int | None = None, details: Any = None) -> int:
        """The fixture injected a fault."""
        fields = {"tool": tool, "fault": fault, "call": call, "details": to_json(details)}
        return self._entries.begin(Fault, fields)

    def safety(self, event: str, evidence: Any = None, *, source: str = "harness", agent: str | None = None) -> int:
        """Something that must not happen was seen."""
        known = {"event": as_text(event) or "", "evidence": to_json(evidence)}
        return self._entries.begin(SafetyEvent, {**known, "source": source, "agent": as_text(agent)})

    def error(self, error: BaseException, *, agent: str | None = None) -> int:
        """An exception was seen."""
        name = type(error).__name__
        fields = {"type": name, "message": error_text(error).removeprefix(f"{name}: "), "agent": as_text(agent)}
        return self._entries.begin(ErrorEvent, fields)
