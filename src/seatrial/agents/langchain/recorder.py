"""Writes what LangChain's public callbacks announce into a trial's trace.

- A model call is one step; it raises StepLimitReached at its start when there were as many as allowed.
- A tool call's arguments are those that the model named (or who edited the call at approval), with their values as
  the tool got them where validation turned one plain value into another ("750" into 750).
- A call whose body was interrupted for an approval runs again from its start: one event, where it ran for good.
- A hand-off is no tool call: a tool named `handoff` or `transfer_to_X`, one that its author declared (metadata
  `__handoff_destination`, as langgraph-supervisor and langgraph-swarm do), or any tool that answers
  `Command(graph=Command.PARENT, goto=X)`. Its context is its arguments but `reason`, with a mapping argument `context`
  taken apart; a tool without arguments shows none, so its context is not observed.
- The calls' agent: the name given to `create_agent`, that of the graph which a tool's body runs (`nesting`), else the
  subgraph it runs in where that is a node of the graph, else whoever has the conversation.

What the callbacks do not announce is found by comparing what models asked for with what they were told (`calls.py`):
an unknown tool, a call rejected at approval, a call that the user's node ran by hand. A call that was asked for and
never ran has the state `unknown`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from pydantic import ValidationError

from seatrial.agents.langchain.arriving import Arrivals, NodesAt
from seatrial.agents.langchain.calls import AskedCall, AskedCalls, Told
from seatrial.agents.langchain.nesting import WhoseRuns
from seatrial.agents.langchain.pacing import ModelPacing
from seatrial.agents.langchain.reading import (
    asked_model,
    command_in,
    declared_target,
    handed_over,
    interrupt_ids,
    is_langgraph,
    message_of,
    model_name,
    offered_tools,
    says_the_same,
    takes_arguments,
    target_of,
    told_by,
    usage_of,
)
from seatrial.core.trace import CallState, Observable
from seatrial.environment.observed import ObservedCall, observing
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "LangChainRecorder"]

OBSERVES = frozenset(
    {
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
        Observable.RETRIEVAL,
    }
)


@dataclass
class _Run:
    """A tool call as it runs."""

    call: AskedCall
    observed: ObservedCall
    agent: str | None
    target: str | None
    """Where it hands over to by its name or declaration; None = a tool like any other, `""` = not known yet."""
    before: ObservedCall | None
    """What was observed around it."""
    namespace: str
    """Where in the graph it runs, as LangGraph writes it."""


class LangChainRecorder(WhoseRuns):
    """The callback handler of one trial."""

    run_inline = True  # under asyncio too: events in the order in which they happen
    raise_error = True  # a swallowed error would be a hole in the trace

    def __init__(
        self,
        trial: TrialEnvironment,
        *,
        agents: Iterable[str] = (),
        tools: Mapping[str, Any] | None = None,
        answers_by_tool: bool = False,
        nodes_at: NodesAt | None = None,
    ) -> None:
        """`agents` are nodes that are agents of their own, `tools` the graph's tools by name; with `answers_by_tool`
        a call that names none of them is the model's structured answer, and no tool call. `nodes_at` knows where a
        command can go; without it a hand-off is completed only when its node begins to run."""
        super().__init__(trial, agents)
        self.calls = AskedCalls()
        self.pacing = ModelPacing(trial.pace)
        self._tools = {} if tools is None else tools
        self._answers_by_tool = answers_by_tool
        self._arrivals = Arrivals(trial.recorder, nodes_at)
        self._models: dict[UUID, tuple[int, str | None, frozenset[str] | None]] = {}
        self._running: dict[UUID, _Run] = {}
        self._queries: dict[UUID, tuple[str, str | None]] = {}
        self._interrupts: dict[str, AskedCall] = {}
        self._lock = threading.RLock()

    @property
    def handlers(self) -> list[BaseCallbackHandler]:
        """What LangChain is to call: itself, after what holds calls back where the project limits any model."""
        limited = self.trial.pace.rates.spec.models
        return [self.pacing, self] if limited else [self]

    def on_chain_start(self, *args: Any, metadata: dict[str, Any] | None = None, **kwargs: Any) -> None:
        self._arrivals.begins((metadata or {}).get("langgraph_node"))
        super().on_chain_start(*args, metadata=metadata, **kwargs)

    # --- models ------------------------------------------------------------------------------------------------------

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[Any]],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        for conversation in messages:
            self.settle(conversation)
        agent = self._agent(metadata or {}, parent_run_id)
        self._begin_model_call(run_id, agent, metadata or {}, kwargs.get("invocation_params") or {})

    def on_llm_start(
        self,
        serialized: dict[str, Any],
        prompts: list[str],
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        agent = self._agent(metadata or {}, parent_run_id)
        self._begin_model_call(run_id, agent, metadata or {}, kwargs.get("invocation_params") or {})

    def _begin_model_call(
        self, run_id: UUID, agent: str | None, metadata: Mapping[str, Any], parameters: Mapping[str, Any]
    ) -> None:
        self.trial.recorder.observe(*OBSERVES)
        model = asked_model(metadata, parameters)
        self.pacing.wait(run_id, model)
        number = self.trial.recorder.begin_model_call(model, agent=agent)
        self._models[run_id] = number, agent, offered_tools(parameters)

    def on_llm_end(self, response: Any, *, run_id: UUID, **kwargs: Any) -> None:
        number, agent, offered = self._models.pop(run_id)
        message = message_of(response)
        text = str(getattr(message, "text", ""))
        self.trial.recorder.end_model_call(number, usage=usage_of(message), model=model_name(response, message))
        if text:
            self.trial.recorder.message("assistant", text, agent=agent)
        for call in getattr(message, "tool_calls", None) or ():
            self._asked(call, number, agent, offered)
        for call in getattr(message, "invalid_tool_calls", None) or ():
            self._asked_invalid(call, number, agent)

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        known = self._models.pop(run_id, None)
        if known is not None:
            self.trial.recorder.end_model_call(known[0], error=error)

    def _asked(self, call: Mapping[str, Any], step: int, agent: str | None, offered: frozenset[str] | None) -> None:
        arguments = call.get("args") or {}
        asked = AskedCall(
            name=call["name"],
            arguments=arguments,
            call_id=call.get("id"),
            step=step,
            agent=agent,
            bound=offered is None or call["name"] in offered,
            named=frozenset(arguments),
        )
        self.calls.ask(asked)

    def _asked_invalid(self, call: Mapping[str, Any], step: int, agent: str | None) -> None:
        """Arguments that are no JSON: LangChain sets such a call apart, and nobody runs it."""
        recorder = self.trial.recorder
        name = call.get("name") or ""
        number = recorder.begin_tool_call(name, call.get("args"), call_id=call.get("id"), agent=agent, step=step)
        error = call.get("error") or "the arguments are no JSON object"
        recorder.end_tool_call(number, error=error, state=CallState.INVALID_ARGUMENTS)

    # --- tools -------------------------------------------------------------------------------------------------------

    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.trial.recorder.observe(*OBSERVES)
        name = str((serialized or {}).get("name") or kwargs.get("name") or "")
        given = {"input": input_str} if inputs is None else inputs
        call = self.calls.starting(name, given, kwargs.get("tool_call_id"))
        agent = self._agent(metadata or {}, parent_run_id)
        target = declared_target(name, metadata or {})
        if target is None:
            self._begin_tool_call(call, name, call.as_run(given), agent)
        call.interrupted = call.settled = False
        number = call.number if target is None else None
        edited = call.edited is not None
        observed = ObservedCall(name, number, call.call_id, call.as_run(given), edited=edited)
        namespace = str((metadata or {}).get("langgraph_checkpoint_ns") or "")
        run = _Run(call, observed, agent, target, observing.get(), namespace)
        observing.set(observed)
        self._running[run_id] = run

    def _begin_tool_call(self, call: AskedCall, name: str, arguments: Mapping[str, Any], agent: str | None) -> None:
        recorder = self.trial.recorder
        if call.interrupted and call.number is not None:
            recorder.withdraw(call.number)
        call.number = recorder.begin_tool_call(
            name,
            arguments,
            call_id=call.call_id,
            agent=agent,
            asked=call.arguments,
            step=call.step,
            stand_in=self.trial.has_stand_in(name),
        )
        if call.tries > 1:
            recorder.amend(call.number, attempt=call.tries)

    def on_tool_end(self, output: Any, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._left(run_id)
        run.call.settled = True
        command = command_in(output)
        target = target_of(command, run.target)
        if target is not None:
            arrives = self._arrivals.foreseen(command, run.namespace)
            number = self._hand_over(run.call, run.agent, target, run.observed.arguments, completed=arrives is True)
            if arrives is None:
                self._arrivals.await_node(target, number)
            return
        self._end_with(run, output if command is None else told_by(command, run.call.call_id))

    def _end_with(self, run: _Run, message: Any) -> None:
        content = getattr(message, "content", message)
        if getattr(message, "status", None) == "error":
            self._end(run, error=content, told=content, state=self._state_of_failure(run, None))
        else:
            run.call.result = result = run.observed.result_or(content)
            self._end(run, result=result, told=None if says_the_same(content, result) else content)

    def on_tool_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        run = self._left(run_id)
        call = run.call
        if is_langgraph(error, "GraphInterrupt"):
            call.interrupted = True
            self._interrupts.update(dict.fromkeys(interrupt_ids(error), call))
            return
        call.settled = True
        if run.target is not None:
            self._hand_over(call, run.agent, run.target or call.name, run.observed.arguments, completed=False)
        elif is_langgraph(error, "GraphBubbleUp"):  # control flow of the graph, no failure
            self._end(run, result=None)
        else:
            self._end(run, error=error, state=self._state_of_failure(run, error))

    def _state_of_failure(self, run: _Run, error: BaseException | None) -> CallState:
        if isinstance(error, ValidationError) and not run.observed.entered:
            return CallState.INVALID_ARGUMENTS
        if self._stopped(run.call):
            return CallState.REFUSED
        return CallState.FAILED

    def _end(self, run: _Run, **fields: Any) -> None:
        if run.call.number is not None:
            self.trial.recorder.end_tool_call(run.call.number, **fields)

    def _left(self, run_id: UUID) -> _Run:
        run = self._running.pop(run_id)
        observing.set(run.before)
        return run

    def _stopped(self, call: AskedCall) -> bool:
        return call.unanswered or self.trial.stopped(call.name, call.arguments, call.call_id)

    def interrupted_by(self, interrupt_id: str) -> AskedCall | None:
        """The call whose body asked this interrupt's question."""
        return self._interrupts.get(interrupt_id)

    # --- hand-offs ---------------------------------------------------------------------------------------------------

    def _hand_over(
        self,
        call: AskedCall,
        agent: str | None,
        target: str,
        arguments: Mapping[str, Any],
        *,
        completed: bool = True,
    ) -> int:
        recorder = self.trial.recorder
        if call.number is not None:  # it looked like a tool call until it answered
            recorder.withdraw(call.number)
        reason, handed = handed_over(arguments)
        visible = bool(arguments) or takes_arguments(self._tools.get(call.name))
        context = handed if visible else None
        call.settled, call.number = True, None
        return recorder.handoff(
            agent or "agent", target, reason=reason, context=context, completed=completed, step=call.step
        )

    # --- retrieval ---------------------------------------------------------------------------------------------------

    def on_retriever_start(
        self,
        serialized: dict[str, Any],
        query: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        metadata: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self._queries[run_id] = query, self._agent(metadata or {}, parent_run_id)

    def on_retriever_end(self, documents: Sequence[Any], *, run_id: UUID, **kwargs: Any) -> None:
        query, agent = self._queries.pop(run_id)
        contexts = [getattr(document, "page_content", document) for document in documents]
        self.trial.recorder.retrieval(query, contexts, agent=agent)

    # --- what nobody announced ---------------------------------------------------------------------------------------

    def settle(self, messages: Iterable[Any]) -> None:
        """Learn from a conversation what became of calls, and what the model was told of those on record."""
        with self._lock:
            for call, told in self.calls.told(messages):
                if call.settled:
                    self._add_told(call, told)
                elif not call.interrupted or self._stopped(call):
                    self._settle(call, told)

    def _add_told(self, call: AskedCall, told: Told) -> None:
        if call.number is not None and not says_the_same(told.content, call.result):
            self.trial.recorder.tell(call.number, told.content)

    def _settle(self, call: AskedCall, told: Told) -> None:
        if self._is_unknown(call, told):
            self._settle_as(call, CallState.UNKNOWN_TOOL, error=told.content)
        elif self._is_answer(call):
            call.settled = True
        elif self._stopped(call):
            self._settle_as(call, CallState.REFUSED, error=told.content)
        elif told.failed:
            self._settle_as(call, CallState.FAILED, error=told.content)
        else:
            self._settle_as(call, CallState.EXECUTED, result=told.content)

    def _is_answer(self, call: AskedCall) -> bool:
        return self._answers_by_tool and call.bound and call.name not in self._tools

    def _is_unknown(self, call: AskedCall, told: Told) -> bool:
        if call.name in self._tools:
            return False
        refused = told.failed and bool(self._tools) and not self._answers_by_tool
        return refused or not call.bound or "is not a valid tool" in str(told.content)

    def _settle_as(self, call: AskedCall, state: CallState, *, error: Any = None, result: Any = None) -> None:
        """The model was told of it."""
        self._put_on_record(call, state, error=error, result=result, told=error or result)

    def _put_on_record(
        self, call: AskedCall, state: CallState, *, error: Any = None, result: Any = None, told: Any = None
    ) -> None:
        call.settled = True
        target = declared_target(call.name, {})
        if target is not None:
            completed = state is CallState.EXECUTED
            self._hand_over(call, call.agent, target or call.name, call.arguments, completed=completed)
        elif not self._claimed(call, told):
            recorder = self.trial.recorder
            if call.number is None:
                call.number = recorder.begin_tool_call(
                    call.name, call.arguments, call_id=call.call_id, agent=call.agent, step=call.step
                )
            recorder.end_tool_call(call.number, result=result, error=error, state=state, told=told)

    def _claimed(self, call: AskedCall, told: Any) -> bool:
        """Whether the user's code ran the call through `trial.tools`: then it is on record, and now it is known who
        asked for it."""
        recorder = self.trial.recorder
        number = recorder.call_without_id(call.name, call.arguments, after=call.step or 0)
        if call.number is not None or number is None:
            return False
        call.number = number
        recorder.amend(number, call_id=call.call_id, step=call.step)
        if told is not None:
            recorder.tell(number, told)
        return True

    def close(self, messages: Iterable[Any] = ()) -> None:
        """The turn is over: nothing that is still open will run."""
        self.settle(messages)
        with self._lock:
            for call in self.calls.open():
                if self._is_answer(call):
                    call.settled = True
                elif self._stopped(call):
                    self._put_on_record(call, CallState.REFUSED, error="not approved")
                elif call.number is None:
                    self._put_on_record(call, CallState.UNKNOWN, error="asked for, but it never ran")
