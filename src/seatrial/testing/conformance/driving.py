"""Trials of a plan: the framework's agent under the real adapter, runner and environment.

Everything runs in a thread and an event loop of its own, so that it works under any other loop.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from seatrial.agents import AGENTS
from seatrial.agents.detect import agent_for, load_agent
from seatrial.core.case import Case, Limits, Turn
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ledger import Entry
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.trial import TrialSettings, run_trial
from seatrial.testing.conformance import signals
from seatrial.testing.conformance.expected import AGENT, Plan
from seatrial.testing.conformance.script import Framework, Script
from seatrial.testing.conformance.signals import Signal

__all__ = ["Finished", "adapter_of", "agent_of", "planned_trial", "run_plan"]


@dataclass(frozen=True)
class Finished:
    """A trial of a plan."""

    index: int
    """From 1."""
    record: TrialRecord
    trace: Trace


def adapter_of(framework: Framework) -> Any:
    """The adapter's class. UsageError when its kind is not known."""
    return getattr(framework, "adapter", None) or AGENTS.load(framework.kind)


def run_plan(framework: Framework, plan: Plan) -> list[Finished]:
    """Every trial of a plan with one agent, in order of their numbers. What building the agent raises is passed on."""
    with _over_at_last(plan.over or Signal()), ThreadPoolExecutor(1, "conformance") as thread:
        return thread.submit(_trials, framework, plan).result()


@contextmanager
def _over_at_last(over: Signal) -> Iterator[None]:
    """Tools that wait until it is over do not wait for ever, whatever an adapter makes of being cancelled."""
    watch = threading.Timer(6 * signals.LIMIT_S, over.set)
    watch.daemon = True
    watch.start()
    try:
        yield
    finally:
        watch.cancel()
        over.set()


def _trials(framework: Framework, plan: Plan) -> list[Finished]:
    agent = agent_of(framework, plan.script)
    if plan.at_once:
        return _all_at_once(agent, plan)
    with asyncio.Runner(loop_factory=_Loop) as runner:
        return [runner.run(_trial(agent, plan, index)) for index in range(1, plan.trials + 1)]


def agent_of(framework: Framework, script: Script) -> Agent[TrialEnvironment]:
    """The agent of a script, as a user would have it who names what the framework builds."""
    built = framework.build(script)
    own = getattr(framework, "adapter", None)
    if own is not None:
        adapter: Agent[TrialEnvironment] = own(built, AgentSpec())
        return adapter
    spec = AgentSpec(target=built) if isinstance(built, str) else built
    if isinstance(spec, Mapping):
        spec = AgentSpec.model_validate(spec)
    return load_agent(spec) if isinstance(spec, AgentSpec) else agent_for(built, AgentSpec())


# --- one after the other ---------------------------------------------------------------------------------------------


async def _trial(agent: Agent[TrialEnvironment], plan: Plan, index: int) -> Finished:
    loop = asyncio.get_running_loop()
    if plan.overdue is not None and isinstance(loop, _Loop):
        plan.overdue.then(lambda: loop.skip(plan.timeout_s))
    record, trace = await run_trial(agent, planned_trial(plan, index), index, TrialSettings())
    return Finished(index, record, trace)


if sys.platform == "win32":
    _Usual = asyncio.ProactorEventLoop
else:
    _Usual = asyncio.SelectorEventLoop


class _Loop(_Usual):
    """An event loop whose clock can be put forward, so that a time limit is over when it is to be over."""

    skipped_s = 0.0

    def time(self) -> float:
        return float(super().time()) + self.skipped_s

    def skip(self, seconds: float) -> None:
        """Put the clock forward; from any thread."""
        self.call_soon_threadsafe(self._skip, seconds)

    def _skip(self, seconds: float) -> None:
        self.skipped_s += seconds


# --- at once ---------------------------------------------------------------------------------------------------------


class _Trials:
    """Each trial of a plan once, as a TrialSource; and what came of them, as a Sink."""

    def __init__(self, plan: Plan) -> None:
        self.finished_trials: list[Finished] = []
        self._waiting = iter([(planned_trial(plan, index), index) for index in range(1, plan.trials + 1)])

    def next(self) -> tuple[PlannedCase, int] | None:
        return next(self._waiting, None)

    def finished(self, record: Entry | TrialRecord) -> None:
        """The number is fixed."""

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.finished_trials.append(Finished(record.trial_index, record, trace))
        return record


def _all_at_once(agent: Agent[TrialEnvironment], plan: Plan) -> list[Finished]:
    trials = _Trials(plan)
    LocalExecutor(agent, TrialSettings(), concurrency=plan.trials, capture=False).run(trials, trials)
    return sorted(trials.finished_trials, key=lambda trial: trial.index)


# --- what a trial needs ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Surroundings:
    """Those of a plan's trials."""

    case: Case
    spec: FixtureSpec
    on_change: Callable[[Mapping[str, Any]], None] | None

    def environment(self, trial_index: int, seed: int) -> TrialEnvironment:
        environment = TrialEnvironment(self.case, self.spec, trial_index=trial_index, seed=seed)
        environment.recorder.on_change = self.on_change
        return environment


def planned_trial(plan: Plan, index: int) -> PlannedCase:
    """A trial of a plan, by its number, as the one trial of a case of its own."""
    first, *others = plan.says(index)
    case = Case(
        id=f"trial-{index}",
        input=first,
        turns=tuple(Turn(user=text) for text in others),
        limits=Limits(steps=plan.steps, timeout_s=plan.timeout_s),
    )
    spec = FixtureSpec.model_validate({"identity": {"agent": AGENT}, **plan.fixture})
    return PlannedCase(
        case=case,
        digest="",
        graders=(),
        trials=index,
        fixture=_Surroundings(case, spec, None if plan.ends is None else plan.ends.on_change),
    )
