"""Model calls of LlamaIndex: each is begun before it happens and ended by what the provider said, once.

A language model's methods call one another (a custom model answers `achat` by `chat`, that by `complete`; a stream does
so while it is read): the outermost one is the call. What holds calls back, and stops them where the trial may make no
more, is the place that the framework has for that: a rate limiter on the model, which asks the running trial and then
the user's own limiter. A model that goes around it is on record when it has answered.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from llama_index.core.rate_limiter import BaseRateLimiter

from seatrial.agents.llamaindex.reading import model_of, text_of_response, usage_of
from seatrial.core.trace import Usage
from seatrial.environment.trial import TrialEnvironment

__all__ = ["METHODS", "Acting", "ModelCall", "acting", "begin_call"]

METHODS = frozenset(f"{way}{kind}" for way in ("", "a", "stream_", "astream_") for kind in ("chat", "complete"))


@dataclass
class Acting:
    """The agent that code here runs for."""

    agent: str | None = None
    step: int | None = None
    """Event number of its latest model call."""


acting: ContextVar[Acting | None] = ContextVar("seatrial_llamaindex_acting", default=None)
_calling: ContextVar[ModelCall | None] = ContextVar("seatrial_llamaindex_calling", default=None)


@dataclass
class ModelCall:
    """One call of a model, from its outermost method's start to its answer."""

    trial: TrialEnvironment
    span_id: str
    method: str
    llm: Any
    who: Acting
    number: int | None = None
    """Event number, once it has begun."""
    usage: Usage | None = None
    """As told while it streams."""
    returned: bool = False
    """Its method gave a stream, which is being read."""
    ended: bool = False

    @property
    def model(self) -> str | None:
        """Name of the model that is about to be called."""
        with suppress(Exception):  # a property of the user's own class
            name = self.llm.metadata.model_name
            return None if name == "unknown" else str(name)
        return None

    def begin(self) -> None:
        """One step. Raises what ends the trial where it may make no more calls."""
        if self.number is None:
            self.number = self.trial.recorder.begin_model_call(self.model, agent=self.who.agent)
            self.who.step = self.number

    def leave(self, result: Any) -> None:
        """Its method gave this: the answer, or a stream of it."""
        if inspect.isgenerator(result) or inspect.isasyncgen(result):
            self.returned = True
        else:
            self.end(result)

    def heard(self, response: Any) -> None:
        """A part of the answer."""
        self.usage = usage_of(response) or self.usage

    def end(self, response: Any) -> None:
        """The whole answer."""
        if self._over():
            return
        recorder, text = self.trial.recorder, text_of_response(response)
        self.begin()
        recorder.end_model_call(self.number or 0, usage=usage_of(response) or self.usage, model=model_of(response))
        if text:
            recorder.message("assistant", text, agent=self.who.agent)

    def drop(self, error: BaseException | None) -> None:
        """It failed; one that never began did not happen."""
        if not self._over() and self.number is not None:
            self.trial.recorder.end_model_call(self.number, error=error, usage=self.usage)

    def _over(self) -> bool:
        over, self.ended = self.ended, True
        if _calling.get() is self:
            _calling.set(None)
        return over


def begin_call(trial: TrialEnvironment, span_id: str, method: str, llm: Any) -> ModelCall | None:
    """The call that begins here; None where it is part of one that is under way."""
    outer = _calling.get()
    if outer is not None and not outer.ended and not _is_another(outer, method, llm):
        return None
    call = ModelCall(trial, span_id, method, llm, acting.get() or Acting(_acting_agent(trial)))
    _calling.set(call)
    with suppress(Exception):  # a model whose fields cannot be set: its calls are on record when they have ended
        if not isinstance(llm.rate_limiter, _Gate):
            llm.rate_limiter = _Gate(llm.rate_limiter)
    return call


def _is_another(outer: ModelCall, method: str, llm: Any) -> bool:
    """Whether a call during another is one of its own: only while a stream is read, and not what the stream reads."""
    return outer.returned and (outer.llm is not llm or outer.method == method)


def _acting_agent(trial: TrialEnvironment) -> str | None:
    agent = trial.recorder.active_agent or trial.identity.get("agent")
    return None if agent is None else str(agent)


class _Gate(BaseRateLimiter):
    """Lets a model be called when its turn has come and the trial allows it; outside a trial it is not there."""

    def __init__(self, own: Any = None) -> None:
        self._own = own

    def acquire(self, num_tokens: int = 0) -> None:
        call = _waiting_call()
        if call is not None:
            call.trial.pace.wait("model", call.model)
        if self._own is not None:
            self._own.acquire(num_tokens)
        _begin(call)

    async def async_acquire(self, num_tokens: int = 0) -> None:
        call = _waiting_call()
        if call is not None:
            await call.trial.pace.ready("model", call.model)
        if self._own is not None:
            await self._own.async_acquire(num_tokens)
        _begin(call)


def _waiting_call() -> ModelCall | None:
    call = _calling.get()
    return call if call is not None and call.number is None else None


def _begin(call: ModelCall | None) -> None:
    if call is not None:
        call.begin()
