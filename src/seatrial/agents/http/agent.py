"""The adapter for services.

In a trial:
- Each turn is a POST; the response, JSON or a stream of events, is the answer and whatever else `output:` finds in it.
- A trial has a conversation id of its own, sent where `input:` or `headers:` say so.
- A service may reach its trial at `$trial.callback` while it answers, with the messages of the command protocol.
- Where a response asks for approvals, they are answered and the request is sent again with the decisions.
- A URL that ends with `/chat/completions` is an OpenAI-compatible endpoint (`chat`), unless `input:` or `output:` say
  otherwise.
- A status that is not 2xx, a response that cannot be read and a connection that cannot be made are the agent's error.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from seatrial.agents.http.callback import Callback
from seatrial.agents.http.chat import OBSERVES, Chat
from seatrial.agents.http.client import Client, Response, ServiceError
from seatrial.agents.http.mapping import Reading, Template, Wanted
from seatrial.agents.messages import MessageError, hello
from seatrial.agents.remote import OWN_LIMIT, RemoteEvents
from seatrial.agents.reported import answer_of
from seatrial.core.encoding import to_json
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason, text_of
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["HTTPAgent", "HTTPSession"]


class HTTPAgent:
    """A service under test."""

    kind = "http"
    blocking = False
    observes = frozenset({Observable.OUTPUT})
    """What every service shows; one that is mapped, or a chat endpoint, shows more."""

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """`target` is the URL. UsageError when the spec's input, output or headers make no sense."""
        spec = spec or AgentSpec()
        if not isinstance(target, str) or not target.lower().startswith(("http://", "https://")):
            raise UsageError(f"an agent of kind http is a URL (http://... or https://...), not {target!r}")
        self.url = target
        self.is_chat = target.partition("?")[0].rstrip("/").endswith("/chat/completions") and spec.output is None
        self.is_chat = self.is_chat and spec.input is None
        self.template = Template(spec.input)
        self.headers = Template(dict(spec.headers))
        self.wanted = Wanted(spec.output)
        if "approvals" in self.wanted.names and not self.template.names("approvals"):
            raise UsageError("agent output.approvals: say in `input` where the decisions go ($approvals)")
        self.observes = OBSERVES if self.is_chat else self.wanted.observes | self.observes

    @property
    def needs_callback(self) -> bool:
        """Whether a service is told where it reaches its trial."""
        return not self.is_chat and (self.template.names("trial") or self.headers.names("trial"))

    def open(self, trial: TrialEnvironment) -> HTTPSession:
        """The service in one trial."""
        trial.recorder.observe(*self.observes)
        return HTTPSession(self, trial)


class HTTPSession:
    """One conversation with a service."""

    blocking = False

    def __init__(self, agent: HTTPAgent, trial: TrialEnvironment) -> None:
        self._agent = agent
        self._trial = trial
        self._client: Client | None = None
        self._callback: Callback | None = None
        self._scope: dict[str, Any] = {"conversation": uuid.uuid4().hex, "messages": [], "approvals": None}
        self._events = RemoteEvents(trial, lambda _: None)  # what comes with the response waits for no reply
        self._chat = Chat(trial, trial.config, self._ask)

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        await self._begin(turn)
        if self._agent.is_chat:
            return Answer(await self._chat.answer(_said(turn)))
        self._scope["messages"] = [*self._scope["messages"], {"role": "user", "content": turn.message or turn.input}]
        answer = await self._answered()
        said = {"role": "assistant", "content": text_of(to_json(answer.output))}
        self._scope["messages"] = [*self._scope["messages"], said]
        return answer

    async def _begin(self, turn: TurnInput) -> None:
        if self._client is None:
            self._client = Client(self._agent.url)
            self._scope["config"] = to_json(dict(self._trial.config))
            if self._agent.needs_callback:
                self._scope["trial"] = await self._told()
        self._scope |= {"turn": turn.number, "input": to_json(turn.input), "message": turn.message, "approvals": None}

    async def _told(self) -> dict[str, Any]:
        """What the service is told of its trial."""
        self._callback = Callback(self._trial)
        told = {key: value for key, value in hello(self._trial).items() if key != "type"}
        return {**told, "callback": await self._callback.open()}

    async def _answered(self) -> Answer:
        """Ask until the service needs no more approvals; one that stays unanswered ends the turn."""
        rounds = 0
        while True:
            reading = self._agent.wanted.read(await self._ask(self._agent.template.filled(self._scope)))
            answer = self._recorded(reading)
            if not reading.approvals:
                return answer
            decisions = [self._decision(request) for request in reading.approvals]
            if any(decision["decision"] == "unanswered" for decision in decisions):
                return Answer(None, stop_reason=StopReason.WAITING_APPROVAL, outcome=answer.outcome)
            self._scope["approvals"] = decisions
            rounds += 1
            limit = self._trial.recorder.step_limit
            if limit is not None and rounds > limit:
                why = f"the service asked for approval more than {limit} times"
                return replace(answer, output=None, stop_reason=StopReason.MAX_STEPS, own_limit=why)

    def _recorded(self, reading: Reading) -> Answer:
        for event in reading.events:
            try:
                self._events.take(event)
            except MessageError as error:
                raise ServiceError(f"events of the response: {error}") from error
        run, seen = reading.run, set(self._agent.wanted.observes)
        for kind, said in ((Observable.TOOL_CALLS, run.tool_calls), (Observable.HANDOFFS, run.handoffs)):
            if said:
                seen.add(kind)
        try:
            answer = answer_of(run, self._trial.recorder, seen)
        except (TypeError, ValueError) as error:
            raise ServiceError(f"{str(error).removeprefix('AgentRun.')} (in the response)") from error
        own_limit = OWN_LIMIT.format("service") if reading.stop_reason is StopReason.MAX_STEPS else ""
        return replace(answer, stop_reason=reading.stop_reason, own_limit=own_limit)

    def _decision(self, request: Mapping[str, Any]) -> dict[str, Any]:
        action, arguments = str(request.get("action")), request.get("arguments")
        answer = self._trial.approve(action, arguments, call_id=request.get("call_id"))
        return {
            "id": request.get("id"),
            "action": action,
            "decision": answer.decision,
            "arguments": to_json(answer.arguments),
            "approver": answer.approver,
        }

    async def _ask(self, body: Any) -> Response:
        """One request; it is given up when a message to the callback ends the trial."""
        if self._client is None:
            raise RuntimeError("a request before the first turn")
        headers = {
            name: str(value) for name, value in self._agent.headers.filled(self._scope).items() if value is not None
        }
        asking = asyncio.ensure_future(self._client.post(body, headers))
        waited: list[asyncio.Future[Any]] = [asking, *([] if self._callback is None else [self._callback.failed])]
        try:
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
            for failed in waited[1:]:
                if failed.done():
                    failed.result()
            return await asking
        finally:
            asking.cancel()

    async def close(self) -> None:
        """Let go of the connection and the address."""
        if self._callback is not None:
            await self._callback.close()
        if self._client is not None:
            await self._client.close()


def _said(turn: TurnInput) -> Any:
    """What the user says, as a chat message's content; a case's own `messages` as they are."""
    if isinstance(turn.input, Mapping) and isinstance(turn.input.get("messages"), list) and not turn.message:
        return list(turn.input["messages"])
    return turn.message or text_of(to_json(turn.input))
