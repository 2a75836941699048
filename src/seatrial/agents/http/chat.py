"""Chat endpoints in the manner of OpenAI (`.../chat/completions`), as agents.

The messages are kept over the turns of a trial. The agent's `config` is the rest of the request: model, temperature,
tools; its `messages` come first. Where the model asks for tools, the trial answers: by the fixture's stand-ins, with
its faults; a tool that nobody answers is unknown, and the model is told. Each request is one model call.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Mapping
from typing import Any

from seatrial.agents.http.client import Response, ServiceError
from seatrial.agents.remote import asked_handoff
from seatrial.core.encoding import dumps, to_json
from seatrial.core.trace import CallState, Observable, Usage
from seatrial.environment.failure import error_text
from seatrial.environment.recorder import is_handoff_tool, read_arguments
from seatrial.environment.tools import UnknownTool
from seatrial.environment.trial import TrialEnvironment

__all__ = ["OBSERVES", "Chat", "Completion"]

OBSERVES = frozenset(
    {
        Observable.OUTPUT,
        Observable.MESSAGES,
        Observable.MODEL_CALLS,
        Observable.USAGE,
        Observable.TOOL_CALLS,
        Observable.HANDOFFS,
        Observable.HANDOFF_CONTEXT,
    }
)
Message = dict[str, Any]


class Chat:
    """One conversation with a chat endpoint."""

    def __init__(self, trial: TrialEnvironment, config: Mapping[str, Any], ask: Any) -> None:
        """`ask(body)` is awaited and gives the endpoint's Response."""
        self._trial = trial
        self._ask = ask
        self._config = {key: value for key, value in config.items() if key != "messages"}
        self._ids: Counter[str] = Counter()
        """How often the endpoint gave each call id."""
        self._messages: list[Message] = [dict(message) for message in config.get("messages", ())]

    async def answer(self, content: Any) -> str:
        """What the model says to the user in the end."""
        self._messages += content if isinstance(content, list) else [{"role": "user", "content": content}]
        while True:
            message, step = await self._completion()
            self._messages.append(message)
            calls = message.get("tool_calls")
            if not calls:
                said = str(message.get("content") or message.get("refusal") or "")
                self._trial.recorder.message("assistant", said, agent=self._agent)
                return said
            self._messages += await asyncio.gather(*(self._called(call, step) for call in calls))

    @property
    def _agent(self) -> str | None:
        name = self._trial.recorder.active_agent or self._trial.identity.get("agent")
        return None if name is None else str(name)

    def _body(self) -> dict[str, Any]:
        body = {**self._config, "messages": self._messages}
        offered = [name for name in self._trial.tools if self._trial.has_stand_in(name)]
        if offered and "tools" not in body:  # their names are all that is known of them
            body["tools"] = [{"type": "function", "function": {"name": name, "parameters": _ANY}} for name in offered]
        if body.get("stream"):
            body.setdefault("stream_options", {"include_usage": True})
        return body

    async def _completion(self) -> tuple[Message, int]:
        recorder, model = self._trial.recorder, self._config.get("model")
        await self._trial.pace.ready("model", model)
        number = recorder.begin_model_call(model, agent=self._agent)
        try:
            completion = Completion.of(await self._ask(self._body()))
        except Exception as error:
            recorder.end_model_call(number, error=error)
            raise
        recorder.end_model_call(number, usage=completion.usage, model=completion.model)
        for name, details in completion.withheld.items():
            recorder.guardrail(name, False, details, agent=self._agent)
        return completion.message, number

    async def _called(self, call: Any, step: int) -> Message:
        """One tool call, answered by the trial; the message that tells the model."""
        name, given, call_id = _parts(call)
        if is_handoff_tool(name):
            return self._handed_over(name, given, call_id, step)
        arguments, malformed = read_arguments(given)
        recorder = self._trial.recorder
        number = recorder.begin_tool_call(
            name,
            given,
            call_id=self._own_id(call_id),
            agent=self._agent,
            step=step,
            stand_in=self._trial.has_stand_in(name),
        )
        try:
            result = await self._run(name, None if malformed else arguments, number)
        except Exception as error:  # noqa: BLE001  a stand-in or fault may raise anything: the model is told
            state = CallState.INVALID_ARGUMENTS if malformed else None
            state = CallState.UNKNOWN_TOOL if isinstance(error, UnknownTool) else state
            told = error_text(error)
            recorder.end_tool_call(number, error=error, state=state, told=told)
        else:
            told = result if isinstance(result, str) else dumps(to_json(result))
            recorder.end_tool_call(number, result=result, told=told)
        return {"role": "tool", "tool_call_id": call_id, "content": told}

    def _own_id(self, call_id: str) -> str | None:
        """The id of a call in the trace: endpoints give the same one to several calls, or none."""
        self._ids[call_id] += 1
        times = self._ids[call_id]
        return None if not call_id else call_id if times == 1 else f"{call_id}#{times}"

    def _handed_over(self, name: str, arguments: Any, call_id: str, step: int) -> Message:
        """A hand-off, as the model asks for it; the endpoint goes on with the conversation."""
        asked, malformed = asked_handoff(name, arguments, self._agent), read_arguments(arguments)[1]
        self._trial.recorder.handoff(
            asked.source,
            asked.target,
            reason=asked.reason,
            context=asked.context,
            completed=not malformed,
            step=step,
        )
        told = "ValueError: the arguments are no JSON object" if malformed else f"Handed over to {asked.target}."
        return {"role": "tool", "tool_call_id": call_id, "content": told}

    async def _run(self, name: str, arguments: Any, number: int) -> Any:
        if arguments is None:
            raise ValueError("the arguments are no JSON object")

        async def nobody(**_: Any) -> Any:  # async: faults that wait then hold up nobody else
            raise UnknownTool(f"there is no tool named {name!r}")

        result = self._trial.run_tool(name, arguments, nobody, number=number)
        return await result if inspect.isawaitable(result) else result


_ANY = {"type": "object", "additionalProperties": True}


def _parts(call: Any) -> tuple[str, Any, str]:
    function = call.get("function") if isinstance(call, Mapping) else None
    name = function.get("name") if isinstance(function, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(name, str):
        raise ServiceError(f"the completion asks for a tool without a name: {call!r}")
    return name, function.get("arguments"), str(call.get("id") or "")


class Completion:
    """What one request gave: a message, the model that wrote it, its usage, and why it says less than it might."""

    def __init__(self, message: Message, model: str | None, usage: Usage | None, reason: str | None) -> None:
        self.message = message
        self.model = model
        self.usage = usage
        self.withheld: dict[str, Any] = {}
        """`length`, `content_filter` and `refusal`, with details."""
        if reason in _CUT_SHORT:
            self.withheld[reason] = {"finish_reason": reason}
        if message.get("refusal"):
            self.withheld["refusal"] = message["refusal"]

    @classmethod
    def of(cls, response: Response) -> Completion:
        """From a whole response, or the chunks of a stream. ServiceError when it is neither, or broke off."""
        parts = response.parts
        for part in parts:
            if isinstance(part, Mapping) and part.get("error"):
                raise ServiceError(f"the endpoint answered with an error: {_error_in(part['error'])}")
        message: Message = {"role": "assistant", "content": None}
        choices = [choice for part in parts for choice in _choices(part)[:1]]
        for choice in choices:
            _add(message, choice.get("message") or choice.get("delta") or {})
        if not choices:
            raise ServiceError(f"the response is no chat completion: {dumps(to_json(list(parts)))[:200]}")
        reason = next((str(choice["finish_reason"]) for choice in choices[::-1] if choice.get("finish_reason")), None)
        _check_whole(message, reason, done=response.done)
        objects = [part for part in parts if isinstance(part, Mapping)]
        model = next((str(part["model"]) for part in objects if part.get("model")), None)
        used = [part["usage"] for part in objects if isinstance(part.get("usage"), Mapping)]
        return cls(message, model, _usage(used[-1]) if used else None, reason)


_CUT_SHORT = ("length", "content_filter")
_BROKEN_OFF = ("error", "abort")
"""What servers say when they stopped writing for a reason of their own."""


def _check_whole(message: Message, reason: str | None, *, done: bool) -> None:
    """ServiceError for a completion that broke off, and for tool calls that were cut short: they cannot be run."""
    if reason is None and not done:
        raise ServiceError("the stream ended without finish_reason and without [DONE]: it broke off")
    if reason in _BROKEN_OFF:
        raise ServiceError(f"the completion broke off: its finish_reason is {reason!r}")
    if reason in _CUT_SHORT and message.get("tool_calls"):
        raise ServiceError(f"the completion ended within its tool calls: its finish_reason is {reason!r}")


def _error_in(error: Any) -> Any:
    return error.get("message", error) if isinstance(error, Mapping) else error


def _choices(part: Any) -> list[Mapping[str, Any]]:
    choices = part.get("choices") if isinstance(part, Mapping) else None
    if part is not None and not isinstance(part, Mapping):
        raise ServiceError(f"the response is no chat completion: {part!r}")
    return [choice for choice in choices or () if isinstance(choice, Mapping)]


def _add(message: Message, delta: Mapping[str, Any]) -> None:
    """Put one more part of a message to it; a whole message is its only part."""
    if isinstance(delta.get("content"), str):
        message["content"] = (message["content"] or "") + delta["content"]
    elif isinstance(delta.get("content"), list):
        texts = [str(part.get("text", "")) for part in delta["content"] if isinstance(part, Mapping)]
        message["content"] = (message["content"] or "") + "".join(texts)
    if isinstance(delta.get("refusal"), str):
        message["refusal"] = message.get("refusal", "") + delta["refusal"]
    for place, part in enumerate(delta.get("tool_calls") or ()):
        _add_call(message.setdefault("tool_calls", []), part, part.get("index", place))


def _add_call(calls: list[Message], part: Mapping[str, Any], index: int) -> None:
    while len(calls) <= index:
        calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    call, function = calls[index], part.get("function") or {}
    call["id"] = part.get("id") or call["id"]
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""


def _usage(given: Mapping[str, Any]) -> Usage:
    """Tokens as chat completions report them; anything else than a whole number is unknown."""
    inputs, outputs = given.get("prompt_tokens_details") or {}, given.get("completion_tokens_details") or {}
    found = {
        "input": given.get("prompt_tokens"),
        "output": given.get("completion_tokens"),
        "cached": inputs.get("cached_tokens"),
        "reasoning": outputs.get("reasoning_tokens"),
    }
    return Usage(**{name: value if type(value) is int and value >= 0 else None for name, value in found.items()})
