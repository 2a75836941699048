"""Trials of LangGraph graphs for tests: the real adapter and runner around a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.agents.detect import agent_for
from seatrial.core.case import Case, Limits, Turn
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Approval, Handoff, ModelCallEvent, ToolCallEvent, Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.trial import TrialEnvironment
from seatrial.runner.trial import TrialSettings, run_trial


@dataclass(frozen=True)
class OneFixture:
    """Surroundings of one case, from a fixture's data."""

    case: Case
    spec: FixtureSpec

    def environment(self, trial_index: int, seed: int) -> TrialEnvironment:
        return TrialEnvironment(self.case, self.spec, trial_index=trial_index, seed=seed)


@dataclass(frozen=True)
class Driven:
    """A finished trial."""

    record: TrialRecord
    trace: Trace

    @property
    def output(self) -> Any:
        return self.trace.output

    @property
    def calls(self) -> list[ToolCallEvent]:
        return list(self.trace.tool_calls)

    @property
    def call(self) -> ToolCallEvent:
        (call,) = self.trace.tool_calls
        return call

    @property
    def handoffs(self) -> list[Handoff]:
        return list(self.trace.handoffs)

    @property
    def approvals(self) -> list[Approval]:
        return list(self.trace.approvals)

    @property
    def model_calls(self) -> list[ModelCallEvent]:
        return list(self.trace.of(ModelCallEvent))

    @property
    def states(self) -> list[tuple[str, str]]:
        return [(call.name, call.state.value) for call in self.trace.tool_calls]


@dataclass(frozen=True)
class Drive:
    """How a trial is driven."""

    target: Any
    spec: AgentSpec = field(default_factory=AgentSpec)
    steps: int = 20

    def planned(self, given: Any, turns: Sequence[str], fixture: dict[str, Any]) -> PlannedCase:
        case = Case(
            id="case",
            input=given,
            turns=tuple(Turn(user=text) for text in turns),
            limits=Limits(steps=self.steps, timeout_s=30),
        )
        spec = FixtureSpec.model_validate(fixture)
        return PlannedCase(case=case, digest="", graders=(), trials=1, fixture=OneFixture(case, spec))

    async def arun(self, given: Any = "go", *turns: str, **fixture: Any) -> Driven:
        planned = self.planned(given, turns, fixture)
        record, trace = await run_trial(agent_for(self.target, self.spec), planned, 1, TrialSettings())
        return Driven(record, trace)

    def run(self, given: Any = "go", *turns: str, **fixture: Any) -> Driven:
        return asyncio.run(self.arun(given, *turns, **fixture))


def drive(target: Any, given: Any = "go", *turns: str, steps: int = 20, spec: Any = None, **fixture: Any) -> Driven:
    """Run one trial; keyword arguments are keys of the fixture."""
    return Drive(target, spec or AgentSpec(), steps).run(given, *turns, **fixture)
