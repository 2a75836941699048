"""The agent's part of a trial: its turns, under the time limit, and what became of them.

Whatever the agent raises stands in the Course afterwards; only the harness's own cancellation passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import traceback
from collections.abc import Callable
from types import TracebackType
from typing import Any

from seatrial.core.case import Case
from seatrial.core.encoding import to_json
from seatrial.core.figures import figure_of
from seatrial.core.ports import Agent, Answer, Session, TurnInput
from seatrial.core.trace import AgentError, StopReason, text_of
from seatrial.core.trial import InvalidReason
from seatrial.environment.cancelling import cancelled_by_us, pass_over_strays
from seatrial.environment.failure import FixtureError, as_raised
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.spending import CostLimitReached
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.course import Course, own_time
from seatrial.runner.grading import error_text
from seatrial.runner.limit import TimeLimit
from seatrial.runner.threads import in_thread
from seatrial.runner.users import conversation, inputs_of

__all__ = ["agent_turns"]

_TRACEBACK_KEPT = 8_000


async def agent_turns(
    agent: Agent[TrialEnvironment],
    environment: TrialEnvironment,
    case: Case,
    course: Course,
    *,
    on_wait: Callable[[float], None] | None = None,
    on_error: Callable[[BaseException], None] | None = None,
) -> None:
    """Every turn of a trial, as far as it gets.

    `on_wait` is told of the seconds that the agent's calls are about to wait for their turn, `on_error` of what the
    agent raised, before anything is cleaned up.
    """
    task: asyncio.Task[Any] = asyncio.current_task()  # type: ignore[assignment]  # within one
    environment.pace.on_wait = on_wait
    limit = TimeLimit(case.limits.timeout_s, environment.pace)
    course.deadline = limit.deadline
    try:
        with environment.activate():
            await limit.run(_converse(environment, agent, case, course))
    except (StepLimitReached, CostLimitReached) as reached:
        course.stop_reason, course.own_limit = StopReason.MAX_STEPS, str(reached)
    except FixtureError as error:  # an adapter's own `reset`: its surroundings failed, not the agent
        course.fixture_failed(str(error))
    except BaseException as error:  # an agent may raise anything, SystemExit too; only our own cancellation passes
        if cancelled_by_us(error):
            raise
        if isinstance(error, TimeoutError) and limit.expired:
            course.stop_reason = StopReason.TIMEOUT
            return
        raised = as_raised(error)
        course.stop_reason, course.error = StopReason.AGENT_ERROR, _agent_error(raised)
        course.deadline = None
        if on_error is not None:
            on_error(raised)
    finally:
        course.deadline = None
        if task.cancelling():
            await pass_over_strays()
    if course.stop_reason is StopReason.WAITING_APPROVAL:
        course.waits_as_scripted = environment.waits_as_scripted
    _note_limits(environment, course)


def _note_limits(environment: TrialEnvironment, course: Course) -> None:
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


async def _converse(environment: TrialEnvironment, agent: Agent[TrialEnvironment], case: Case, course: Course) -> None:
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


async def _played(environment: TrialEnvironment, session: Session, case: Case, course: Course) -> None:
    """A conversation in which somebody answers the agent."""
    answers: list[str] = []
    async with contextlib.aclosing(conversation(case, answers)) as inputs:
        async for value in inputs:
            if not await _turn(environment, session, case, value, course):
                return
            answers.append(text_of(course.outputs[-1][0]))


async def _turn(environment: TrialEnvironment, session: Session, case: Case, value: Any, course: Course) -> bool:
    """One turn; whether the agent answered it."""
    recorder, pace = environment.recorder, environment.pace
    turn = TurnInput(case.id, value, len(course.outputs) + 1, environment.fixture_name)
    recorder.begin_turn(turn.number, turn.message or value)
    began = course.turn_began = own_time(pace)
    measured: float | None = None
    try:
        answer = await in_thread(session.invoke, turn) if session.blocking else session.invoke(turn)
        finished = answer if isinstance(answer, Answer) else await answer
        if finished.latency_ms is not None:
            measured = figure_of(finished.latency_ms)
    finally:
        course.turn_began = None
        course.latency_ms += max(own_time(pace) - began, 0.0) * 1000 if measured is None else measured
    _take(finished, course)
    if finished.cost_usd is not None and (estimate := figure_of(finished.cost_usd)) is not None:
        recorder.estimate(estimate)
    return finished.stop_reason is StopReason.ANSWERED


def _take(answer: Answer, course: Course) -> None:
    course.outputs.append((to_json(answer.output), answer.output))
    course.stop_reason, course.own_limit = answer.stop_reason, answer.own_limit
    if answer.outcome:
        course.outcome.update(to_json(dict(answer.outcome)))
        course.observed = True


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
