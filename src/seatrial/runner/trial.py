"""One trial: set up, invoke, observe, grade, clean up. No configuration, no saving, no retries.

Whose fault a failure is decides what it becomes: what the agent raises is a failed trial; what the fixture raises is
an invalid one; what a grader raises is a GraderFailure beside the grades.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.ports import Agent, Answer, GradingContext, PlannedCase, Session, TurnInput
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
from seatrial.core.trial import InvalidReason, Leftover, TrialKey, TrialRecord
from seatrial.core.usage import Price, cost_of_calls, sum_tokens
from seatrial.environment.failure import FixtureError, as_raised, cancelled_by_us
from seatrial.environment.pace import Pace, Rates
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.spending import CostLimitReached, Spending
from seatrial.environment.surroundings import Surroundings
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.capture import Log
from seatrial.runner.grading import Grading, context_of, error_text, grade
from seatrial.runner.threads import in_thread
from seatrial.runner.users import conversation
from seatrial.runner.waiting import Places

__all__ = ["TrialSettings", "run_trial", "seed_of"]

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
    attempts_made: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Attempts on record from before the run was resumed, by case id and trial number; see `runner.remaining`."""
    on_agent_error: Callable[[BaseException], None] | None = None
    """Called with what the agent raised, before anything is cleaned up (post-mortem debugging)."""
    surroundings: Surroundings | None = None
    """Tells what trials leave behind; None: nobody looks."""


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
    detail: str = ""
    outcome: dict[str, Any] = field(default_factory=dict)
    observed: bool = False
    latency_ms: float = 0.0
    reported_costs: list[float | None] = field(default_factory=list)
    log: Log = field(default_factory=Log)


def seed_of(run_seed: int, case_id: str, trial_index: int) -> int:
    """The trial's own seed: the same for the same run seed, case and trial number, in any order of running."""
    text = f"{run_seed}/{case_id}/{trial_index}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big")


async def run_trial(
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    trial_index: int,
    settings: TrialSettings,
    attempt: int = 1,
) -> tuple[TrialRecord, Trace]:
    """Run one trial to its end; every failure but a cancellation is in the record, never raised."""
    started = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    seed = seed_of(settings.seed, planned.case.id, trial_index)
    course = _Course(started=started, seed=seed)
    environment: TrialEnvironment = planned.fixture.environment(trial_index, seed)
    watch = _Watch(settings.surroundings, str(TrialKey(case_id=planned.case.id, trial_index=trial_index)))
    environment.recorder.spending = Spending(settings.prices, planned.case.limits.cost_usd, settings.priced_only)
    environment.pace.rates = settings.rates or environment.pace.rates
    try:
        await _live(environment, agent, planned, course, settings)
        trace = _trace_of(environment, agent, course)
        context = _grading_context(planned, environment, trace, course, settings)
        grading = await grade(planned.graders, context, settings.judges)
    finally:
        try:
            await _clean_up(environment, course)
        finally:
            leftovers = watch.end(environment)
    record = _record(planned, trace, context, grading, course)
    update = {"trial_index": trial_index, "attempt": attempt, "leftovers": leftovers}
    return record.model_copy(update=update), trace


class _Watch:
    """A trial under the eyes of the surroundings, if there are any."""

    def __init__(self, surroundings: Surroundings | None, trial: str) -> None:
        self._surroundings = surroundings
        self._trial = trial
        if surroundings is not None:
            surroundings.begin(trial)

    def end(self, environment: TrialEnvironment) -> tuple[Leftover, ...]:
        if self._surroundings is None:
            return ()
        return self._surroundings.end(self._trial, environment.sources_changed())


async def _live(
    environment: TrialEnvironment,
    agent: Agent[TrialEnvironment],
    planned: PlannedCase,
    course: _Course,
    settings: TrialSettings,
) -> None:
    """Everything that needs the surroundings: reset, the agent's turns, the outcome."""
    try:
        await in_thread(environment.set_up) if environment.blocking else environment.set_up()
    except Exception as error:  # noqa: BLE001  whatever a fixture raises makes the trial invalid
        course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        course.detail = f"fixture: {type(error).__name__}: {error}"
        return
    with environment.activate(), course.log.active():
        await _agent_turns(environment, agent, planned, course, settings)
        try:
            observed = await in_thread(environment.observe) if environment.blocking else environment.observe()
        except Exception as error:  # noqa: BLE001  likewise
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
    try:
        async with limit:
            environment.pace.on_wait = _extending(limit)
            await _converse(environment, agent, planned, course)
    except (StepLimitReached, CostLimitReached):
        course.stop_reason = StopReason.MAX_STEPS
    except FixtureError as error:  # an adapter's own `reset`: its surroundings failed, not the agent
        course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        course.detail = f"fixture: {error}"
    except BaseException as error:  # an agent may raise anything, SystemExit too; only our own cancellation passes
        if cancelled_by_us(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired():
            course.stop_reason = StopReason.TIMEOUT
            return
        raised = as_raised(error)
        course.stop_reason, course.error = StopReason.AGENT_ERROR, _agent_error(raised)
        if settings.on_agent_error is not None:
            settings.on_agent_error(raised)
    course.waits_as_scripted = course.stop_reason is StopReason.WAITING_APPROVAL and environment.waits_as_scripted
    _note_limits(environment, course)


def _note_limits(environment: TrialEnvironment, course: _Course) -> None:
    """A hard stop that was reached is why the trial ended, whatever the agent made of it."""
    spending = environment.recorder.spending
    if environment.recorder.limit_reached:
        course.stop_reason, course.error = StopReason.MAX_STEPS, None
    elif spending.unpriced is not None:
        course.stop_reason, course.error, course.broken = StopReason.BUDGET, None, InvalidReason.HARNESS
        course.detail = f"budget: the price of model {spending.unpriced!r} is unknown"
    elif spending.over and course.stop_reason is not StopReason.HARNESS_ERROR:
        course.stop_reason, course.error = StopReason.BUDGET, None


def _extending(limit: asyncio.Timeout) -> Callable[[float], None]:
    """What adds time in which the agent had to wait for its turn to its time limit; may be called from any thread."""
    loop = asyncio.get_running_loop()

    def extend(seconds: float) -> None:
        when = limit.when()
        if when is not None:
            with contextlib.suppress(RuntimeError):  # the limit was reached, or the turns are over
                limit.reschedule(when + seconds)

    def on_wait(seconds: float) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has closed: a thread that outlived its trial
            loop.call_soon_threadsafe(extend, seconds)

    return on_wait


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
                answer = await _timed(session, turn, course, environment.pace)
                _take(answer, course)
                recorder.spending.add_reported(answer.cost_usd)
                if answer.stop_reason is not StopReason.ANSWERED:
                    return
                answers.append(text_of(course.outputs[-1][0]))
    finally:
        session.close()


async def _timed(session: Session, turn: TurnInput, course: _Course, pace: Pace) -> Answer:
    began, waited = time.perf_counter(), pace.waited_s
    measured: float | None = None
    try:
        answer = await in_thread(session.invoke, turn) if session.blocking else session.invoke(turn)
        finished: Answer = await answer if inspect.isawaitable(answer) else answer
        measured = finished.latency_ms
        return finished
    finally:
        own = time.perf_counter() - began - (pace.waited_s - waited)
        course.latency_ms += max(own, 0.0) * 1000 if measured is None else measured


def _take(answer: Answer, course: _Course) -> None:
    course.outputs.append((to_json(answer.output), answer.output))
    course.stop_reason = answer.stop_reason
    course.outcome.update(to_json(dict(answer.outcome)))
    course.observed = course.observed or bool(answer.outcome)
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
    planned: PlannedCase, trace: Trace, context: GradingContext, grading: Grading, course: _Course
) -> TrialRecord:
    calls = list(trace.of(ModelCallEvent))
    return TrialRecord(
        case_id=planned.case.id,
        suite=planned.case.suite,
        **grading.verdict(course.stop_reason, course.broken, foreseen=course.waits_as_scripted),
        detail=course.detail or _detail(course, planned),
        stop_reason=course.stop_reason,
        error=course.error,
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
        judge_cost_usd=grading.judge_cost_usd,
        latency_ms=course.latency_ms,
        seed=course.seed,
        started=course.started,
        case_digest=planned.digest,
        fixture_digest=planned.fixture_digest,
        canaries_planted=dict(context.secrets) != dict(planned.secrets),
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
