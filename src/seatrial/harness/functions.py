"""The function-style harness: an agent that is a function, cases that are (name, task, check). No project needed.

harness = Harness(agent)
harness.add("median", {"question": "median of 1, 2, 9"}, lambda output: (output == 2, f"got {output}"))
harness.report(harness.run(), path="eval_results.json")
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.agents.detect import agent_for, load_agent
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade import Grade
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.run import RunInfo, RunStatus
from seatrial.core.run_options import check_options
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.workspace import FileFixture
from seatrial.errors import UsageError
from seatrial.graders.external import grade_of
from seatrial.harness.scratch import Scratch
from seatrial.report.files import write_json
from seatrial.report.harness_report import harness_lines
from seatrial.runner.executors.local import LocalExecutor
from seatrial.runner.schedule import FixedTrials
from seatrial.runner.trial import TrialSettings
from seatrial.verdict.harness_results import HarnessResult, harness_json, harness_results
from seatrial.verdict.metrics import case_results

__all__ = ["Check", "Harness"]

Check = Callable[[Any], Any]
"""Called with the agent's real output; returns bool or (bool, detail)."""


@dataclass(frozen=True)
class _CheckGrader:
    check: Check
    name: str = "check"
    required: bool = True
    needs_answer: bool = True
    blocking: bool = True

    def grade(self, context: GradingContext) -> Grade:
        return grade_of(self.check(context.output), name=self.name)


@dataclass
class _Memory:
    """A Sink that keeps records only."""

    records: list[TrialRecord] = field(default_factory=list)

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


class Harness:
    """Runs an agent on (name, task, check) cases and reports which passed.

    `agent` is anything a project's `agent:` may be: a function, a class, a graph, or `module:object` as text. Raises
    UsageError for a limit or a number of trials at once that is none.
    """

    def __init__(self, agent: Any, *, timeout_s: float = 60, concurrency: int = 1) -> None:
        check_options({"timeout_s": timeout_s, "concurrency": concurrency})
        self._agent = agent
        self._timeout_s = timeout_s
        self._concurrency = concurrency
        self._cases: dict[str, tuple[Any, Check]] = {}

    def add(self, name: str, task: Any, check: Check) -> Harness:
        """Add a case: the agent is called with `task`, the check with what the agent returned.

        Raises UsageError when the name was used before or the check cannot be called. Gives the harness itself.
        """
        if name in self._cases:
            raise UsageError(f"the harness has a case named {name!r} already")
        if not callable(check):
            raise UsageError(f"case {name!r}: a check is a function of the output, not a {type(check).__name__}")
        self._cases[name] = (task, check)
        return self

    def extend(self, cases: Iterable[tuple[str, Any, Check]]) -> Harness:
        """Add several cases."""
        for name, task, check in cases:
            self.add(name, task, check)
        return self

    def run(self) -> tuple[HarnessResult, ...]:
        """Run every case once; works inside a running event loop too."""
        spec = AgentSpec(target=self._agent if isinstance(self._agent, str) else None)
        agent = load_agent(spec) if isinstance(self._agent, str) else agent_for(self._agent, spec)
        scratch, memory = Scratch(), _Memory()
        planned = [self._planned(name, order, scratch) for order, name in enumerate(self._cases)]
        try:
            executor = LocalExecutor(agent, TrialSettings(), self._concurrency, capture=False)
            executor.run(FixedTrials(planned), memory)
        finally:
            scratch.remove()
        info = RunInfo(run_id="harness", status=RunStatus.FINISHED, agent={"deterministic": True})
        return harness_results(case_results(info, [item.case for item in planned], memory.records))

    def _planned(self, name: str, order: int, scratch: Scratch) -> PlannedCase:
        task, check = self._cases[name]
        case = Case.model_validate({"id": name, "limits": {"timeout_s": float(self._timeout_s)}})
        case = case.model_copy(update={"input": task})  # whatever it is, the agent gets the very object
        fixture = FileFixture(FixtureSpec(), case=case, config={}, tools_mode="stand_in", scratch=scratch)
        return PlannedCase(case, case.id, (_CheckGrader(check),), trials=1, fixture=fixture, order=order)

    def report(self, results: Sequence[HarnessResult], path: str | Path | None = None) -> None:
        """Print `3/4 passed` and a line a case; save them as JSON when a path is given."""
        print("\n".join(harness_lines(results)))  # noqa: T201  what it is for
        if path is not None:
            write_json(Path(path), harness_json(results))
