"""The adapter for LlamaIndex's agents and workflows.

In a trial:
- It runs in the runner's event loop, as `run` of the framework needs one. Sync tools run in threads of the framework's.
- An agent has one memory a trial, of the class that the framework itself makes for a run; every run is given it. A run
  begins at the root agent again. A workflow of the user's own has no memory but its own.
- A step is a model call. `max_iterations` stays the framework's (20, the answer counted) unless `input:` sets it; when
  it is reached the trial ends as `max_steps`, like at the trial's own limit.
- The state that the agents keep (`initial_state`) is the agent's outcome, where the fixture observes none of its own.
- When the workflow raises, what it did until then is in the trace.
"""

from __future__ import annotations

import asyncio
from typing import Any

from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.agent.workflow.base_agent import BaseWorkflowAgent
from llama_index.core.memory import BaseMemory, ChatMemoryBuffer
from workflows.errors import WorkflowRuntimeError
from workflows.events import InputRequiredEvent, WorkflowIdleEvent
from workflows.handler import WorkflowHandler

from seatrial.agents.llamaindex.approvals import Approver
from seatrial.agents.llamaindex.joining import listen
from seatrial.agents.llamaindex.mapping import Mapper
from seatrial.agents.llamaindex.recorder import OBSERVES, LlamaIndexRecorder
from seatrial.agents.llamaindex.recording import recording
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.recorder import limit_of_its_own
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError
from workflows import Workflow

__all__ = ["LlamaIndexAgent", "LlamaIndexSession"]


_ITS_OWN = frozenset({Observable.OUTPUT, Observable.APPROVALS})


class LlamaIndexAgent:
    """A workflow under test."""

    kind = "llamaindex"
    blocking = False
    observes = OBSERVES | {Observable.OUTPUT, Observable.APPROVALS}
    """Of a workflow of the user's own (`_ITS_OWN`) only what it is seen to do: it may call models past LlamaIndex."""

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target is no workflow, or the spec's input or output do not fit it."""
        spec = spec or AgentSpec()
        if not isinstance(target, Workflow):
            raise UsageError(
                f"a LlamaIndex {type(target).__name__} is no agent by itself; wrap it in a function of the input"
            )
        self._workflow = target
        self._root = _root_of(target)
        is_agent = self._root is not None
        self.observes = self.observes if is_agent else _ITS_OWN
        self._mapper = Mapper(target, is_agent=is_agent, given=spec.input, wanted=spec.output)
        listen()

    def open(self, trial: TrialEnvironment) -> LlamaIndexSession:
        """The workflow in one trial: nothing of it is shared but the code."""
        trial.recorder.observe(*self.observes)
        memory = None if self._root is None else ChatMemoryBuffer.from_defaults(llm=self._root.llm)
        return LlamaIndexSession(self._workflow, self._mapper, trial, memory)


def _root_of(workflow: Workflow) -> Any:
    """The agent that a run begins with; None for a workflow that is none of the framework's."""
    if isinstance(workflow, AgentWorkflow):
        return workflow.agents[workflow.root_agent]
    return workflow if isinstance(workflow, BaseWorkflowAgent) else None


class LlamaIndexSession:
    """One workflow in one trial."""

    blocking = False

    def __init__(
        self, workflow: Workflow, mapper: Mapper, trial: TrialEnvironment, memory: BaseMemory | None = None
    ) -> None:
        self._workflow = workflow
        self._mapper = mapper
        self._trial = trial
        self._memory = memory
        self._recorder = LlamaIndexRecorder(trial)
        self._approver = Approver(self._recorder)

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        given = self._mapper.input(turn)
        if self._memory is not None:
            given = {"memory": self._memory, **given}
        try:
            with self._trial.activate(), recording.by(lambda: self._recorder):
                return await self._finished(self._workflow.run(**given))
        except WorkflowRuntimeError as error:
            if "Max iterations of" in str(error):
                raise limit_of_its_own("max_iterations", error) from error
            raise
        finally:
            self._recorder.close()

    async def _finished(self, handler: WorkflowHandler) -> Answer:
        """The workflow's end, or that nobody answered what it asks.

        What is no Exception ends a run without ending its events, so both are waited for.
        """
        ended = asyncio.ensure_future(handler.stop_event_result())
        heard = asyncio.ensure_future(self._attend(handler))
        try:
            await asyncio.wait((ended, heard), return_when=asyncio.FIRST_COMPLETED)
            if heard.done() and heard.result():
                return Answer(None, stop_reason=StopReason.WAITING_APPROVAL)
            return await self._answer(handler)
        finally:
            heard.cancel()
            if not handler.is_done():
                await handler.cancel_run()
            await asyncio.gather(ended, heard, return_exceptions=True)

    async def _attend(self, handler: WorkflowHandler) -> bool:
        """Answer what the workflow asks, until it has ended or waits for what nobody will answer (True)."""
        unanswered = False
        async for event in handler.stream_events(expose_internal=True):
            if isinstance(event, InputRequiredEvent):
                answer = self._approver.answer(event)
                unanswered = unanswered or answer is None
                if answer is not None:
                    await handler.send_event(answer)
            elif isinstance(event, WorkflowIdleEvent) and unanswered:
                return True
        return False

    async def _answer(self, handler: WorkflowHandler) -> Answer:
        result = await handler
        return Answer(self._mapper.output(result), outcome=await self._outcome(handler))

    async def _outcome(self, handler: WorkflowHandler) -> dict[str, Any]:
        """The state that the framework's agents share."""
        if self._memory is None:
            return {}
        state = await handler.ctx.store.get("state", default=None)
        if not isinstance(state, dict) or not state:
            return {}
        self._trial.recorder.observe(Observable.OUTCOME)
        return {str(key): value for key, value in state.items()}

    def close(self) -> None:
        """Nothing is held: the memory goes with the session."""
