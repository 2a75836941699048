"""The adapter for agents of Google's Agent Development Kit: an App, a root agent, or a Runner.

In a trial:
- A runner of the trial's own, with the app's plugins and settings, over in-memory sessions and artifacts: all turns are
  one session, and nothing of it is seen by another trial. A Runner's own memory and credential services stay in use.
- A step is a model call of any agent. The framework's own limit of calls is off, so that the case's decides.
- A run that waits for confirmation goes on with the script's answers (`confirming`), or the turn ends.
- The session's final state is the agent's outcome, where the fixture observes none of its own.
- When the agent raises, what it did until then is in the trace.
"""

from __future__ import annotations

import sys
import uuid
from contextlib import aclosing
from typing import Any

from google.adk import version
from google.adk.agents.invocation_context import LlmCallsLimitExceededError
from google.adk.agents.run_config import RunConfig
from google.adk.apps.app import App
from google.adk.artifacts.in_memory_artifact_service import InMemoryArtifactService
from google.adk.events.event import Event
from google.adk.memory.in_memory_memory_service import InMemoryMemoryService
from google.adk.runners import Runner
from google.adk.sessions.in_memory_session_service import InMemorySessionService
from google.adk.sessions.session import Session
from google.adk.workflow import BaseNode
from google.genai import types

from seatrial.agents.google_adk.confirming import answered, open_calls
from seatrial.agents.google_adk.joining import is_heard
from seatrial.agents.google_adk.mapping import Mapper, RunInput, given_by
from seatrial.agents.google_adk.recorder import OBSERVES, GoogleADKRecorder
from seatrial.agents.google_adk.recording import recording
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.recorder import StepLimitReached, limit_of_its_own
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["GoogleADKAgent", "GoogleADKSession"]

_APP = "seatrial"
"""Name of the app around a root agent that has none."""
_NO_LIMIT = sys.maxsize - 1


class GoogleADKAgent:
    """A Google ADK agent under test."""

    kind = "google_adk"
    blocking = False
    observes = OBSERVES | {Observable.OUTPUT, Observable.APPROVALS}

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target is no agent, the spec's input or output make no sense, or the framework is of a
        version that cannot be observed."""
        spec = spec or AgentSpec()
        if not isinstance(target, (App, Runner, BaseNode)):
            raise UsageError(
                f"an object of type {type(target).__name__} is no Google ADK agent; "
                "give an App, a root agent or a Runner"
            )
        self._target = target
        self._mapper = Mapper(spec.input, spec.output)
        if not is_heard():
            raise UsageError(f"google-adk {version.__version__} is not supported by this version of Seatrial")

    def open(self, trial: TrialEnvironment) -> GoogleADKSession:
        """The agent in one trial: nothing of it is shared but the code and the plugins."""
        trial.recorder.observe(*self.observes)
        return GoogleADKSession(_runner(self._target), self._mapper, trial)


def _runner(target: App | Runner | BaseNode) -> Runner:
    """A runner of the trial's own for what a user would run."""
    own = target if isinstance(target, Runner) else None
    app = own.app if own else target if isinstance(target, App) else App(name=_APP, root_agent=target)
    return Runner(
        app=app,
        app_name=own.app_name if own else None,
        session_service=InMemorySessionService(),
        artifact_service=InMemoryArtifactService(),
        memory_service=(own and own.memory_service) or InMemoryMemoryService(),
        credential_service=own.credential_service if own else None,
    )


class GoogleADKSession:
    """One agent in one trial."""

    blocking = False

    def __init__(self, runner: Runner, mapper: Mapper, trial: TrialEnvironment) -> None:
        self._runner = runner
        self._mapper = mapper
        self._trial = trial
        self._recorder = GoogleADKRecorder(trial)
        self._session: Session | None = None

    async def invoke(self, turn: TurnInput) -> Answer:
        """Answer one turn."""
        given = self._mapper.input(turn)
        try:
            with self._trial.activate(), recording.by(lambda: self._recorder):
                return await self._answer(given)
        except LlmCallsLimitExceededError as error:
            raise limit_of_its_own("max_llm_calls", error) from error
        except BaseException:
            self._recorder.broke_off()
            raise
        finally:
            self._recorder.close()

    async def _answer(self, given: RunInput) -> Answer:
        session = await self._opened(given)
        events = await self._run(session, given.message, given)
        resumed = 0
        while waiting := open_calls(events):
            message = answered(waiting, self._recorder)
            if message is None:
                break
            resumed += 1
            self._check_resumed(resumed)
            events = await self._run(session, message, given)
        return await self._read(session, events, waits=bool(waiting))

    async def _opened(self, given: RunInput) -> Session:
        """The trial's session, made in its first turn."""
        if self._session is None:
            user = given.user_id or self._trial.identity.get("user") or "user"
            self._session = await self._runner.session_service.create_session(
                app_name=self._runner.app_name, user_id=str(user), session_id=uuid.uuid4().hex, state=dict(given.state)
            )
        return self._session

    async def _run(self, session: Session, message: types.Content, given: RunInput) -> list[Event]:
        run_config = RunConfig.model_validate({"max_llm_calls": _NO_LIMIT, **given.run_config})
        running = self._runner.run_async(
            user_id=session.user_id, session_id=session.id, new_message=message, run_config=run_config
        )
        async with aclosing(running) as events:
            return [event async for event in events]

    async def _read(self, session: Session, events: list[Event], *, waits: bool) -> Answer:
        final = await self._runner.session_service.get_session(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id
        )
        state = {} if final is None else {key: value for key, value in final.state.items() if not _is_internal(key)}
        if state:
            self._trial.recorder.observe(Observable.OUTCOME)
        given = given_by(events, state)
        if waits and not given["text"]:
            return Answer(None, stop_reason=StopReason.WAITING_APPROVAL, outcome=state)
        _check_failed(events, given)
        return Answer(self._mapper.output(given), outcome=state)

    def _check_resumed(self, times: int) -> None:
        limit = self._trial.recorder.step_limit
        if limit is not None and times > limit:
            raise StepLimitReached(f"the agent stopped for approval more than {limit} times")

    def close(self) -> None:
        """Nothing is held: the session goes with its service."""


def _is_internal(key: str) -> bool:
    return key.startswith(("_adk", "temp:"))


def _check_failed(events: list[Event], given: dict[str, Any]) -> None:
    """A model that fails may say so in an event instead of raising; then there is no answer."""
    failed = [event for event in events if event.error_code]
    if failed and not given["text"] and given["output"] is None:
        raise RuntimeError(f"the model failed: {failed[-1].error_code}: {failed[-1].error_message}")
