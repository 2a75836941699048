"""Writes what LlamaIndex's instrumentation announces into a trial's trace.

- A model call is one step (`models`). Its agent is the one whose workflow step it happens in.
- A tool call begins and ends with the workflow step that runs it, which carries its id; a tool that the user's own code
  calls is on record as well. A body that waits for a person runs again from its start: one event, where it ran for
  good. Where the person gave other arguments, those count as run.
- `handoff` of an AgentWorkflow is a hand-off, never a tool call. The framework answers a refused one like any other
  call, so it counts as completed when the agent that goes on is its target. It has no place for a context, which is
  therefore not observed. A user's own tool `transfer_to_X` is one too, with its arguments as context.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from llama_index.core.agent.workflow.workflow_events import (
    AgentInput,
    AgentOutput,
    AgentSetup,
    ToolCall,
    ToolCallResult,
)
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.instrumentation.events.exception import ExceptionEvent
from llama_index.core.instrumentation.events.llm import (
    LLMChatEndEvent,
    LLMChatInProgressEvent,
    LLMCompletionEndEvent,
    LLMCompletionInProgressEvent,
)
from llama_index.core.instrumentation.events.retrieval import RetrievalEndEvent
from llama_index.core.tools import BaseTool, ToolOutput

from seatrial.agents.leaving import AgentLeft
from seatrial.agents.llamaindex.calls import AskedCall, RunningCall, fits, state_of_failure, writes_answers
from seatrial.agents.llamaindex.models import METHODS, Acting, ModelCall, acting, begin_call
from seatrial.agents.llamaindex.reading import asked_arguments, result_of
from seatrial.agents.telling import says_the_same
from seatrial.core.trace import CallState, Observable
from seatrial.environment.handing_over import asked_handoff, is_handoff_tool
from seatrial.environment.observed import observed_call, observing
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "LlamaIndexRecorder"]

OBSERVES = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.RETRIEVAL,
    }
)
_BODIES = frozenset({"acall", "call", "__call__"})


class _Span(Protocol):
    """Something that was entered and will be left."""

    def leave(self, result: Any) -> None: ...
    def drop(self, error: BaseException | None) -> None: ...


@dataclass(frozen=True)
class _Step:
    """A workflow step, or a tool's body, and what its end means."""

    ends: Callable[[Any], None]
    fails: Callable[[BaseException | None], None] = lambda error: None

    def leave(self, result: Any) -> None:
        self.ends(result)

    def drop(self, error: BaseException | None) -> None:
        self.fails(error)


class LlamaIndexRecorder:
    """Records one trial."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self.trial = trial
        self.waiting: dict[str, RunningCall] = {}
        """Calls whose body waits for a person, by id."""
        self._open: dict[str, _Span] = {}
        self._asked: dict[str, AskedCall] = {}
        self._handoffs: list[RunningCall] = []
        self._lock = threading.RLock()

    # --- what the instrumentation calls ------------------------------------------------------------------------------

    def entered(self, span_id: str, instance: Any, arguments: Mapping[str, Any]) -> None:
        """Something begins. `span_id` is `Class.method-UUID`."""
        span = self._begun(span_id, instance, arguments)
        if span is not None:
            self.trial.recorder.observe(*OBSERVES)
            self._open[span_id] = span

    def left(self, span_id: str, result: Any) -> None:
        """It ended."""
        span = self._open.get(span_id)
        if span is not None:
            span.leave(result)
            self._forget(span_id, span)

    def dropped(self, span_id: str, error: BaseException | None) -> None:
        """It raised."""
        span = self._open.pop(span_id, None)
        if span is not None:
            span.drop(error)

    def happened(self, event: Any) -> None:
        """An event within a span."""
        if isinstance(event, RetrievalEndEvent):
            self._retrieved(event)
            return
        call = self._open.get(event.span_id or "")
        if not isinstance(call, ModelCall):
            return
        if isinstance(event, (LLMChatInProgressEvent, LLMCompletionInProgressEvent)):
            call.heard(event.response)
        elif isinstance(event, (LLMChatEndEvent, LLMCompletionEndEvent)):
            call.end(event.response)
        elif isinstance(event, ExceptionEvent):
            call.drop(event.exception)
        self._forget(call.span_id, call)

    def _forget(self, span_id: str, span: _Span) -> None:
        if not isinstance(span, ModelCall) or span.ended:
            self._open.pop(span_id, None)

    def _begun(self, span_id: str, instance: Any, arguments: Mapping[str, Any]) -> _Span | None:
        method = span_id[: -len("-00000000-0000-0000-0000-000000000000")].rpartition(".")[2]
        if isinstance(instance, BaseLLM):
            return begin_call(self.trial, span_id, method, instance) if method in METHODS else None
        if isinstance(instance, BaseTool):
            return self._body(instance, arguments) if method in _BODIES else None
        return next((step for value in arguments.values() if (step := self._step(value)) is not None), None)

    def _step(self, event: Any) -> _Step | None:
        if isinstance(event, AgentSetup):
            acting.set(who := Acting(event.current_agent_name))
            return _Step(lambda output: self._asks(output, who))
        if isinstance(event, AgentOutput):
            acting.set(Acting(event.current_agent_name))
        elif isinstance(event, ToolCall):
            return self._call(event)
        elif isinstance(event, ToolCallResult):
            return _Step(self._goes_on)
        return None

    # --- models and retrieval ----------------------------------------------------------------------------------------

    def _asks(self, output: Any, who: Acting) -> None:
        if isinstance(output, AgentOutput):
            written = asked_arguments(output.response)
            for call in output.tool_calls:
                arguments = written.get(call.tool_id, call.tool_kwargs)
                self._asked[call.tool_id] = AskedCall(call.tool_name, arguments, who.step, who.agent)

    def _retrieved(self, event: RetrievalEndEvent) -> None:
        query = event.str_or_query_bundle
        who = acting.get()
        self.trial.recorder.observe(*OBSERVES)
        self.trial.recorder.retrieval(
            query if isinstance(query, str) else query.query_str,
            [node.get_content() for node in event.nodes],
            agent=None if who is None else who.agent,
        )

    # --- tool calls --------------------------------------------------------------------------------------------------

    def _call(self, event: ToolCall) -> _Step:
        asked = self._asked.get(event.tool_id, AskedCall(event.tool_name, event.tool_kwargs))
        call = self.waiting.pop(event.tool_id, None)
        if call is None:
            call = RunningCall(event.tool_name, call_id=event.tool_id, arguments=event.tool_kwargs, asked=asked)
            call.target = _target(event)
        else:
            self._again(call)
        call.agent, call.before = asked.agent, observing.get()
        acting.set(Acting(asked.agent, asked.step))
        observing.set(call)
        self._begin(call)
        return _Step(lambda result: self._end(call, result), lambda error: self._fail(call, error))

    def _again(self, call: RunningCall) -> None:
        """A body that waited runs again: what was on record of it did not happen."""
        if call.number is not None:
            self.trial.recorder.withdraw(call.number)
        call.resumed, call.applied, call.waiter = True, False, None

    def _begin(self, call: RunningCall) -> None:
        if call.target is not None:
            return
        arguments = call.arguments if call.instead is None else call.instead
        written = call.asked.malformed
        try:
            call.number = self.trial.recorder.begin_tool_call(
                call.name,
                arguments or written,
                call_id=call.call_id,
                agent=call.agent,
                asked=call.arguments if written is None else written,
                step=call.asked.step,
            )
        except BaseException as stop:  # noqa: BLE001  whoever dispatches swallows it: the body raises it
            call.stop = stop

    def _body(self, tool: Any, arguments: Mapping[str, Any]) -> _Step | None:
        """A tool's body begins: of a call on record, or by the user's own code."""
        name, given = tool.metadata.get_name(), dict(arguments.get("kwargs") or {})
        call = observed_call(name)
        if isinstance(call, RunningCall):
            call.fits = call.fits and (call.entered or fits(tool, given))
            return None
        if call is not None or name == "handoff" or writes_answers(tool):
            return None
        given.pop(getattr(tool, "ctx_param_name", None) or "", None)
        own = RunningCall(name, arguments=given or _positional(arguments), fits=fits(tool, given))
        who = acting.get()
        own.agent, own.before = None if who is None else who.agent, observing.get()
        own.applied = True
        observing.set(own)
        self._begin(own)
        return _Step(lambda output: self._end(own, output), lambda error: self._fail(own, error))

    def _end(self, call: RunningCall, result: Any) -> None:
        observing.set(call.before)
        if result is None and call.call_id is not None:  # its body waits for a person
            self.waiting[call.call_id] = call
            return
        output = getattr(result, "tool_output", result)
        if not isinstance(output, ToolOutput):
            output = ToolOutput(call.name, content=str(output), raw_output=output)
        if call.target is not None:
            self._hands_over(call, output)
        elif call.number is not None:
            self._record_end(call, call.number, output)

    def _record_end(self, call: RunningCall, number: int, output: ToolOutput) -> None:
        recorder, told = self.trial.recorder, output.content
        if output.is_error:
            state = state_of_failure(call, output, self._stopped(call))
            recorder.end_tool_call(number, error=output.exception or told, told=told, state=state)
            return
        if call.asked.malformed is not None and not call.arguments:  # the framework made no arguments of them
            recorder.amend(number, arguments={}, malformed=False, asked=call.asked.malformed)
        result = result_of(output)
        recorder.end_tool_call(number, result=result, told=None if says_the_same(told, result) else told)

    def _fail(self, call: RunningCall, error: BaseException | None) -> None:
        """The body raised what the framework lets through, or the user's own code is told of it."""
        observing.set(call.before)
        if call.target is not None:
            self._record_handoff(call, completed=False)
        elif call.number is not None:
            state = CallState.INVALID_ARGUMENTS if not call.fits else CallState.FAILED
            state = CallState.REFUSED if self._stopped(call) else state
            raised = error.error if isinstance(error, AgentLeft) else error
            self.trial.recorder.end_tool_call(call.number, error=raised or "it was broken off", state=state)

    def _stopped(self, call: RunningCall) -> bool:
        return call.question_open or self.trial.stopped(call.name, call.arguments, call.call_id)

    # --- hand-offs ---------------------------------------------------------------------------------------------------

    def _hands_over(self, call: RunningCall, output: ToolOutput) -> None:
        if call.name == "handoff" and not output.is_error:
            self._handoffs.append(call)  # who goes on will tell
        else:
            self._record_handoff(call, completed=not output.is_error)

    def _goes_on(self, event: Any) -> None:
        """The next agent is known: of several hand-offs in one reply the last to it was the one."""
        if not isinstance(event, AgentInput):
            return
        asked, self._handoffs = self._handoffs, []
        taken = [call for call in asked if call.target == event.current_agent_name][-1:]
        for call in asked:
            self._record_handoff(call, completed=call in taken)

    def _record_handoff(self, call: RunningCall, *, completed: bool) -> None:
        recorder, arguments = self.trial.recorder, dict(call.arguments)
        reason, context = arguments.pop("reason", None), None
        if call.name != "handoff":
            nested = arguments.pop("context", None)
            context = {**arguments, **(nested if isinstance(nested, Mapping) else {})}
            if nested is not None and not isinstance(nested, Mapping):
                context["context"] = nested
            recorder.observe(Observable.HANDOFF_CONTEXT)
        recorder.handoff(
            call.agent or "agent",
            call.target or "unknown",
            reason=reason,
            context=context,
            completed=completed,
            step=call.asked.step,
        )

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """The turn is over: nothing that is still open will go on."""
        asked, self._handoffs = self._handoffs, []
        for call in asked:
            self._record_handoff(call, completed=False)
        waiting, self.waiting = self.waiting, {}
        for call in waiting.values():
            self._leave_waiting(call)
        self._open.clear()

    def _leave_waiting(self, call: RunningCall) -> None:
        if call.number is None or call.waiter is None:  # cancelled while it ran: it never ended
            return
        stopped = self._stopped(call)
        state = CallState.REFUSED if stopped else CallState.UNKNOWN
        error = "not approved" if stopped else "it waited for something that never came"
        self.trial.recorder.end_tool_call(call.number, error=error, state=state)


def _target(event: ToolCall) -> str | None:
    if not is_handoff_tool(event.tool_name):
        return None
    return asked_handoff(event.tool_name, event.tool_kwargs).target


def _positional(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """A tool that takes one input without a name."""
    given = list(arguments.get("args") or ())
    return {"input": given[0]} if len(given) == 1 else {}
