"""Writes what the SDK's hooks and tools tell into a trial's trace.

- A model call is one step: the hook before it may hold it back or stop the run.
- A tool call begins when its body does (after an approval) and ends with it; its error is what the tool raised, though
  the SDK tells the model only that something went wrong (`tools`).
- A hand-off is no tool call. It is completed when the SDK says so; asked for beside another one, or to nobody, refused.
- What a model asked for and no body ran is found by what the next model call is told of it, or by the end of the run:
  an unknown tool, a call rejected at approval or by a guardrail of the tool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from seatrial.agents.leaving import AgentLeft
from seatrial.agents.openai_agents.calls import AskedCall, RunningCall
from seatrial.agents.openai_agents.reading import (
    function_calls,
    handoff_targets,
    outputs_by_call,
    text_of,
    usage_of,
)
from seatrial.agents.telling import says_the_same
from seatrial.core.trace import CallState, Observable
from seatrial.environment.failure import TrialOver
from seatrial.environment.observed import observing
from seatrial.environment.recorder import is_handoff_tool, read_arguments
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "AgentsRecorder"]

OBSERVES = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
    }
)


class AgentsRecorder:
    """Records one trial."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self.trial = trial
        self.late: list[Callable[[], None]] = []
        """Called when the turn is over: what a streamed run tells no earlier."""
        self._asked: dict[str, AskedCall] = {}
        self._results: dict[str, Any] = {}
        self._offered: dict[str, frozenset[str]] = {}
        self._guards: list[Any] = []
        self._lock = threading.RLock()

    # --- models ------------------------------------------------------------------------------------------------------

    async def model_begins(self, agent: Any, model: str | None, items: Iterable[Any]) -> int:
        """Before a model call, with what the model is given; gives its event number.

        Raises what ends the trial where it may make no more calls.
        """
        self.trial.recorder.observe(*OBSERVES)
        self.settle(outputs_by_call(items))
        await self.trial.pace.ready("model", model)
        return self.trial.recorder.begin_model_call(model, agent=agent.name)

    def model_ended(self, number: int, agent: Any, response: Any) -> None:
        """A model answered."""
        self.trial.recorder.end_model_call(number, usage=usage_of(response))
        text = text_of(response)
        if text:
            self.trial.recorder.message("assistant", text, agent=agent.name)
        targets, within = handoff_targets(agent), observing.get()
        for item in function_calls(response):
            asked = AskedCall(item.name, item.arguments, item.call_id, number, agent.name)
            asked.offered = item.name in self._offered.get(agent.name, frozenset())
            asked.within = within if isinstance(within, RunningCall) else None
            asked.target, asked.has_context = _target(item.name, targets)
            with self._lock:
                self._asked[item.call_id] = asked

    def offers(self, agent: str, names: Iterable[str]) -> None:
        """The tools that an agent has."""
        self._offered[agent] = frozenset(names)

    def asked(self, call_id: str) -> AskedCall | None:
        """The latest call asked for with this id."""
        return self._asked.get(call_id)

    # --- tools -------------------------------------------------------------------------------------------------------

    def tool_begins(self, name: str, arguments: str, call_id: str, agent: str | None) -> RunningCall:
        """A body is about to run; what it observes from here on is this call's."""
        asked = self._asked.get(call_id) or AskedCall(name, arguments, call_id, agent=agent)
        self._asked[call_id] = asked
        given, malformed = read_arguments(asked.as_run())
        call = RunningCall(name, call_id=call_id, arguments={} if malformed else given or {}, asked=asked)
        if asked.number is not None:  # an agent in it was interrupted: what is on record of it did not happen
            self.trial.recorder.withdraw(asked.number)
            call.resumed = True
        if asked.target is None:
            self._begin(call, given)
        return call

    def _begin(self, call: RunningCall, given: Any) -> None:
        asked = call.asked
        try:
            call.number = asked.number = self.trial.recorder.begin_tool_call(
                call.name,
                given,
                call_id=call.call_id,
                agent=asked.agent,
                asked=asked.arguments,
                step=asked.step,
                stand_in=self.trial.has_stand_in(call.name),
            )
        except BaseException as stop:  # noqa: BLE001  raised where the tool's failure handler does not catch it
            call.stop = stop

    def tool_ended(self, call: RunningCall, told: Any) -> None:
        """Its body ended, and the model will be told this."""
        if call.number is None:
            self._hand_over(call.asked, completed=call.error is None)
        elif call.error is None:
            result = call.result_or(told)
            self._results[call.call_id or ""] = result
            self.trial.recorder.end_tool_call(call.number, result=result)
        else:
            self._failed(call, told)

    def tool_failed(self, call: RunningCall, error: BaseException) -> None:
        """It raised what ends the run."""
        raised = call.error or error
        call.error = raised.error if isinstance(raised, AgentLeft) else raised
        if call.number is None:
            self._hand_over(call.asked, completed=False)
        else:
            self._failed(call, None)

    def _failed(self, call: RunningCall, told: Any) -> None:
        stopped = self.trial.stopped(call.name, call.asked.as_run(), call.call_id)
        state = CallState.REFUSED if stopped else CallState.FAILED
        state = CallState.INVALID_ARGUMENTS if call.invalid else state
        self.trial.recorder.end_tool_call(call.number or 0, error=call.error, told=told, state=state)
        call.asked.settled = True

    # --- hand-offs ---------------------------------------------------------------------------------------------------

    def handed_over(self, source: str, target: str) -> None:
        """The SDK made another agent the one that acts."""
        open_ones = [asked for asked in self._open() if asked.target == target and asked.agent == source]
        asked = open_ones[0] if open_ones else AskedCall("handoff", "", "", agent=source, target=target)
        self._hand_over(asked, completed=True)

    def _hand_over(self, asked: AskedCall, *, completed: bool) -> None:
        asked.settled = True
        read, malformed = read_arguments(asked.arguments)
        arguments = dict(read) if isinstance(read, Mapping) and not malformed else {}
        reason, nested = arguments.pop("reason", None), arguments.pop("context", None)
        arguments.update(nested if isinstance(nested, Mapping) else {} if nested is None else {"context": nested})
        self.trial.recorder.handoff(
            asked.agent or "agent",
            asked.target or "unknown",
            reason=reason,
            context=arguments if asked.has_context or arguments else None,
            completed=completed,
            step=asked.step,
        )

    # --- what no body ran --------------------------------------------------------------------------------------------

    def _open(self) -> list[AskedCall]:
        with self._lock:
            return [asked for asked in self._asked.values() if not asked.settled]

    def settle(self, told: Mapping[str, Any]) -> None:
        """Learn from a conversation what became of calls, and what the model was told of those on record."""
        for asked in self._open():
            if asked.call_id in told:
                asked.settled = True
                self._settle(asked, told[asked.call_id])

    def _settle(self, asked: AskedCall, told: Any) -> None:
        recorder = self.trial.recorder
        if asked.number is not None and asked.call_id in self._results:
            if not says_the_same(told, self._results[asked.call_id]):
                recorder.tell(asked.number, told)
        elif asked.number is not None:  # cancelled by a time limit of the tool's own
            recorder.end_tool_call(asked.number, error=told, told=told, state=CallState.FAILED)
        elif asked.target is not None:
            self._hand_over(asked, completed=False)
        else:
            self._never_ran(asked, CallState.REFUSED if asked.offered else CallState.UNKNOWN_TOOL, told, told)

    def _never_ran(self, asked: AskedCall, state: CallState, error: Any, told: Any = None) -> None:
        asked.settled = True
        recorder = self.trial.recorder
        number = recorder.begin_tool_call(
            asked.name, asked.arguments, call_id=asked.call_id, agent=asked.agent, step=asked.step, reported=True
        )
        recorder.end_tool_call(number, error=error, told=told, state=state)

    def close(self, error: BaseException | None = None) -> None:
        """The turn is over: nothing that is still open will run."""
        late, self.late = self.late, []
        for tell in late:
            tell()
        with suppress(TrialOver):  # it was cut short, and what is on record stands
            for asked in self._open():
                if asked.number is None:
                    self._close(asked, error)

    def _close(self, asked: AskedCall, error: BaseException | None) -> None:
        if asked.target is not None:
            self._hand_over(asked, completed=False)
        elif self.trial.stopped(asked.name, asked.arguments, asked.call_id):
            self._never_ran(asked, CallState.REFUSED, "not approved")
            self._leave_waiting(asked.within)
        elif not asked.offered:
            self._never_ran(asked, CallState.UNKNOWN_TOOL, error or f"there is no tool named {asked.name!r}")
        else:
            self._never_ran(asked, CallState.UNKNOWN, "asked for, but it never ran")

    def _leave_waiting(self, call: RunningCall | None) -> None:
        """A call in whose body an agent waits for ever has not ended either."""
        if call is not None and call.number is not None:
            waits = "an agent in it waits for an approval"
            self.trial.recorder.end_tool_call(call.number, error=waits, state=CallState.UNKNOWN)

    # --- guardrails --------------------------------------------------------------------------------------------------

    def guarded(self, results: Iterable[Any], agent: str | None = None) -> None:
        """What guardrails found, each once, though a run that goes on tells of them again."""
        for result in results:
            if not any(result is known for known in self._guards):
                self._guards.append(result)
                self._record_guard(result, agent)

    def _record_guard(self, result: Any, agent: str | None) -> None:
        output, who = result.output, getattr(getattr(result, "agent", None), "name", agent)
        behaviour = getattr(output, "behavior", None)
        passed = not output.tripwire_triggered if behaviour is None else behaviour.get("type") == "allow"
        self.trial.recorder.guardrail(result.guardrail.get_name(), passed, output.output_info, agent=who)


def _target(name: str, targets: Mapping[str, tuple[str, bool]]) -> tuple[str | None, bool]:
    if name in targets:
        return targets[name]
    return (name.removeprefix("transfer_to_"), True) if is_handoff_tool(name) else (None, True)
