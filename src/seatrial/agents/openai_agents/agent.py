"""The adapter for agents of the OpenAI Agents SDK.

In a trial:
- It runs in the runner's event loop (`Runner.run`). Sync tools run in threads of the SDK's.
- A session of the trial's own keeps the conversation; each turn begins at the agent under test.
- A step is a model call. `max_turns` stays the SDK's (10) unless `input:` sets it; reaching it ends the trial as
  `max_steps`, like the trial's own limit.
- Interruptions for approval are answered by the fixture's script, and the run goes on from its state. The SDK knows yes
  and no; arguments that a person edited are put in place when the tool is called.
- What guardrails find is in the trace; a tripwire is raised by the run, and so is the agent's error.
- When the run raises, what it did until then is in the trace.
"""

from __future__ import annotations

import uuid
from typing import Any

from agents.exceptions import MaxTurnsExceeded

from agents import Agent, Runner
from seatrial.agents.openai_agents.joining import listen
from seatrial.agents.openai_agents.mapping import Mapper
from seatrial.agents.openai_agents.recorder import OBSERVES, AgentsRecorder
from seatrial.agents.openai_agents.recording import recording
from seatrial.agents.openai_agents.session import TrialSession
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.recorder import StepLimitReached, limit_of_its_own
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["OpenAIAgentsAgent", "OpenAIAgentsSession"]


class OpenAIAgentsAgent:
    """An agent of the SDK under test."""

    kind = "openai_agents"
    blocking = False
    observes = OBSERVES | {Observable.OUTPUT, Observable.APPROVALS}

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target is no agent, or the spec's input or output make no sense."""
        spec = spec or AgentSpec()
        if not isinstance(target, Agent):
            raise UsageError(
                f"an object of type {type(target).__name__} is no agent of the OpenAI Agents SDK; give its Agent"
            )
        self._agent = target
        self._mapper = Mapper(spec.input, spec.output)
        listen()

    def open(self, trial: TrialEnvironment) -> OpenAIAgentsSession:
        """The agent in one trial: nothing of it is shared but the code."""
        trial.recorder.observe(*self.observes)
        return OpenAIAgentsSession(self._agent, self._mapper, trial)


class OpenAIAgentsSession:
    """One agent in one trial."""

    blocking = False

    def __init__(self, agent: Agent[Any], mapper: Mapper, trial: TrialEnvironment) -> None:
        self._agent = agent
        self._mapper = mapper
        self._trial = trial
        self._recorder = AgentsRecorder(trial)
        self._conversation = TrialSession(uuid.uuid4().hex)

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        given = self._mapper.input(turn)
        raised: BaseException | None = None
        try:
            with self._trial.activate(), recording.by(lambda: self._recorder):
                return await self._answer(given)
        except MaxTurnsExceeded as error:
            raise limit_of_its_own("max_turns", error) from error
        except BaseException as error:
            raised = error
            raise
        finally:
            self._recorder.close(raised)

    async def _answer(self, given: dict[str, Any]) -> Answer:
        result = await Runner.run(self._agent, given.pop("input"), session=self._conversation, **given)
        times = 0
        while result.interruptions:
            times += 1
            self._check_resumed(times)
            state = self._decided(result)
            if state is None:
                return Answer(None, stop_reason=StopReason.WAITING_APPROVAL)
            given.pop("context", None)
            result = await Runner.run(self._agent, state, session=self._conversation, **given)
        return Answer(self._mapper.output(result))

    def _decided(self, result: Any) -> Any:
        """The state with every request answered; None when one of them stayed open."""
        state = result.to_state()
        decisions = [self._decide(state, item) for item in state.get_interruptions()]
        return state if all(decisions) else None

    def _decide(self, state: Any, item: Any) -> bool:
        asked = self._recorder.asked(item.call_id)
        answer = self._trial.approve(item.name, item.arguments, call_id=item.call_id, agent=item.agent.name)
        if answer.decision == "edited" and asked is not None:
            asked.edited = dict(answer.arguments)
        if answer.allowed:
            state.approve(item)
        elif answer.decision == "denied":
            state.reject(item)
        return answer.decision != "unanswered"

    def _check_resumed(self, times: int) -> None:
        limit = self._trial.recorder.step_limit
        if limit is not None and times > limit:
            raise StepLimitReached(f"the run stopped for approval more than {limit} times")

    def close(self) -> None:
        """Nothing is held: the conversation goes with the session."""
