"""One trial: set up, invoke, observe, grade, clean up. No configuration, no saving, no retries.

Whose fault a failure is decides what it becomes: what the agent raises is a failed trial; what the fixture raises is
an invalid one; what a grader raises is a GraderFailure beside the grades.

An attempt can be cut short from another thread: where it ran is given up (a blocked event loop, a process that died),
and whoever takes it over brings it to its end from there.
"""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import lru_cache
from types import TracebackType
from typing import Any

from seatrial.core.case import Case
from seatrial.core.encoding import to_json
from seatrial.core.ports import Agent, Answer, GradingContext, PlannedCase, Session, TurnInput
from seatrial.core.trace import (
    AgentError,
    Handoff,
    Message,
    ModelCallEvent,
    Observable,
    StopReason,
    ToolCallEvent,
    Trace,
    text_of,
)
from seatrial.core.trajectory import trace_tallies
from seatrial.core.trial import InvalidReason, Leftover, TrialRecord
from seatrial.core.usage import Price, cost_of_calls, sum_tokens
from seatrial.environment.failure import FixtureError, as_raised, cancelled_by_us
from seatrial.environment.model_proxy.address import ProxyAddress, TrialCalls
from seatrial.environment.model_proxy.variables import own_addresses
from seatrial.environment.pace import Pace, Rates
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.spending import CostLimitReached, Spending
from seatrial.environment.surroundings import Surroundings
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import Log
from seatrial.runner.grading import Grading, context_of, error_text, grade
from seatrial.runner.limit import TimeLimit
from seatrial.runner.recording import NO_CALLS, Recording
from seatrial.runner.threads import in_thread
from seatrial.runner.users import conversation, inputs_of
from seatrial.runner.waiting import Places

__all__ = ["Relieved", "TrialAttempt", "TrialSettings", "Watch", "run_trial", "seed_of"]

_TRACEBACK_KEPT = 8_000


@dataclass(frozen=True)
class TrialSettings:
    """What holds for every trial of a run."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    seed: int = 0
    priced_only: bool = False
    """Whether models without a price must not be called (a run under a budget)."""
    rates: Rates | None = None
    """Rate limits of models and tools."""
    judges: Places | None = None
    """How many judges may be asked at once; None: no limit of their own."""
    on_agent_error: Callable[[BaseException], None] | None = None
    """Called with what the agent raised, before anything is cleaned up (post-mortem debugging)."""
    surroundings: Surroundings | None = None
    """Tells what trials leave behind; None: nobody looks."""
    model_urls: Mapping[str, str] = field(default_factory=dict)
    """Base URLs of models by name, as the agent gets them where there is no proxy."""
    proxy: ProxyAddress | None = None
    """Records or replays model calls; None: they go where they go."""


@dataclass
class _Course:
    """How far a trial got; filled in as it goes, so that an exception loses nothing."""

    started: str
    seed: int
    outputs: list[Any] = field(default_factory=list)
    stop_reason: StopReason = StopReason.ANSWERED
    error: AgentError | None = None
    waits_as_scripted: bool = False
    """It ended waiting for an approval, and the case scripts that nobody answers."""
    broken: InvalidReason | None = None
    own_limit: str = ""
    """Which other limit than that of steps stopped the agent."""
    detail: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)
    observed: bool = False
    latency_ms: float = 0.0
    reported_costs: list[float | None] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    deadline: float | None = None
    """When the agent's time would be up if it never waited for its turn, on the monotonic clock; None while it has no
    say."""
    turn_began: float | None = None
    """When the turn that has not ended began, in `_own_time`."""
    ready: bool = False
    """The surroundings stand, and can be observed."""
    cut: bool = False
    """The agent's part is over, whatever its code still does."""
    calls: TrialCalls = NO_CALLS
    """What came through the proxy of model calls."""

    def copy(self, pace: Pace) -> _Course:
        """What is known so far, out of reach of whoever fills in this one."""
        began = self.turn_began
        spent = 0.0 if began is None else max(_own_time(pace) - began, 0.0) * 1000
        return replace(
            self,
            outputs=list(self.outputs),
            outcome=dict(self.outcome),
            reported_costs=list(self.reported_costs),
            latency_ms=self.latency_ms + spent,
            deadline=None,
            turn_began=None,
        )


def seed_of(run_seed: int, case_id: str, trial_index: int) -> int:
    """The trial's own seed: the same for the same run seed, case and trial number, in any order of running."""
    text = f"{run_seed}/{case_id}/{trial_index}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big")


class Relieved(Exception):
    """This attempt was cut short and taken over: what became of it here no longer counts."""


class TrialAttempt:
    """One attempt at a trial, from nothing to its record."""

    def __init__(
        self,
        agent: Agent[TrialEnvironment],
        planned: PlannedCase,
        trial_index: int,
        settings: TrialSettings,
        attempt: int = 1,
    ) -> None:
        seed = seed_of(settings.seed, planned.case.id, trial_index)
        self.planned = planned
        self.environment: TrialEnvironment = planned.fixture.environment(trial_index, seed)
        self.on_agent: Callable[[bool], None] = _nothing
        """Called with True when the agent's part begins, and with False when it has ended."""
        self.on_wait: Callable[[float], None] = _nothing
        """Called with the seconds that the agent's calls are about to wait for their turn, from any thread."""
        self._agent = agent
        self._settings = settings
        self._numbers = {"trial_index": trial_index, "attempt": attempt}
        self._course = _Course(started=_utc_now(), seed=seed)
        self._watch = Watch(settings.surroundings, planned.case.id, trial_index)
        self._pid = os.getpid()
        recorder, pace = self.environment.recorder, self.environment.pace
        recorder.spending = Spending(settings.prices, planned.case.limits.cost_usd, settings.priced_only)
        pace.rates = settings.rates or pace.rates
        place = (planned.case.id, trial_index, attempt)
        self._recording = Recording(settings.proxy, place, settings.model_urls)
        self.environment.model_base_urls = self._recording.urls()
        self._recorded = settings.proxy is not None

    @property
    def deadline(self) -> float | None:
        """When the agent's time is up, on the monotonic clock; None while the agent has no say.

        Time in which its calls wait for their turn is added before they wait, also where they hold up the loop.
        """
        deadline = self._course.deadline
        return None if deadline is None else deadline + self.environment.pace.waited_s

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Bring the attempt to its end; every failure but a cancellation is in the record, never raised.

        Raises Relieved when it was cut short meanwhile: then another call of `run` has taken over.
        """
        course = self._course
        leftovers: tuple[Leftover, ...] = ()
        try:
            await self._live(course)
            trace = _trace_of(self.environment, self._agent, course)
            context = _grading_context(self.planned, self.environment, trace, course, self._settings)
            grading = await self._graded(context, course)
            self._check_still_ours(course)
        finally:
            if self._course is course and os.getpid() == self._pid:
                leftovers = await self._leave(course)
        return _record(self.planned, trace, context, grading, course, **self._numbers, leftovers=leftovers), trace

    async def _leave(self, course: _Course) -> tuple[Leftover, ...]:
        """Clean up, then look at what is left."""
        try:
            await _clean_up(self.environment, course)
        finally:
            leftovers = self._watch.end(self.environment)
        return leftovers

    def cut_short(
        self,
        stop_reason: StopReason,
        *,
        detail: str = "",
        error: AgentError | None = None,
        broken: InvalidReason | None = None,
        log: Log | None = None,
        latency_ms: float | None = None,
    ) -> None:
        """End the agent's part here, from any thread; the next `run` goes on with what comes after it.

        What is on record so far is kept, and nothing is added to it by code that still runs: its next model or tool
        call raises TrialOver.
        """
        course = self._course.copy(self.environment.pace)
        course.cut, course.stop_reason, course.error = True, stop_reason, error
        course.broken, course.detail = broken, detail
        course.ready = course.ready and stop_reason is not StopReason.HARNESS_ERROR
        course.log = log or course.log
        course.latency_ms = course.latency_ms if latency_ms is None else latency_ms
        self._course = course
        self.environment.recorder.end()

    def _check_still_ours(self, course: _Course) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # the agent forked: only the process that began the trial goes on with it
        if self._course is not course:
            raise Relieved

    async def _live(self, course: _Course) -> None:
        """Everything that needs the surroundings: reset, the agent's turns, the outcome."""
        environment = self.environment
        if not course.cut:
            self._watch.begin()
            if not await _set_up(environment, course):
                return
        with own_addresses(environment.model_base_urls):
            if not course.cut:
                if self._recorded:
                    await self._recording.begin("agent")
                self.on_agent(True)
                await _agent_turns(self, self._agent, self.planned, course, self._settings)
                self._check_still_ours(course)
                self.on_agent(False)
            if self._recorded:
                await self._end_recording(course)
            if environment.replayed_elsewhere:
                course.calls = course.calls.and_those(TrialCalls(environment.replayed_elsewhere))
            if course.ready and environment.outcome:
                with environment.activate(), course.log.active():
                    await _observe(environment, course)

    async def _graded(self, context: GradingContext, course: _Course) -> Grading:
        """What the graders say; what one asks a model itself is recorded and replayed too."""
        if not self._recorded:
            with own_addresses(self._recording.urls("graders")):
                return await grade(self.planned.graders, context, self._settings.judges)
        await self._recording.begin("graders")
        with own_addresses(self._recording.urls("graders")):
            grading = await grade(self.planned.graders, context, self._settings.judges)
        calls = await self._recording.finish("graders")
        course.calls = course.calls.and_those(calls)
        if calls.problem and course.broken is None:
            course.broken, course.detail = InvalidReason.HARNESS, f"cassettes: {calls.problem}"
        return grading

    async def _end_recording(self, course: _Course) -> None:
        """The agent's model calls have ended. What the proxy could not answer makes the trial invalid, whatever the
        agent made of it."""
        broken_off = course.cut and course.stop_reason is StopReason.HARNESS_ERROR
        course.calls = await self._recording.finish("agent", keep=not broken_off)
        if course.calls.problem:
            course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.HARNESS
            course.error, course.detail = None, f"cassettes: {course.calls.problem}"


def _nothing(_: object) -> None:
    return


def _utc_now() -> str:
    """UTC, ISO 8601 with Z, to the millisecond."""
    now = time.time()
    return f"{_second(int(now))}.{int(now % 1 * 1000):03d}Z"


@lru_cache(maxsize=4)
def _second(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S")


async def run_trial(
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    trial_index: int,
    settings: TrialSettings,
    attempt: int = 1,
) -> tuple[TrialRecord, Trace]:
    """Run one trial to its end; every failure but a cancellation is in the record, never raised."""
    return await TrialAttempt(agent, planned, trial_index, settings, attempt).run()


class Watch:
    """A trial under the eyes of the surroundings, if there are any."""

    def __init__(self, surroundings: Surroundings | None, case_id: str, trial_index: int) -> None:
        self._surroundings = surroundings
        self._trial = f"{case_id}#{trial_index}"
        self._begun = False

    def begin(self) -> None:
        """The trial starts."""
        if self._surroundings is not None:
            self._begun = True
            self._surroundings.begin(self._trial)

    def end(self, environment: TrialEnvironment) -> tuple[Leftover, ...]:
        """The trial has cleaned up; what it left. Nothing of one that never began here."""
        if self._surroundings is None or not self._begun:
            return ()
        self._begun = False
        return self._surroundings.end(self._trial, environment.sources_changed())


async def _set_up(environment: TrialEnvironment, course: _Course) -> bool:
    """Whether the surroundings are ready."""
    try:
        await in_thread(environment.set_up) if environment.blocking else environment.set_up()
    except Exception as error:  # noqa: BLE001  whatever a fixture raises makes the trial invalid
        course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        course.detail = f"fixture: {type(error).__name__}: {error}"
        return False
    course.ready = True
    return True


async def _observe(environment: TrialEnvironment, course: _Course) -> None:
    try:
        observed = await in_thread(environment.observe) if environment.blocking else environment.observe()
    except Exception as error:  # noqa: BLE001  whatever an observer raises makes the trial invalid
        course.broken, course.detail = InvalidReason.FIXTURE, f"outcome: {type(error).__name__}: {error}"
        return
    if observed is not None:
        course.observed = True
        course.outcome.update(observed)


async def _agent_turns(
    attempt: TrialAttempt,
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    course: _Course,
    settings: TrialSettings,
) -> None:
    """The agent's part, under the time limit; what it raises stands in `course` afterwards."""
    environment, limit_s = attempt.environment, planned.case.limits.timeout_s
    limit = TimeLimit(limit_s, attempt.on_wait)
    course.deadline = time.monotonic() + limit_s - environment.pace.waited_s
    try:
        with limit, environment.activate(), course.log.active():
            environment.pace.on_wait = limit.extend
            await limit.run(_converse(environment, agent, planned, course))
    except (StepLimitReached, CostLimitReached) as reached:
        course.stop_reason, course.own_limit = StopReason.MAX_STEPS, str(reached)
    except FixtureError as error:  # an adapter's own `reset`: its surroundings failed, not the agent
        course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        course.detail = f"fixture: {error}"
    except BaseException as error:  # an agent may raise anything, SystemExit too; only our own cancellation passes
        if cancelled_by_us(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired:
            course.stop_reason = StopReason.TIMEOUT
            return
        raised = as_raised(error)
        course.stop_reason, course.error = StopReason.AGENT_ERROR, _agent_error(raised)
        course.deadline = None
        if settings.on_agent_error is not None:
            settings.on_agent_error(raised)
    finally:
        course.deadline = None
    course.waits_as_scripted = course.stop_reason is StopReason.WAITING_APPROVAL and environment.waits_as_scripted
    _note_limits(environment, course)


def _note_limits(environment: TrialEnvironment, course: _Course) -> None:
    """A hard stop that was reached is why the trial ended, whatever the agent made of it."""
    spending = environment.recorder.spending
    if environment.recorder.limit_reached:
        course.stop_reason, course.error, course.own_limit = StopReason.MAX_STEPS, None, ""
    elif spending.unpriced is not None:
        course.stop_reason, course.error, course.broken = StopReason.BUDGET, None, InvalidReason.HARNESS
        course.detail = f"budget: the price of model {spending.unpriced!r} is unknown"
    elif spending.over and course.stop_reason is not StopReason.HARNESS_ERROR:
        course.stop_reason, course.error = StopReason.BUDGET, None
    elif course.stop_reason is StopReason.MAX_STEPS and not course.own_limit:
        course.own_limit = "the agent said that it reached a limit of its own"


async def _converse(
    environment: TrialEnvironment, agent: Agent[TrialEnvironment], planned: PlannedCase, course: _Course
) -> None:
    case = planned.case
    session = await in_thread(agent.open, environment) if agent.blocking else agent.open(environment)
    try:
        if case.user is None:
            for value in inputs_of(case):
                if not await _turn(environment, session, case, value, course):
                    return
        else:
            await _played(environment, session, case, course)
    finally:
        closing = session.close()
        if closing is not None and inspect.isawaitable(closing):
            await closing


async def _played(environment: TrialEnvironment, session: Session, case: Case, course: _Course) -> None:
    """A conversation in which somebody answers the agent."""
    answers: list[str] = []
    async with contextlib.aclosing(conversation(case, answers)) as inputs:
        async for value in inputs:
            if not await _turn(environment, session, case, value, course):
                return
            answers.append(text_of(course.outputs[-1][0]))


async def _turn(environment: TrialEnvironment, session: Session, case: Case, value: Any, course: _Course) -> bool:
    """One turn; whether the agent answered it."""
    recorder = environment.recorder
    recorder.turn = number = len(course.outputs) + 1
    turn = TurnInput(case.id, value, number, environment.fixture_name)
    recorder.message("user", turn.message or value)
    answer = await _timed(session, turn, course, environment.pace)
    _take(answer, course)
    recorder.spending.add_reported(answer.cost_usd)
    return answer.stop_reason is StopReason.ANSWERED


async def _timed(session: Session, turn: TurnInput, course: _Course, pace: Pace) -> Answer:
    began = course.turn_began = _own_time(pace)
    measured: float | None = None
    try:
        answer = await in_thread(session.invoke, turn) if session.blocking else session.invoke(turn)
        finished = answer if isinstance(answer, Answer) else await answer
        measured = finished.latency_ms
        return finished
    finally:
        course.turn_began = None
        course.latency_ms += max(_own_time(pace) - began, 0.0) * 1000 if measured is None else measured


def _own_time(pace: Pace) -> float:
    """Seconds on a clock that stands still while a call waits for its turn."""
    return time.perf_counter() - pace.waited_s


def _take(answer: Answer, course: _Course) -> None:
    course.outputs.append((to_json(answer.output), answer.output))
    course.stop_reason, course.own_limit = answer.stop_reason, answer.own_limit
    if answer.outcome:
        course.outcome.update(to_json(dict(answer.outcome)))
        course.observed = True
    course.reported_costs.append(answer.cost_usd)


def _agent_error(error: BaseException) -> AgentError:
    lines = traceback.format_exception(type(error), error, _agents_own(error.__traceback__))
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return AgentError(type=name, message=error_text(error), traceback="".join(lines)[-_TRACEBACK_KEPT:])


def _agents_own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the harness's own frames before the agent's."""
    at = trace
    while at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("seatrial."):
        at = at.tb_next
    return at or trace


def _trace_of(environment: TrialEnvironment, agent: Agent[TrialEnvironment], course: _Course) -> Trace:
    recorder = environment.recorder
    events = recorder.freeze()
    observes = frozenset(agent.observes | recorder.observes)
    kinds = [type(event) for event in events]
    model_calls, tool_calls = kinds.count(ModelCallEvent), kinds.count(ToolCallEvent)
    by_tools = not model_calls and Observable.MODEL_CALLS not in observes
    seen = Observable.TOOL_CALLS in observes if by_tools else True
    answered = course.outputs and course.stop_reason is StopReason.ANSWERED
    return Trace.trusted(
        {
            "events": events,
            "observes": observes,
            "unobserved": {what: why for what, why in recorder.unobserved.items() if what not in observes},
            "output": course.outputs[-1][0] if answered else None,
            "outputs": tuple([output for output, _ in course.outputs]),
            "stop_reason": course.stop_reason,
            "error": course.error,
            "ordered": recorder.ordered,
            "log": course.log.text,
            "steps": (tool_calls if by_tools else model_calls) if seen else None,
            "steps_are_tool_calls": by_tools and seen,
            "replayed": course.calls.replayed,
        }
    )


def _grading_context(
    planned: PlannedCase,
    environment: TrialEnvironment,
    trace: Trace,
    course: _Course,
    settings: TrialSettings,
) -> GradingContext:
    return context_of(
        planned,
        trace,
        outcome=course.outcome if course.observed else None,
        output=course.outputs[-1][1] if course.outputs else None,
        secrets=environment.secrets,
        latency_ms=course.latency_ms,
        cost_usd=_cost(trace, course, settings.prices),
    )


def _record(
    planned: PlannedCase, trace: Trace, context: GradingContext, grading: Grading, course: _Course, **more: Any
) -> TrialRecord:
    case = planned.case
    return TrialRecord.trusted(
        {
            **more,
            "case_id": case.id,
            "suite": case.suite,
            **grading.verdict(course.stop_reason, course.broken, foreseen=course.waits_as_scripted),
            "detail": course.detail or _detail(course, planned),
            "stop_reason": course.stop_reason,
            "error": course.error,
            "output": trace.output,
            "outcome": None if context.outcome is None else dict(context.outcome),
            "steps": trace.steps,
            "steps_are_tool_calls": trace.steps_are_tool_calls,
            **_happened(trace),
            "cost_usd": context.cost_usd,
            "judge_cost_usd": grading.judge_cost_usd,
            "latency_ms": course.latency_ms,
            "seed": course.seed,
            "started": course.started,
            "case_digest": planned.digest,
            "fixture_digest": planned.fixture_digest,
            "canaries_planted": context.secrets != planned.secrets,
            "observes": _names_of(trace.observes),
            "recorded": course.calls.recorded,
            "replayed": course.calls.replayed,
        }
    )


def _happened(trace: Trace) -> dict[str, Any]:
    """The fields of a record that sum up the events. Where people only spoke they are as by default."""
    events = trace.events
    if all(type(event) is Message for event in events):
        return {}
    calls = [event for event in events if isinstance(event, ModelCallEvent)]
    names = [event.name for event in events if isinstance(event, ToolCallEvent)]
    return {
        "tools": dict(sorted(Counter(names).items())),
        "handoffs": tuple([(event.source, event.target) for event in events if isinstance(event, Handoff)]),
        "tallies": trace_tallies(trace),
        "models": tuple(sorted({call.model for call in calls if call.model})),
        "tokens": sum_tokens(calls),
    }


@lru_cache(maxsize=64)
def _names_of(observes: frozenset[Observable]) -> tuple[str, ...]:
    return tuple(sorted(each.value for each in observes))


def _detail(course: _Course, planned: PlannedCase) -> str:
    limits = planned.case.limits
    if course.stop_reason is StopReason.ANSWERED:
        return ""
    match course.stop_reason:
        case StopReason.AGENT_ERROR:
            return course.error.summary if course.error else "the agent raised"
        case StopReason.TIMEOUT:
            return f"timeout: the limit of {limits.timeout_s:g} s was reached"
        case StopReason.MAX_STEPS if course.own_limit:
            return f"max_steps: {course.own_limit}"
        case StopReason.MAX_STEPS:
            return f"max_steps: the limit of {limits.steps} steps was reached"
        case StopReason.BUDGET:
            return f"budget: the trial went above its limit of {limits.cost_usd:.12g} USD"
        case StopReason.WAITING_APPROVAL if not course.waits_as_scripted:
            return "waiting_approval: an approval stayed unanswered"
        case _:
            return ""


def _cost(trace: Trace, course: _Course, prices: Mapping[str, Price]) -> float | None:
    """The agent's own estimate when it gave one for every turn, else by model call; None = unknown."""
    reported = [cost for cost in course.reported_costs if cost is not None]
    if reported and len(reported) == len(course.reported_costs):
        return sum(reported)
    if not trace.saw(Observable.MODEL_CALLS):
        return None
    return cost_of_calls(trace.of(ModelCallEvent), prices)


async def _clean_up(environment: TrialEnvironment, course: _Course) -> None:
    try:
        await in_thread(environment.clean_up) if environment.blocking else environment.clean_up()
    except Exception as error:  # noqa: BLE001  a fixture that cannot clean up says nothing about the agent
        course.broken = course.broken or InvalidReason.FIXTURE
        course.detail = course.detail or f"clean-up: {type(error).__name__}: {error}"
