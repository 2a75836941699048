"""What a trial costs: turn by turn, as the agent said, else by its model calls."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seatrial as api
from projects import write_project
from seatrial import AgentRun, ModelCall, current_trial
from seatrial.agents.detect import agent_for
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.trace import StopReason, Trace
from seatrial.core.trial import TrialRecord
from seatrial.core.usage import Price, known_cost_of_trace
from seatrial.environment.workspace import FileFixture
from seatrial.runner.trial import TrialSettings, run_trial

PRICES = {"m": Price(input=1_000_000, output=0)}
"""A dollar an input token."""


def paid(tokens: int, model: str = "m") -> list[dict[str, object]]:
    return [{"model": model, "input": tokens, "output": 0}]


def trial(turns: Sequence[AgentRun | str | Exception], limit: float | None = None) -> tuple[TrialRecord, Trace]:
    """A trial whose agent answers, or raises, this turn by turn."""
    answers = iter(turns)

    def agent(task: str) -> object:
        answer = next(answers)
        if isinstance(answer, Exception):
            current_trial().record(ModelCall("m", 2, 0))
            raise answer
        return answer

    limits = {} if limit is None else {"cost_usd": limit}
    case = Case(id="c", input="go", turns=[{"user": f"turn {n}"} for n in range(1, len(turns))], limits=limits)
    planned = PlannedCase(case, "", (), 1, FileFixture(FixtureSpec(), case=case))
    return asyncio.run(run_trial(agent_for(agent, AgentSpec()), planned, 1, TrialSettings(prices=PRICES)))


@pytest.mark.parametrize(
    ("turns", "cost"),
    [
        ([AgentRun("x", usage=paid(2)), AgentRun("x", estimated_cost_usd=0.5)], 2.5),
        ([AgentRun("x", estimated_cost_usd=0.5), AgentRun("x", usage=paid(2))], 2.5),
        ([AgentRun("x", usage=paid(2)), AgentRun("x", usage=paid(9), estimated_cost_usd=0.5)], 2.5),
        ([AgentRun("x", estimated_cost_usd=0.25), AgentRun("x", estimated_cost_usd=0.5)], 0.75),
        ([AgentRun("x", estimated_cost_usd=0.5), AgentRun("x", usage=paid(1, "unheard"))], None),
        ([AgentRun("x", usage=paid(1, "unheard"), estimated_cost_usd=0.5), AgentRun("x", usage=paid(2))], 2.5),
        ([AgentRun("x", estimated_cost_usd=0.5), "says nothing"], None),
        (["says nothing", AgentRun("x", estimated_cost_usd=0.5)], None),
        ([AgentRun("x", estimated_cost_usd=0.5), RuntimeError("after a call of 2 USD")], 2.5),
    ],
)
def test_a_trial_costs_turn_by_turn_what_the_agent_said_else_its_model_calls(
    turns: list[AgentRun | str | Exception], cost: float | None
) -> None:
    assert trial(turns)[0].cost_usd == cost


ESTIMATES = st.one_of(st.none(), st.integers(0, 8).map(lambda eighths: eighths / 8))


@given(st.lists(st.tuples(ESTIMATES, st.integers(0, 3)), min_size=1, max_size=4), st.integers(0, 40))
def test_the_limit_counts_what_the_record_says(turns: list[tuple[float | None, int]], eighths: int) -> None:
    answers = [AgentRun("x", usage=paid(tokens), estimated_cost_usd=estimate) for estimate, tokens in turns]
    costs = [tokens if estimate is None else estimate for estimate, tokens in turns]
    record, trace = trial(answers, limit := eighths / 8 + 1 / 16)
    begun = len(trace.outputs)
    assert record.cost_usd == math.fsum(costs[:begun]) == known_cost_of_trace(trace, PRICES)
    assert (record.stop_reason is StopReason.BUDGET) == (record.cost_usd > limit)
    assert begun == len(turns) or record.stop_reason is StopReason.BUDGET  # above it no further turn begins
    assert math.fsum(costs[: begun - 1]) <= limit


def test_what_is_known_of_an_unknown_cost_has_the_estimates_of_its_other_turns() -> None:
    record, trace = trial([AgentRun("x", estimated_cost_usd=0.5), AgentRun("x", usage=[*paid(2), *paid(1, "unheard")])])
    assert record.cost_usd is None
    assert known_cost_of_trace(trace, PRICES) == 2.5


AGENT = """
    import os
    from seatrial import AgentRun

    def build(environment):
        turns = iter([AgentRun("x", usage=[{"model": "m", "input": 20_000, "output": 0}]),
                      AgentRun("done", estimated_cost_usd=0.9), None])
        def answer(message):
            answered = next(turns)
            return answered or os._exit(3)
        return answer
    """


def two_turns(folder: Path, *turns: str) -> Path:
    text = (
        f"id: a\ninput: go\nturns: [{', '.join(f'{{user: {turn}}}' for turn in turns)}]\nexpected: {{max_steps: 9}}\n"
        "thresholds: {max_estimated_cost_usd: 0.5}\n"
    )
    settings = "version: 1\nagent: my_agent:build\nprices: {m: {input: 1, output: 1}}\n"
    return write_project(folder, {"cases/a.yaml": text, "my_agent.py": AGENT, "seatrial.yaml": settings})


def test_a_threshold_a_budget_and_grading_again_have_the_cost_of_every_turn(tmp_path: Path) -> None:
    project = two_turns(tmp_path, "more")
    run = api.run(project, trials=3, max_cost=1.5, concurrency=1)
    assert [record.cost_usd for record in run.trials] == [pytest.approx(0.92)]
    grades = {grade.name: grade for grade in run.trials[0].grades}
    assert (grades["max_estimated_cost_usd"].verdict, run.exit_code) == ("fail", 1)
    assert run.trace(run.trials[0]).estimates == {2: 0.9}
    again = api.regrade(run.folder, project=project)
    assert again.trials[0].cost_usd == run.trials[0].cost_usd
    assert [grade.verdict for grade in again.trials[0].grades] == [grade.verdict for grade in run.trials[0].grades]


@pytest.mark.slow
def test_an_agent_that_crashes_in_a_later_turn_has_told_what_the_earlier_ones_cost(tmp_path: Path) -> None:
    run = api.run(two_turns(tmp_path, "more", "still more"), isolation="process")
    assert run.trials[0].stop_reason is StopReason.AGENT_ERROR
    assert run.trials[0].cost_usd == pytest.approx(0.92)
