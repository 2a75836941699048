"""The adapter for compiled LangGraph graphs.

In a trial:
- One thread id serves all turns, with an InMemorySaver of the trial's own: a graph without a checkpointer gets one, the
  user's is left alone. A value that cannot be copied (a lock, a connection) is kept as the object it is. A store
  stays the user's.
- A graph whose nodes or tools are async only runs in the runner's event loop (`ainvoke`), any other in a thread of its
  own (`invoke`), where it cannot hold up other trials.
- A step is a model call. `recursion_limit` is always passed, so that a graph that circles without a model ends too;
  both end the trial as `max_steps`.
- LangSmith's tracing is off inside.
- The final state beside `messages` is the agent's outcome, where the fixture observes none of its own.
- When the graph raises, what it did until then is in the trace.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.errors import GraphRecursionError

from seatrial.agents.langchain.recorder import OBSERVES, LangChainRecorder
from seatrial.agents.langchain.watching import watching
from seatrial.agents.langgraph.interrupts import Approver
from seatrial.agents.langgraph.mapping import GraphInput, Mapper
from seatrial.agents.langgraph.saver import trial_saver
from seatrial.agents.langgraph.tools import graphs_in, nodes_at, tools_of
from seatrial.core.ports import Answer, TurnInput
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Observable, StopReason
from seatrial.environment.recorder import StepLimitReached, limit_of_its_own
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError

__all__ = ["LangGraphAgent", "LangGraphSession"]

_SUPERSTEPS_PER_STEP = 10
"""A model call takes a few supersteps (middleware, tools, routing)."""


class LangGraphAgent:
    """A compiled graph under test."""

    kind = "langgraph"
    blocking = False
    observes = OBSERVES | {Observable.OUTPUT, Observable.APPROVALS}

    def __init__(self, target: Any, spec: AgentSpec | None = None) -> None:
        """UsageError when the target is no compiled graph, or the spec's input or output do not fit it."""
        spec = spec or AgentSpec()
        if not hasattr(target, "get_state"):
            raise UsageError(
                f"an object of type {type(target).__name__} is no compiled LangGraph graph; "
                "give the result of .compile()"
            )
        self._graph = target
        self._mapper = Mapper(_input_keys(target), spec.input, spec.output)

    def open(self, trial: TrialEnvironment) -> LangGraphSession:
        """The graph in one trial: nothing of it is shared but the code."""
        trial.recorder.observe(*self.observes)
        return LangGraphSession(self._graph.copy(update={"checkpointer": trial_saver()}), self._mapper, trial)


@dataclass
class _Course:
    """One turn as it goes."""

    payload: Any
    """What the graph is run with next."""
    answer: Answer | None = None
    resumed: int = 0


class LangGraphSession:
    """One graph in one trial."""

    def __init__(self, graph: Any, mapper: Mapper, trial: TrialEnvironment) -> None:
        self.blocking = not _needs_loop(graph)
        self._needs_own_loop = False
        self._graph = graph
        self._mapper = mapper
        self._trial = trial
        self._thread_id = uuid.uuid4().hex
        self._recorder = LangChainRecorder(
            trial,
            agents=[name for name, node in graph.nodes.items() if node.subgraphs],
            tools=tools_of(graph),
            answers_by_tool=any("structured_response" in one.channels for one in graphs_in(graph)),
            nodes_at=partial(nodes_at, graph),
        )
        self._approver = Approver(self._recorder)

    def invoke(self, turn: TurnInput) -> Any:
        """Answer one turn: an Answer, or an awaitable of one when the graph needs an event loop."""
        given = self._mapper.input(turn)
        return self._invoke(given) if self.blocking else self._ainvoke(given)

    def _invoke(self, given: GraphInput) -> Answer:
        options, course = self._options(given), _Course(given.state)
        with self._watched(options["config"]):
            while course.answer is None:
                self._take(course, self._run(course.payload, options), options["config"])
        return course.answer

    def _run(self, payload: Any, options: dict[str, Any]) -> Any:
        if self._needs_own_loop:
            return asyncio.run(self._graph.ainvoke(payload, **options))
        try:
            return self._graph.invoke(payload, **options)
        except NotImplementedError as error:
            if "ainvoke()" not in str(error):
                raise
            # Middleware that is async only shows itself no earlier; what had run by then stands in the saver.
            self._needs_own_loop = True
            return asyncio.run(self._graph.ainvoke(None, **options))

    async def _ainvoke(self, given: GraphInput) -> Answer:
        options, course = self._options(given), _Course(given.state)
        with self._watched(options["config"]):
            while course.answer is None:
                self._take(course, await self._graph.ainvoke(course.payload, **options), options["config"])
        return course.answer

    def _take(self, course: _Course, state: Any, config: RunnableConfig) -> None:
        """The graph stopped: it has answered, or it asked for approval and goes on, or nobody answered that."""
        snapshot = self._graph.get_state(config)
        if not snapshot.next:
            course.answer = Answer(self._mapper.output(state), outcome=self._outcome(state))
            return
        asks = any(task.interrupts for task in snapshot.tasks)
        course.payload = self._approver.resume(snapshot) if asks else None
        if course.payload is None and (asks or not self._approver.may_go_on(snapshot)):
            waiting = StopReason.WAITING_APPROVAL
            course.answer = Answer(None, stop_reason=waiting, outcome=self._outcome(state))
        course.resumed += 1
        self._check_resumed(course.resumed)

    def _outcome(self, state: Any) -> dict[str, Any]:
        """The final state beside the conversation."""
        left_out = ("messages", "structured_response", "__interrupt__")
        values = state if isinstance(state, Mapping) else {}
        outcome = {str(key): value for key, value in values.items() if key not in left_out}
        if outcome:
            self._trial.recorder.observe(Observable.OUTCOME)
        return outcome

    def _check_resumed(self, times: int) -> None:
        limit = self._trial.recorder.step_limit
        if limit is not None and times > limit:
            raise StepLimitReached(f"the graph stopped for approval more than {limit} times")

    def _config(self, given: GraphInput) -> RunnableConfig:
        limit = (self._trial.recorder.step_limit or 50) * _SUPERSTEPS_PER_STEP
        own = (self._graph.config or {}).get("recursion_limit", limit)
        return {
            "configurable": {**given.configurable, "thread_id": self._thread_id},
            "callbacks": self._recorder.handlers,
            "recursion_limit": min(limit, own),
        }

    def _options(self, given: GraphInput) -> dict[str, Any]:
        options: dict[str, Any] = {"config": self._config(given)}
        if given.context is not None:
            options["context"] = given.context
        return options

    @contextmanager
    def _watched(self, config: RunnableConfig) -> Iterator[None]:
        """Record what runs; whatever happens, the trace says what became of every call."""
        try:
            with self._trial.activate(), watching(self._recorder):
                yield
        except GraphRecursionError as error:
            raise limit_of_its_own("recursion_limit", error) from error
        finally:
            self._recorder.close(_messages(self._graph.get_state(config).values))

    def close(self) -> None:
        """Nothing is held: the saver goes with the session."""


def _input_keys(graph: Any) -> list[str]:
    """Keys of the graph's input; none when it is no mapping. (Not every state has a JSON schema to ask.)"""
    builder = getattr(graph, "builder", None)
    if builder is not None:
        return list(builder.schemas.get(builder.input_schema, ()))
    return [] if isinstance(graph.input_channels, str) else list(graph.input_channels)


def _needs_loop(graph: Any) -> bool:
    """Whether something in the graph is async only."""
    nodes = [node.bound for one in graphs_in(graph) for node in one.nodes.values()]
    parts = [part for bound in nodes for part in (bound, *getattr(bound, "steps", ()))]
    return any(_async_only(part, "func", "afunc") for part in parts) or any(
        _async_only(tool, "func", "coroutine") for tool in tools_of(graph).values()
    )


def _async_only(runnable: Any, sync: str, waiting: str) -> bool:
    return getattr(runnable, waiting, None) is not None and getattr(runnable, sync, None) is None


def _messages(values: Any) -> list[Any]:
    messages = values.get("messages") if isinstance(values, Mapping) else None
    return messages if isinstance(messages, list) else []
