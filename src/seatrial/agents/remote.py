"""What an agent outside this process tells of itself, message by message, in the trial's record.

The messages are JSON objects with a `type`; `docs/adapters/command.md` lists them. Most only report. With `ask` the
agent lets the trial decide: whether a model may be called now, and what a tool gives (its stand-in, a fault, or
`run`: the agent's own body, whose result comes back through the trial). An approval is always answered.

Who carries the messages, lines of a process or requests of a service, is the adapter's business: `take` gets each one,
`send` is called with every reply, which names the `id` of what it answers.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.agents.messages import PROTOCOL, Message, MessageError, check_usage_keys, checked
from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import to_json
from seatrial.core.ports import Answer
from seatrial.core.trace import CallState, Observable, StopReason
from seatrial.environment import handing_over
from seatrial.environment.failure import error_text
from seatrial.environment.recorder import is_handoff_tool, read_arguments
from seatrial.environment.reports import check_handoff, check_tool_call, figure, usage_of
from seatrial.environment.tools import UnknownTool
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import did_you_mean

__all__ = ["OWN_LIMIT", "RemoteEvents", "RemoteToolError", "asked_handoff"]

_WAYS_TO_STOP = (StopReason.ANSWERED, StopReason.MAX_STEPS, StopReason.WAITING_APPROVAL)


OWN_LIMIT = "the {} stopped by a limit of its own"
"""Why a turn ended that an agent outside ends as `max_steps`."""
_ENDS = ("answer", "error")
"""What ends a turn: nothing to record."""
_KNOWN_AT_ITS_END = ("usage", "cost_usd", "latency_ms", "error")
"""What is said of a model call that has ended."""


class RemoteToolError(Exception):
    """The agent's own tool failed, as the agent tells it: its text is all that is known."""


@dataclass
class _Call:
    """A tool call that has begun."""

    name: str
    arguments: Any
    call_id: str | None
    number: int = 0
    """Event number."""
    hands_over: bool = False
    """Whether it is a hand-off, which is no tool call."""
    result: asyncio.Future[Any] | None = None
    """What the agent's own body gives, where the trial has asked for it."""


class RemoteEvents:
    """The messages of one agent in one trial. Belongs to the loop that runs the trial."""

    def __init__(self, trial: TrialEnvironment, send: Callable[[dict[str, Any]], None]) -> None:
        self._trial = trial
        self._recorder = trial.recorder
        self._send = send
        self._calls: dict[str, _Call] = {}
        self._used: set[str] = set()
        """Ids of all tool calls so far."""
        self._models: dict[str, int] = {}
        self._steps: dict[str | None, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def take(self, message: Message) -> bool:
        """Record one message, and reply where it asks; whether a reply has come or will.

        Raises MessageError when it cannot be, StepLimitReached and CostLimitReached when the trial has to end.
        """
        message = checked(message)
        if message["type"] in _ENDS:
            raise MessageError(f"{message['type']} stands in the response of a service itself, not among its messages")
        try:
            return bool(getattr(self, f"_take_{message['type']}")(message))
        except KeyError as error:
            raise MessageError(f"{message['type']} needs {error}") from error
        except (TypeError, ValueError) as error:
            raise MessageError(str(error)) from error

    def answer(self, message: Message) -> Answer:
        """The turn's answer. MessageError when it holds something else than it should."""
        stop, outcome = message.get("stop_reason") or StopReason.ANSWERED.value, message.get("outcome")
        outcome = {} if outcome is None else outcome
        if stop not in _WAYS_TO_STOP:
            raise MessageError(f"answer.stop_reason cannot be {stop!r}; {did_you_mean(stop, list(_WAYS_TO_STOP))}")
        if not isinstance(outcome, Mapping):
            raise MessageError(f"answer.outcome must be an object, not {type(outcome).__name__}")
        try:
            latency = figure(message.get("latency_ms"), "answer.latency_ms")
            cost = figure(message.get("cost_usd"), "answer.cost_usd")
        except (TypeError, ValueError) as error:
            raise MessageError(str(error)) from error
        if outcome:
            self._recorder.observe(Observable.OUTCOME)
        own_limit = OWN_LIMIT.format("program") if stop == StopReason.MAX_STEPS else ""
        return Answer(message.get("output"), StopReason(stop), outcome, latency, cost, own_limit)

    def close(self) -> None:
        """Nobody waits for replies any more."""
        for task in self._tasks:
            task.cancel()

    def _agent(self, message: Message) -> str | None:
        named = message.get("agent") or self._recorder.active_agent
        return str(named) if named else self._trial.identity.get("agent")

    def _later(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- what only reports -------------------------------------------------------------------------------------------

    def _take_hello(self, message: Message) -> None:
        if message.get("protocol") not in (None, PROTOCOL):
            raise MessageError(f"the agent speaks protocol {message['protocol']!r}, this version {PROTOCOL}")
        known = [one.value for one in Observable]
        for name in message.get("observes") or ():
            if name not in known:
                raise MessageError(f"hello.observes cannot hold {name!r}; {did_you_mean(str(name), known)}")
            self._recorder.observe(Observable(name))

    def _take_message(self, message: Message) -> None:
        self._recorder.observe(Observable.MESSAGES)
        self._recorder.message(message.get("role") or "assistant", message["content"], agent=self._agent(message))

    def _take_handoff(self, message: Message) -> None:
        source = message.get("source") or self._agent(message) or "agent"
        event = HandoffEvent(source, message["target"], message.get("reason"), message.get("context"))
        check_handoff(event)
        self._handoff(event, completed=message.get("completed") is not False)

    def _handoff(self, event: HandoffEvent, *, completed: bool) -> int:
        self._recorder.observe(Observable.HANDOFFS)
        if event.context is not None:
            self._recorder.observe(Observable.HANDOFF_CONTEXT)
        step = self._steps.get(event.source)
        return self._recorder.handoff(
            event.source, event.target, reason=event.reason, context=event.context, completed=completed, step=step
        )

    def _take_retrieval(self, message: Message) -> None:
        self._recorder.observe(Observable.RETRIEVAL)
        contexts = message["contexts"]
        if not isinstance(contexts, list):
            raise MessageError(f"retrieval.contexts must be a list, not {type(contexts).__name__}")
        self._recorder.retrieval(message.get("query"), contexts, agent=self._agent(message))

    def _take_guardrail(self, message: Message) -> None:
        name, passed = str(message["name"]), message["passed"]
        self._recorder.guardrail(name, bool(passed), message.get("details"), agent=self._agent(message))

    def _take_safety(self, message: Message) -> None:
        self._recorder.observe(Observable.SAFETY)
        agent = self._agent(message)
        self._recorder.safety(message["event"], message.get("evidence"), source="agent", agent=agent)

    # --- models ------------------------------------------------------------------------------------------------------

    def _take_model_call(self, message: Message) -> bool:
        self._recorder.observe(Observable.MODEL_CALLS)
        agent = self._agent(message)
        if message.get("id") in self._models:
            raise MessageError(f"model_call.id {message['id']!r} is of a call that waits for its model_result")
        known = [name for name in _KNOWN_AT_ITS_END if message.get(name) is not None]
        if message.get("ask") and known:
            raise MessageError(f"model_call.{known[0]} is known when the call has ended; say it in its model_result")
        number = self._recorder.begin_model_call(message.get("model"), agent=agent)
        self._steps[agent] = number
        if message.get("ask"):
            self._models[message["id"]] = number
            self._later(self._allow_model(message, number))
        elif message.get("id") is not None and not known:
            self._models[message["id"]] = number
        else:
            self._end_model(number, message, latency_known=True)
        return bool(message.get("ask"))

    async def _allow_model(self, message: Message, number: int) -> None:
        """Say when the model may be called, where its rate is limited: now, else when its turn comes."""
        await self._trial.pace.ready("model", message.get("model"))
        self._recorder.amend(number, at_ms=self._recorder.elapsed_ms())
        self._send({"type": "go", "id": message["id"]})

    def _take_model_result(self, message: Message) -> None:
        if message["id"] not in self._models:
            raise MessageError(f"model_result.id {message['id']!r} is of no model_call that waits for one")
        self._end_model(self._models.pop(message["id"]), message, latency_known=False)

    def _end_model(self, number: int, message: Message, *, latency_known: bool) -> None:
        given = message.get("usage")
        if given is not None and not isinstance(given, Mapping):
            raise MessageError(f"{message['type']}.usage must be an object, not {type(given).__name__}")
        check_usage_keys(given or {}, f"{message['type']}.usage")
        cost, latency = (figure(message.get(name), f"{message['type']}.{name}") for name in ("cost_usd", "latency_ms"))
        call = ModelCall(message.get("model"), **(given or {}))
        usage = usage_of(call) if given else None
        if usage is not None:
            self._recorder.observe(Observable.USAGE)
        self._recorder.end_model_call(
            number,
            usage=usage,
            model=call.model,
            cost_usd=cost,
            latency_ms=latency,
            error=message.get("error"),
        )
        if latency is None and latency_known:  # told afterwards: what passed since is nobody's latency
            self._recorder.amend(number, latency_ms=None)

    # --- tools -------------------------------------------------------------------------------------------------------

    def _take_tool_call(self, message: Message) -> bool:
        name, call_id, agent = message["name"], message.get("id"), self._agent(message)
        reported = {key: message[key] for key in ("result", "error", "state") if key in message}
        check_tool_call(ToolCall(name, call_id=call_id, agent=agent, **reported))
        self._check_new(message)
        call = self._begun(message, agent)
        if message.get("ask"):
            self._calls[message["id"]] = call
            self._later(self._ask(message["id"], call, own=message.get("own") is not False))
        elif call_id is not None and not reported:
            self._calls[call_id] = call
        elif call.hands_over and not reported:  # the call is all that is said: it took place unless it was denied
            self._end_handoff(call, completed=not self._stopped(call))
        else:
            self._end(call, message)
            if not call.hands_over:
                self._recorder.amend(call.number, duration_ms=None)
        return bool(message.get("ask"))

    def _check_new(self, message: Message) -> None:
        call_id = message.get("id")
        if call_id is None:
            return
        if call_id in self._used:
            raise MessageError(f"tool_call.id {call_id!r} is of an earlier call; each call of a trial has its own")
        self._used.add(call_id)

    def _begun(self, message: Message, agent: str | None) -> _Call:
        """The call, on record. A hand-off counts once it has ended well."""
        call = _Call(message["name"], message.get("arguments"), message.get("id"))
        call.hands_over = is_handoff_tool(call.name)
        if call.hands_over:
            call.number = self._handoff(asked_handoff(call.name, call.arguments, agent), completed=False)
        else:
            call.number = self._begin(message, call, agent)
        return call

    def _begin(self, message: Message, call: _Call, agent: str | None) -> int:
        self._recorder.observe(Observable.TOOL_CALLS)
        return self._recorder.begin_tool_call(
            call.name,
            call.arguments,
            call_id=call.call_id,
            agent=agent,
            asked=message.get("asked"),
            step=self._steps.get(agent),
            stand_in=bool(message.get("ask")) and self._trial.has_stand_in(call.name),
        )

    async def _ask(self, key: str, call: _Call, *, own: bool) -> None:
        """Let the trial answer a call: by its stand-in, a fault, or the agent's own body between its faults."""
        arguments, malformed = read_arguments(call.arguments)
        state: CallState | None = None
        result: Any = None
        error: str | None = None
        try:
            result = await self._answered(key, call, None if malformed else arguments, own=own)
        except Exception as raised:  # noqa: BLE001  a stand-in, a fault or the agent's own tool: the agent is told
            error = str(raised) if isinstance(raised, RemoteToolError) else error_text(raised)
            state = self._state_of(raised, call, malformed=malformed)
        self._calls.pop(key, None)
        if call.hands_over:
            self._end_handoff(call, completed=error is None)
        else:
            self._recorder.end_tool_call(call.number, result=result, error=error, state=state)
        said = {"result": to_json(result)} if error is None else {"error": error}
        self._send({"type": "tool_result", "id": key, **said})

    async def _answered(self, key: str, call: _Call, arguments: Any, *, own: bool) -> Any:
        async def body(**_: Any) -> Any:  # async: faults that wait then hold up nobody else
            if not own:
                raise UnknownTool(f"there is no tool named {call.name!r}")
            call.result = asyncio.get_running_loop().create_future()
            self._send({"type": "run", "id": key})
            return await call.result

        if arguments is None:
            raise RemoteToolError("the arguments are no JSON object")
        if call.hands_over:
            return await body()
        result = self._trial.run_tool(call.name, arguments, body, number=call.number)
        return await result if inspect.isawaitable(result) else result

    def _state_of(self, error: Exception, call: _Call, *, malformed: bool) -> CallState | None:
        if malformed:
            return CallState.INVALID_ARGUMENTS
        if isinstance(error, UnknownTool):
            return CallState.UNKNOWN_TOOL
        return CallState.REFUSED if self._stopped(call) else None

    def _stopped(self, call: _Call) -> bool:
        return self._trial.stopped(call.name, call.arguments, call.call_id)

    def _take_tool_result(self, message: Message) -> bool:
        call = self._calls.get(message["id"])
        if call is None:
            raise MessageError(f"tool_result.id {message['id']!r} is of no tool_call that waits for one")
        if call.result is not None and not call.result.done():
            _hand_back(call.result, message)
            return True
        self._end(call, message)
        del self._calls[message["id"]]
        return False

    def _end(self, call: _Call, message: Message) -> None:
        given = ToolCall(call.name, **{key: message.get(key) for key in ("result", "error", "state")})
        state = check_tool_call(given)
        if call.hands_over:
            self._end_handoff(call, completed=given.error is None and state in (None, CallState.EXECUTED))
            return
        if state is None and given.error is not None and self._stopped(call):
            state = CallState.REFUSED
        told = message.get("told")
        self._recorder.end_tool_call(call.number, result=given.result, error=given.error, state=state, told=told)

    def _end_handoff(self, call: _Call, *, completed: bool) -> None:
        """One that failed, was refused or never ends stays what it was when it began: not completed."""
        if completed:
            self._recorder.settle_handoff(call.number, completed=True)

    # --- approvals ---------------------------------------------------------------------------------------------------

    def _take_approval(self, message: Message) -> bool:
        answer = self._trial.approve(
            message["action"], message.get("arguments"), call_id=message.get("call"), agent=self._agent(message)
        )
        self._send(
            {
                "type": "approval",
                "id": message["id"],
                "decision": answer.decision,
                "arguments": to_json(answer.arguments),
                "approver": answer.approver,
            }
        )
        return True


def _hand_back(waiting: asyncio.Future[Any], message: Message) -> None:
    if message.get("error") is not None:
        waiting.set_exception(RemoteToolError(str(message["error"])))
    else:
        waiting.set_result(message.get("result"))


def asked_handoff(name: str, arguments: Any, agent: str | None) -> HandoffEvent:
    """The hand-off that a call of a hand-off tool asks for, as an event."""
    asked = handing_over.asked_handoff(name, arguments)
    return HandoffEvent(agent or "agent", asked.target, asked.reason, asked.context or None)
