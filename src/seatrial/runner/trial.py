"""One trial: set up, invoke, observe, grade, clean up. No configuration, no saving, no retries.

Whose fault a failure is decides what it becomes: what the agent raises is a failed trial; what the fixture raises is
an invalid one; what a grader raises is a GraderFailure beside the grades.

An attempt can be cut short from another thread: where it ran is given up (a blocked event loop, a process that died),
and whoever takes it over brings it to its end from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import os
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.grade import Grade, GraderFailure
from seatrial.core.ports import Agent, Answer, Grader, GradingContext, PlannedCase, Session, TurnInput
from seatrial.core.trace import (
    AgentError,
    Handoff,
    ModelCallEvent,
    Observable,
    StopReason,
    ToolCallEvent,
    Trace,
    text_of,
)
from seatrial.core.trajectory import trace_tallies
from seatrial.core.trial import InvalidReason, TrialRecord, status_of
from seatrial.core.usage import Price, cost_of_calls, sum_tokens
from seatrial.environment.failure import FixtureError
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import Log
from seatrial.runner.threads import in_thread
from seatrial.runner.users import conversation

__all__ = ["Relieved", "TrialAttempt", "TrialSettings", "run_trial", "seed_of"]

_TRACEBACK_KEPT = 8_000


@dataclass(frozen=True)
class TrialSettings:
    """What holds for every trial of a run."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    seed: int = 0
    on_agent_error: Callable[[BaseException], None] | None = None
    """Called with what the agent raised, before anything is cleaned up (post-mortem debugging)."""


@dataclass
class _Grading:
    grades: list[Grade] = field(default_factory=list)
    failures: list[GraderFailure] = field(default_factory=list)


@dataclass
class _Course:
    """How far a trial got; filled in as it goes, so that an exception loses nothing."""

    started: str
    seed: int
    outputs: list[Any] = field(default_factory=list)
    stop_reason: StopReason = StopReason.ANSWERED
    error: AgentError | None = None
    broken: InvalidReason | None = None
    detail: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)
    observed: bool = False
    latency_ms: float = 0.0
    reported_costs: list[float | None] = field(default_factory=list)
    log: Log = field(default_factory=Log)
    deadline: float | None = None
    """When the agent's time is up, on the monotonic clock; None while the agent has no say."""
    turn_began: float | None = None
    """When the turn that has not ended began, on the performance counter."""
    ready: bool = False
    """The surroundings stand, and can be observed."""
    cut: bool = False
    """The agent's part is over, whatever its code still does."""

    def copy(self) -> _Course:
        """What is known so far, out of reach of whoever fills in this one."""
        spent = 0.0 if self.turn_began is None else (time.perf_counter() - self.turn_began) * 1000
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
        started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        seed = seed_of(settings.seed, planned.case.id, trial_index)
        self.planned = planned
        self.environment: TrialEnvironment = planned.fixture.environment(trial_index, seed)
        self.on_agent: Callable[[bool], None] = _nothing
        """Called with True when the agent's part begins, and with False when it has ended."""
        self._agent = agent
        self._settings = settings
        self._numbers = {"trial_index": trial_index, "attempt": attempt}
        self._course = _Course(started=started, seed=seed)
        self._pid = os.getpid()

    @property
    def deadline(self) -> float | None:
        """When the agent's time is up, on the monotonic clock; None while the agent has no say."""
        return self._course.deadline

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Bring the attempt to its end; every failure but a cancellation is in the record, never raised.

        Raises Relieved when it was cut short meanwhile: then another call of `run` has taken over.
        """
        course = self._course
        try:
            await self._live(course)
            trace = _trace_of(self.environment, self._agent, course)
            context = _grading_context(self.planned, self.environment, trace, course, self._settings)
            grading = await _grade(self.planned.graders, context)
            self._check_still_ours(course)
        finally:
            if self._course is course and os.getpid() == self._pid:
                await _clean_up(self.environment, course)
        record = _record(self.planned, trace, context, grading, course)
        return record.model_copy(update=self._numbers), trace

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
        course = self._course.copy()
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
        if not course.cut and not await _set_up(environment, course):
            return
        with environment.activate(), course.log.active():
            if not course.cut:
                self.on_agent(True)
                await _agent_turns(environment, self._agent, self.planned, course, self._settings)
                self._check_still_ours(course)
                self.on_agent(False)
            if course.ready:
                await _observe(environment, course)


def _nothing(_: bool) -> None:
    return


async def run_trial(
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    trial_index: int,
    settings: TrialSettings,
    attempt: int = 1,
) -> tuple[TrialRecord, Trace]:
    """Run one trial to its end; every failure but a cancellation is in the record, never raised."""
    return await TrialAttempt(agent, planned, trial_index, settings, attempt).run()


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
    environment: TrialEnvironment,
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    course: _Course,
    settings: TrialSettings,
) -> None:
    """The agent's part, under the time limit; what it raises stands in `course` afterwards."""
    limit = asyncio.timeout(planned.case.limits.timeout_s)
    course.deadline = time.monotonic() + planned.case.limits.timeout_s
    try:
        async with limit:
            await _converse(environment, agent, planned, course)
    except StepLimitReached:
        course.stop_reason = StopReason.MAX_STEPS
    except FixtureError as error:  # an adapter's own `reset`: its surroundings failed, not the agent
        course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        course.detail = f"fixture: {error}"
    except BaseException as error:  # an agent may raise anything, SystemExit too; only our own cancellation passes
        if _cancelled_by_us(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            course.stop_reason = StopReason.TIMEOUT
            return
        course.stop_reason, course.error = StopReason.AGENT_ERROR, _agent_error(error)
        course.deadline = None
        if settings.on_agent_error is not None:
            settings.on_agent_error(error)
    finally:
        course.deadline = None
    if environment.recorder.limit_reached:
        course.stop_reason, course.error = StopReason.MAX_STEPS, None


def _cancelled_by_us(error: BaseException) -> bool:
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


async def _converse(
    environment: TrialEnvironment, agent: Agent[TrialEnvironment], planned: PlannedCase, course: _Course
) -> None:
    case, recorder = planned.case, environment.recorder
    session = await in_thread(agent.open, environment) if agent.blocking else agent.open(environment)
    answers: list[str] = []
    try:
        number = 0
        async with contextlib.aclosing(conversation(case, answers)) as inputs:
            async for value in inputs:
                number += 1
                recorder.turn = number
                turn = TurnInput(case_id=case.id, input=value, number=number, fixture=environment.fixture_name)
                recorder.message("user", turn.message or value)
                answer = await _timed(session, turn, course)
                _take(answer, course)
                if answer.stop_reason is not StopReason.ANSWERED:
                    return
                answers.append(text_of(course.outputs[-1][0]))
    finally:
        session.close()


async def _timed(session: Session, turn: TurnInput, course: _Course) -> Answer:
    began = course.turn_began = time.perf_counter()
    measured: float | None = None
    try:
        answer = await in_thread(session.invoke, turn) if session.blocking else session.invoke(turn)
        finished: Answer = await answer if inspect.isawaitable(answer) else answer
        measured = finished.latency_ms
        return finished
    finally:
        course.turn_began = None
        course.latency_ms += (time.perf_counter() - began) * 1000 if measured is None else measured


def _take(answer: Answer, course: _Course) -> None:
    course.outputs.append((to_json(answer.output), answer.output))
    course.stop_reason = answer.stop_reason
    course.outcome.update(to_json(dict(answer.outcome)))
    course.observed = course.observed or bool(answer.outcome)
    course.reported_costs.append(answer.cost_usd)


def _agent_error(error: BaseException) -> AgentError:
    lines = traceback.format_exception(type(error), error, _agents_own(error.__traceback__))
    name = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
    return AgentError(type=name, message=_text(error), traceback="".join(lines)[-_TRACEBACK_KEPT:])


def _agents_own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback without the harness's own frames before the agent's."""
    at = trace
    while at is not None and at.tb_frame.f_globals.get("__name__", "").startswith("seatrial."):
        at = at.tb_next
    return at or trace


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:  # noqa: BLE001  a hostile __str__ must not hide the failure
        return f"<its text raised {type(broken).__name__}>"


def _trace_of(environment: TrialEnvironment, agent: Agent[TrialEnvironment], course: _Course) -> Trace:
    recorder = environment.recorder
    events = recorder.freeze()
    observes = frozenset(agent.observes | recorder.observes)
    model_calls = sum(isinstance(event, ModelCallEvent) for event in events)
    tool_calls = sum(isinstance(event, ToolCallEvent) for event in events)
    by_tools = not model_calls and Observable.MODEL_CALLS not in observes
    seen = Observable.TOOL_CALLS in observes if by_tools else True
    return Trace(
        events=events,
        observes=observes,
        output=course.outputs[-1][0] if course.outputs and course.stop_reason is StopReason.ANSWERED else None,
        outputs=tuple(output for output, _ in course.outputs),
        stop_reason=course.stop_reason,
        error=course.error,
        ordered=recorder.ordered,
        steps=(tool_calls if by_tools else model_calls) if seen else None,
        steps_are_tool_calls=by_tools and seen,
        log=course.log.text,
    )


def _grading_context(
    planned: PlannedCase,
    environment: TrialEnvironment,
    trace: Trace,
    course: _Course,
    settings: TrialSettings,
) -> GradingContext:
    return GradingContext(
        case=planned.case,
        trace=trace,
        outcome=course.outcome if course.observed else None,
        output=course.outputs[-1][1] if course.outputs else None,
        expected=planned.case.expected,
        secrets=environment.secrets,
        rules=planned.rules,
        latency_ms=course.latency_ms,
        cost_usd=_cost(trace, course, settings.prices),
    )


def _record(
    planned: PlannedCase, trace: Trace, context: GradingContext, grading: _Grading, course: _Course
) -> TrialRecord:
    calls = list(trace.of(ModelCallEvent))
    status, invalid = status_of(grading.grades, grading.failures, course.stop_reason, course.broken)
    return TrialRecord(
        case_id=planned.case.id,
        suite=planned.case.suite,
        status=status,
        invalid_reason=invalid,
        detail=course.detail or _detail(course, planned),
        stop_reason=course.stop_reason,
        error=course.error,
        grades=tuple(grading.grades),
        grader_failures=tuple(grading.failures),
        output=trace.output,
        outcome=None if context.outcome is None else dict(context.outcome),
        steps=trace.steps,
        steps_are_tool_calls=trace.steps_are_tool_calls,
        tools=dict(sorted(Counter(call.name for call in trace.tool_calls).items())),
        handoffs=tuple((handoff.source, handoff.target) for handoff in trace.of(Handoff)),
        tallies=trace_tallies(trace),
        models=tuple(sorted({call.model for call in calls if call.model})),
        tokens=sum_tokens(calls),
        cost_usd=context.cost_usd,
        latency_ms=course.latency_ms,
        seed=course.seed,
        started=course.started,
        case_digest=planned.digest,
        observes=tuple(sorted(trace.observes)),
    )


def _detail(course: _Course, planned: PlannedCase) -> str:
    limits = planned.case.limits
    match course.stop_reason:
        case StopReason.AGENT_ERROR:
            return course.error.summary if course.error else "the agent raised"
        case StopReason.TIMEOUT:
            return f"timeout: the limit of {limits.timeout_s:g} s was reached"
        case StopReason.MAX_STEPS:
            return f"max_steps: the limit of {limits.steps} steps was reached"
        case StopReason.WAITING_APPROVAL:
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


async def _grade(graders: Sequence[Grader], context: GradingContext) -> _Grading:
    """Every grader that applies, in order. One that breaks is on record and stops no other."""
    grading = _Grading()
    if context.trace.stop_reason is StopReason.HARNESS_ERROR:
        return grading
    for grader in graders:
        if grader.needs_answer and not context.trace.answered:
            continue
        try:
            grade = await in_thread(grader.grade, context) if grader.blocking else grader.grade(context)
            grade = await grade if inspect.isawaitable(grade) else grade
        except Exception as error:  # noqa: BLE001  the grader call: what it raises is its own failure
            grading.failures.append(_grader_failure(grader, error))
            continue
        if grade is not None:
            required = grader.required and grade.required
            grading.grades.append(grade.model_copy(update={"name": grader.name, "required": required}))
    return grading


def _grader_failure(grader: Grader, error: Exception) -> GraderFailure:
    kind = type(error).__name__
    return GraderFailure(name=grader.name, error=kind, message=_text(error), required=grader.required)


async def _clean_up(environment: TrialEnvironment, course: _Course) -> None:
    try:
        await in_thread(environment.clean_up) if environment.blocking else environment.clean_up()
    except Exception as error:  # noqa: BLE001  a fixture that cannot clean up says nothing about the agent
        course.broken = course.broken or InvalidReason.FIXTURE
        course.detail = course.detail or f"clean-up: {type(error).__name__}: {error}"
