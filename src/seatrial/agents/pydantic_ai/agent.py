"""The adapter for agents of Pydantic AI.

In a trial:
- Every turn is one run of the agent, with the messages of the turns before it; nothing else is kept. The agent itself
  is shared by all trials and never changed: what watches it belongs to each run.
- A step is a model call of any agent. The framework's own default limit of requests is off, so that the case's decides;
  a limit of requests or tool calls that the agent sets itself ends the trial as `max_steps` too.
- A run that ends with `DeferredToolRequests` goes on with the script's answers (`deferred`), or the turn ends.
- When the agent raises, what it did until then is in the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import DeferredToolRequests, UsageLimits
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import ModelMessage

from seatrial.agents.pydantic_ai.deferred import answered
from seatrial.agents.pydantic_ai.joining import listen
from seatrial.agents.pydantic_ai.mapping import Mapper, RunInput
from seatrial.agents.pydantic_ai.recorder import OBSERVES, PydanticAIRecorder
from seatrial.agents.pydantic_ai.recording import recording
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.recorder import StepLimitReached, limit_of_its_own
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["PydanticAIAgent", "PydanticAISession"]

_COUNTED = ("request_limit", "tool_calls_limit")
"""Limits of steps among those that an agent may set itself; the others are of tokens and money."""
_UNMADE: Any = object()


class PydanticAIAgent:
    """A Pydantic AI agent under test."""

    kind = "pydantic_ai"
    blocking = False
    observes = OBSERVES | {Observable.OUTPUT, Observable.APPROVALS}

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target is no agent, or the spec's input or output make no sense."""
        spec = spec or AgentSpec()
        if not isinstance(target, AbstractAgent):
            raise UsageError(
                f"an object of type {type(target).__name__} is no Pydantic AI agent; give an Agent, or a factory of one"
            )
        self._agent = target
        self._mapper = Mapper(target.deps_type, spec.input, spec.output)
        listen()

    def open(self, trial: TrialEnvironment) -> PydanticAISession:
        """The agent in one trial: nothing of it is shared but the code."""
        trial.recorder.observe(*self.observes)
        return PydanticAISession(self._agent, self._mapper, trial)


class PydanticAISession:
    """One agent in one trial."""

    blocking = False

    def __init__(self, agent: AbstractAgent[Any, Any], mapper: Mapper, trial: TrialEnvironment) -> None:
        self._agent = agent
        self._mapper = mapper
        self._trial = trial
        self._recorder = PydanticAIRecorder(trial)
        self._history: Sequence[ModelMessage] = ()
        self._deps = _UNMADE

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        given = self._mapper.input(turn)
        if self._deps is _UNMADE:
            self._deps = given.make_deps()
        try:
            with self._trial.activate(), recording.by(lambda: self._recorder):
                return await self._answer(given)
        except UsageLimitExceeded as error:
            if any(limit in str(error) for limit in _COUNTED):
                raise limit_of_its_own("usage limit", error) from error
            raise
        finally:
            self._recorder.close()

    async def _answer(self, given: RunInput) -> Answer:
        output = await self._run(given, given.prompt, history=[*self._history, *given.history])
        resumed = 0
        while isinstance(output, DeferredToolRequests):
            results = await answered(output, self._recorder)
            if results is None:
                return Answer(None, stop_reason=StopReason.WAITING_APPROVAL)
            resumed += 1
            self._check_resumed(resumed)
            output = await self._run(given, None, history=self._history, deferred_tool_results=results)
        return Answer(self._mapper.output(output))

    async def _run(self, given: RunInput, prompt: Any, *, history: Sequence[ModelMessage], **more: Any) -> Any:
        result = await self._agent.run(
            prompt,
            deps=self._deps,
            message_history=history,
            usage_limits=UsageLimits(request_limit=None),
            infer_name=False,  # it would be written into the agent
            **given.more,
            **more,
        )
        self._history = result.all_messages()
        return result.output

    def _check_resumed(self, times: int) -> None:
        limit = self._trial.recorder.step_limit
        if limit is not None and times > limit:
            raise StepLimitReached(f"the agent stopped for approval more than {limit} times")

    def close(self) -> None:
        """Nothing is held: the conversation goes with the session."""
