"""The adapter for agents that are seen through OpenTelemetry: as they run, or from spans on file.

- `agent: {target: module:object, kind: otel}`: what the object is decides how it is called, as without `kind`; what its
  instrumentation says is its trace.
- `agent: {target: spans/, kind: otel}`: what an agent did elsewhere, graded as it stands; no agent is called. A folder
  holds a file a case, named after it: `CASE.json`, `CASE#2.json` for its second trial. In a file of many cases a trace
  names its own in `seatrial.case`, or as its conversation id. Relative to the project.
"""

from __future__ import annotations

import inspect
import time
from typing import Any

from seatrial.agents.otel.evidence import note_evidence
from seatrial.agents.otel.live import Collected, collecting, join, prepare
from seatrial.agents.otel.recorded import RecordedSpans
from seatrial.agents.otel.replay import play
from seatrial.agents.otel.span import Span
from seatrial.agents.otel.tree import SpanTree
from seatrial.core.ports import Agent, Answer, Session, TurnInput
from seatrial.core.trace import Observable
from seatrial.environment.trial import TrialEnvironment

__all__ = ["TracedAgent"]


class TracedAgent:
    """Another adapter's agent, of which the spans are the trace."""

    kind = "otel"
    observes = frozenset({Observable.OUTPUT})

    def __init__(self, agent: Agent[TrialEnvironment]) -> None:
        self._agent = agent
        self.blocking = agent.blocking
        join()

    @staticmethod
    def prepare() -> None:
        """Before the agent's code is imported: instrumentations capture content, and their spans are heard."""
        prepare()

    @staticmethod
    def recorded(target: str) -> RecordedSpans:
        """Spans on file in place of an agent. UsageError when there is no such file or folder."""
        return RecordedSpans(target)

    def open(self, trial: TrialEnvironment) -> TracedSession:
        """The agent of one trial. What the agent's own adapter raises is passed on."""
        trial.capture_hidden = False  # the spans say it, and nothing is to be said twice
        collected = Collected()
        with collecting(collected):
            return TracedSession(self._agent.open(trial), collected, trial)


class TracedSession:
    """One trial."""

    def __init__(self, session: Session, collected: Collected, trial: TrialEnvironment) -> None:
        self.blocking = session.blocking
        self._session, self._collected, self._trial = session, collected, trial
        self._began_ns = time.time_ns() - int(trial.recorder.elapsed_ms() * 1_000_000)
        self._all: list[Span] = []
        trial.recorder.on_freeze = self._record

    def invoke(self, turn: TurnInput) -> Any:
        """Answer one turn, and record what its spans say."""
        with collecting(self._collected):
            answer = self._session.invoke(turn)
        if inspect.isawaitable(answer):
            return self._awaited(answer)
        self._record()
        return answer

    async def _awaited(self, answering: Any) -> Answer:
        with collecting(self._collected):
            answer: Answer = await answering
        self._record()
        return answer

    def _record(self) -> None:
        """What began since it was last called: at the end of a turn, and of a trial that ends within one."""
        spans = self._collected.taken()
        self._all += spans
        play(spans, self._trial.recorder, self._began_ns)
        note_evidence(SpanTree(self._all), self._trial.recorder)

    def close(self) -> None:
        """Close the agent's own session."""
        self._session.close()
