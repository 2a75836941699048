"""pydantic-evals: `Dataset.evaluate` with its own EqualsExpected and no progress bar.

It keeps nothing on disk itself. Where the row is about traces, the report is written as JSON by its own adapter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected, Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReport, EvaluationReportAdapter

from benchmarks.task import Ready, Task, act, act_blocking, calls, question

__all__ = ["compare", "kept", "trials"]


class _AnswerEquals(Evaluator[Any, Any, Any]):
    """Exact match where the output holds calls beside the answer."""

    def evaluate(self, ctx: EvaluatorContext[Any, Any, Any]) -> bool:
        return bool(ctx.output["answer"] == ctx.expected_output)


def trials(task: Task, folder: Path) -> Ready:
    """Every case evaluated."""
    calling = task.agent in ("calls", "tools")
    cases = [Case(name=f"c{n}", inputs=question(n), expected_output=question(n)) for n in range(task.cases)]
    evaluators = [_AnswerEquals() if calling else EqualsExpected()]
    dataset: Dataset[Any, Any, Any] = Dataset(name="bench", cases=cases, evaluators=evaluators)
    agent = _agent(task)

    def run() -> EvaluationReport[Any, Any, Any]:
        done = dataset.evaluate(agent, max_concurrency=task.concurrency, progress=False, repeat=task.trials_each)
        report = asyncio.run(done)
        if calling:
            (folder / "kept").mkdir()
            (folder / "kept" / "report.json").write_bytes(EvaluationReportAdapter.dump_json(report))
        return report

    return Ready(run, _passed)


def _passed(report: EvaluationReport[Any, Any, Any]) -> int:
    return sum(all(result.value for result in case.assertions.values()) for case in report.cases)


def _agent(task: Task) -> Callable[[str], Any]:
    async def plain(asked: str) -> str:
        await act(task)
        return asked

    async def calling(asked: str) -> dict[str, Any]:
        made = [{"name": "look", "arguments": {"n": number}, "result": text} for number, text in calls(asked)]
        return {"answer": asked, "calls": made}

    def blocking(asked: str) -> str:
        act_blocking(task)
        return asked

    return {"calls": calling, "tools": calling, "blocking": blocking}.get(task.agent, plain)


def kept(task: Task, folder: Path) -> Ready:
    """A run that was killed left nothing: the report exists in memory only."""
    return Ready(lambda: None, lambda _: sum(1 for _ in (folder / "kept").rglob("*")))


def compare(task: Task, folder: Path) -> Ready:
    """Two reports in memory, rendered as a table of differences; there is no statistic."""
    before, after = trials(task, folder).run(), trials(task, folder).run()
    return Ready(lambda: after.render(baseline=before, width=200), lambda text: task.cases if text else 0)
