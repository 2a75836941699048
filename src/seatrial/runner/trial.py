"""One trial: set up, invoke, observe, grade, clean up. No configuration, no saving, no retries.

Whose fault a failure is decides what it becomes: what the agent raises is a failed trial; what the fixture raises is
an invalid one; what a grader raises is a GraderFailure beside the grades.

An attempt can be cut short from another thread: where it ran is given up (a blocked event loop, a process that died),
and whoever takes it over brings it to its end from there.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from seatrial.core.ports import Agent, GradingContext, PlannedCase
from seatrial.core.trace import AgentError, StopReason, Trace
from seatrial.core.trial import InvalidReason, Leftover, TrialRecord
from seatrial.core.usage import Price
from seatrial.environment.cancelling import cancelled_by_us
from seatrial.environment.log import Log
from seatrial.environment.model_proxy.address import ProxyAddress, TrialCalls
from seatrial.environment.model_proxy.variables import own_addresses
from seatrial.environment.pace import Rates
from seatrial.environment.surroundings import Surroundings
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.account import grading_context, record_of, trace_of
from seatrial.runner.course import Course, utc_now
from seatrial.runner.grading import Grading, grade
from seatrial.runner.recording import Recording
from seatrial.runner.threads import in_thread
from seatrial.runner.turns import agent_turns
from seatrial.runner.waiting import Places

__all__ = ["Relieved", "TrialAttempt", "TrialSettings", "Watch", "run_trial", "seed_of"]


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


def seed_of(run_seed: int, case_id: str, trial_index: int) -> int:
    """The trial's own seed: the same for the same run seed, case and trial number, in any order of running."""
    text = f"{run_seed}/{case_id}/{trial_index}"
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:6], "big")


_CANCELLED_ITSELF = "the agent cancelled the task that it ran in"


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
        case_id = planned.case.id
        seed = seed_of(settings.seed, case_id, trial_index)
        self.planned = planned
        self.environment: TrialEnvironment = planned.fixture.environment(trial_index, seed)
        self.on_agent: Callable[[bool], None] | None = None
        """Called with True when the agent's part begins, and with False when it has ended."""
        self.on_wait: Callable[[float], None] | None = None
        """Called with the seconds that the agent's calls are about to wait for their turn, from any thread."""
        self._agent = agent
        self._settings = settings
        self._numbers = {"trial_index": trial_index, "attempt": attempt}
        self._course = Course(utc_now(), seed)
        self._watch = Watch(settings.surroundings, case_id, trial_index)
        self._pid = os.getpid()
        spending = self.environment.recorder.spending
        spending.prices, spending.limit_usd = settings.prices, planned.case.limits.cost_usd
        spending.priced_only = settings.priced_only
        if settings.rates is not None:
            self.environment.pace.rates = settings.rates
        self.environment.model_base_urls = settings.model_urls
        self._recording: Recording | None = None
        if settings.proxy is not None:
            self._recording = Recording(settings.proxy, (case_id, trial_index, attempt))
            self.environment.model_base_urls = self._recording.urls()

    @property
    def deadline(self) -> float | None:
        """When the agent's time is up, on the monotonic clock; None while the agent has no say.

        Time in which its calls wait for their turn is added before they wait, also where they hold up the loop.
        """
        deadline = self._course.deadline
        return None if deadline is None else deadline + self.environment.pace.waited_s

    async def run(self) -> tuple[TrialRecord, Trace]:
        """Bring the attempt to its end; every failure but the harness's cancellation is in the record, never raised.

        Raises Relieved when it was cut short meanwhile: then another call of `run` has taken over.
        """
        while True:
            try:
                return await self._from_here()
            except asyncio.CancelledError as error:
                if cancelled_by_us(error):
                    raise
                self.cut_short(StopReason.AGENT_ERROR, detail=_CANCELLED_ITSELF)

    async def _from_here(self) -> tuple[TrialRecord, Trace]:
        course = self._course
        leftovers: tuple[Leftover, ...] = ()
        try:
            if not course.cut:
                self._watch.begin()
                await _set_up(self.environment, course)
            with own_addresses(self.environment.model_base_urls):
                if course.cut or course.ready:
                    await self._live(course)
                trace = trace_of(self.environment, self._agent, course)
                context = grading_context(self.planned, self.environment, trace, course, self._settings.prices)
                grading = await self._graded(context, course)
            self._check_still_ours(course)
        finally:
            if self._course is course and os.getpid() == self._pid:
                leftovers = await self._leave(course)
        return record_of(self.planned, trace, context, grading, course, **self._numbers, leftovers=leftovers), trace

    async def _leave(self, course: Course) -> tuple[Leftover, ...]:
        """Clean up, then look at what is left."""
        environment = self.environment
        try:
            await in_thread(environment.clean_up) if environment.blocking else environment.clean_up()
        except Exception as error:  # noqa: BLE001  a fixture that cannot clean up says nothing about the agent
            course.broken = course.broken or InvalidReason.FIXTURE
            course.detail = course.detail or f"clean-up: {type(error).__name__}: {error}"
        finally:
            leftovers = self._watch.end(environment)
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

    def _check_still_ours(self, course: Course) -> None:
        if os.getpid() != self._pid:
            os._exit(0)  # the agent forked: only the process that began the trial goes on with it
        if self._course is not course:
            raise Relieved

    async def _live(self, course: Course) -> None:
        """Everything between reset and clean-up that needs the surroundings: the agent's turns, the outcome."""
        environment = self.environment
        if not course.cut:
            if self._recording is not None:
                await self._recording.begin("agent")
            if self.on_agent is not None:
                self.on_agent(True)
            await agent_turns(
                self._agent,
                environment,
                self.planned.case,
                course,
                on_wait=self.on_wait,
                on_error=self._settings.on_agent_error,
            )
            self._check_still_ours(course)
            if self.on_agent is not None:
                self.on_agent(False)
        if self._recording is not None:
            await self._end_recording(self._recording, course)
        if environment.replayed_elsewhere:
            course.calls = course.calls.and_those(TrialCalls(environment.replayed_elsewhere))
        if course.ready and environment.outcome:
            with environment.activate():
                await _observe(environment, course)

    async def _graded(self, context: GradingContext, course: Course) -> Grading:
        """What the graders say; what one asks a model itself is recorded and replayed too."""
        graders, settings, recording = self.planned.graders, self._settings, self._recording
        if recording is None:
            return await grade(graders, context, settings.judges)
        await recording.begin("graders")
        with own_addresses(recording.urls("graders")):
            grading = await grade(graders, context, settings.judges)
        calls = await recording.finish("graders")
        course.calls = course.calls.and_those(calls)
        if calls.problem and course.broken is None:
            course.broken, course.detail = InvalidReason.HARNESS, f"cassettes: {calls.problem}"
        return grading

    async def _end_recording(self, recording: Recording, course: Course) -> None:
        """The agent's model calls have ended. What the proxy could not answer makes the trial invalid, whatever the
        agent made of it."""
        broken_off = course.cut and course.stop_reason is StopReason.HARNESS_ERROR
        course.calls = await recording.finish("agent", keep=not broken_off)
        if course.calls.problem:
            course.stop_reason, course.broken = StopReason.HARNESS_ERROR, InvalidReason.HARNESS
            course.error, course.detail = None, f"cassettes: {course.calls.problem}"


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

    _begun: bool = False

    def __init__(self, surroundings: Surroundings | None, case_id: str, trial_index: int) -> None:
        self._surroundings = surroundings
        self._trial = f"{case_id}#{trial_index}"

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


async def _set_up(environment: TrialEnvironment, course: Course) -> None:
    """From then on the surroundings are ready, or it is said why not."""
    try:
        await in_thread(environment.set_up) if environment.blocking else environment.set_up()
    except Exception as error:  # noqa: BLE001  whatever a fixture raises makes the trial invalid
        course.fixture_failed(f"{type(error).__name__}: {error}")
    else:
        course.ready = True


async def _observe(environment: TrialEnvironment, course: Course) -> None:
    try:
        observed = await in_thread(environment.observe) if environment.blocking else environment.observe()
    except Exception as error:  # noqa: BLE001  whatever an observer raises makes the trial invalid
        course.broken, course.detail = InvalidReason.FIXTURE, f"outcome: {type(error).__name__}: {error}"
        return
    if observed is not None:
        course.observed = True
        course.outcome.update(observed)
