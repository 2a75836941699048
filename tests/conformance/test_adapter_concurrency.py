"""Faults seen in the field that an adapter could bring back, with every framework there is."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import seatrial
from conformance.frameworks import frameworks_in, modules
from projects import case, write_project
from seatrial.core.grade import Grade, Verdict
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.trial import TrialSettings
from seatrial.testing.conformance import AgentScript, Ask, Framework, Line, Script, Tool
from seatrial.testing.conformance.driving import agent_of, planned_trial
from seatrial.testing.conformance.expected import Expected, Plan
from seatrial.testing.conformance.signals import Meeting


class Meter:
    """Counts what is active at once."""

    def __init__(self) -> None:
        self.lock, self.active, self.peak = threading.Lock(), 0, 0

    def __enter__(self) -> None:
        with self.lock:
            self.active += 1
            self.peak = max(self.peak, self.active)

    def __exit__(self, *_: object) -> None:
        with self.lock:
            self.active -= 1


class Judge:
    """A grader that is as busy as the agent."""

    name, required, needs_answer, blocking = "judge", True, True, False

    def __init__(self, meter: Meter) -> None:
        self.meter = meter

    async def grade(self, context: GradingContext) -> Grade:
        with self.meter:
            for _ in range(5):
                await asyncio.sleep(0)
        return Grade(verdict=Verdict.PASS)


class Trials:
    """As many trials as there are, as a source and a sink."""

    def __init__(self, trials: list[PlannedCase]) -> None:
        self.waiting = iter(enumerate(trials, 1))
        self.records: list[TrialRecord] = []

    def next(self) -> tuple[PlannedCase, int] | None:
        index, planned = next(self.waiting, (0, None))
        return None if planned is None else (planned, index)

    def finished(self, record: TrialRecord) -> None:
        pass

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


def visiting(meter: Meter, meeting: Meeting, visitors: list[str]) -> Script:
    """Calls a tool in which the first trials wait until as many are there as are allowed."""

    async def visit(visitor: str) -> str:
        """Pay a visit."""
        visitors.append(visitor)
        with meter:
            await meeting.join()
        return f"welcome, {visitor}"

    def in_trial(index: int) -> Script:
        ask = Ask("visit", {"visitor": str(index)}, f"call-{index}")
        return Script((AgentScript("alice", (Line(calls=(ask,)), Line("done")), tools=(Tool(visit),)),))

    return replace(in_trial(1), in_trial=in_trial)


def run_visits(framework: Framework, cap: int) -> tuple[Meter, list[str], list[TrialRecord]]:
    meter, visitors = Meter(), list[str]()
    script = visiting(meter, Meeting(cap), visitors)
    plan = Plan(script, lambda _: Expected(), trials=30)
    planned = [replace(planned_trial(plan, index), graders=(Judge(meter),)) for index in range(1, 31)]
    trials = Trials(planned)
    LocalExecutor(agent_of(framework, script), TrialSettings(), cap, capture=False).run(trials, trials)
    return meter, visitors, trials.records


@pytest.mark.slow
@pytest.mark.parametrize("cap", [1, 3])
@pytest.mark.parametrize("module", modules())
def test_bl_068_the_cap_counts_agents_and_graders_of_every_adapter(module: str, cap: int) -> None:
    for framework in frameworks_in(module):
        meter, visitors, records = run_visits(framework, cap)
        assert [record.status for record in records] == ["passed"] * 30
        assert meter.peak == cap
        assert sorted(visitors, key=int) == [str(index) for index in range(1, 31)]
        if cap == 1:
            assert visitors == sorted(visitors, key=int), "the order is that of the file"


@pytest.mark.slow
@pytest.mark.parametrize("module", modules())
async def test_bl_070_the_sync_entry_works_inside_a_running_loop(module: str, tmp_path: Path) -> None:
    before = asyncio.get_event_loop_policy()
    loop = asyncio.get_running_loop()
    for number, framework in enumerate(frameworks_in(module)):
        folder = write_project(
            tmp_path / str(number), {"cases/smoke/a.yaml": case("a"), "cases/smoke/b.yaml": case("b")}
        )
        built = framework.build(Script((AgentScript("alice", (Line("hello"),)),)))
        agent = AgentSpec.model_validate(built) if isinstance(built, Mapping) else built
        run = seatrial.run(folder, agent=agent)
        assert (run.exit_code, len(run.trials)) == (0, 2)
    assert asyncio.get_event_loop_policy() is before
    assert asyncio.get_running_loop() is loop
