"""Budgets: what may start, counted trial by trial; nothing sleeps and no clock runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade import Grade
from seatrial.core.ports import GradingContext, PlannedCase
from seatrial.core.trace import ModelCallEvent, StopReason, Trace, Usage
from seatrial.core.trial import InvalidReason, TrialRecord, TrialStatus
from seatrial.core.usage import Price
from seatrial.environment.workspace import FileFixture
from seatrial.runner.budget import Budget, WithinBudget
from seatrial.runner.schedule import FixedTrials


class Kept:
    def __init__(self) -> None:
        self.records: list[TrialRecord] = []

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        self.records.append(record)
        return record


def planned(count: int, trials: int = 1, **case: Any) -> list[PlannedCase]:
    cases = [Case(id=f"c{number}", **case) for number in range(count)]
    return [PlannedCase(item, "", (), trials, FileFixture(FixtureSpec(), case=item)) for item in cases]


@dataclass(frozen=True)
class Judge:
    """A grader that asks a model."""

    name: str
    judge: bool = True
    required: bool = True
    needs_answer: bool = True
    blocking: bool = False

    def grade(self, context: GradingContext) -> Grade:
        raise NotImplementedError


def record(case_id: str, index: int, cost: float | None, **more: Any) -> TrialRecord:
    fields = {"status": TrialStatus.PASSED, "stop_reason": StopReason.ANSWERED} | more
    return TrialRecord(case_id=case_id, trial_index=index, cost_usd=cost, **fields)


def trace(*calls: ModelCallEvent) -> Trace:
    return Trace(events=calls, stop_reason=StopReason.ANSWERED)


EMPTY = trace()


def guard(cases: list[PlannedCase], usd: float | None = None, **more: Any) -> WithinBudget:
    options = {key: more.pop(key) for key in ("time_s", "allow_unknown_cost") if key in more}
    return WithinBudget(FixedTrials(cases), Kept(), Budget(usd, **options), **more)


def end(source: WithinBudget, trial: tuple[PlannedCase, int], cost: float | None, **more: Any) -> None:
    ended = record(trial[0].case.id, trial[1], cost, **more)
    source.write(ended, EMPTY)
    source.finished(ended)


def run_all(source: WithinBudget, cost: float, concurrency: int = 10) -> int:
    """Run what fits, all trials equally dear; gives how many ran."""
    flying: list[tuple[PlannedCase, int]] = []
    ran = 0
    while True:
        while len(flying) < concurrency and (trial := source.next()) is not None:
            flying.append(trial)
        if not flying:
            return ran
        end(source, flying.pop(0), cost)
        ran += 1


def test_ten_times_a_tenth_fits_into_one_and_no_eleventh() -> None:
    source = guard(planned(20, limits={"cost_usd": 0.1}), 1.0)
    assert run_all(source, 0.1) == 10
    assert source.spent_usd == pytest.approx(1.0)
    assert source.ran_out


def test_a_budget_that_all_trials_fit_into_is_not_spent() -> None:
    source = guard(planned(10, limits={"cost_usd": 0.1}), 1.0)
    assert run_all(source, 0.1) == 10
    assert not source.ran_out


def test_nobody_knows_the_cost_so_the_first_trial_runs_alone() -> None:
    source = guard(planned(5), 1.0)
    first = source.next()
    assert first is not None
    assert source.next() is None
    end(source, first, 0.3)
    flying = [source.next(), source.next()]
    assert None not in flying
    assert source.next() is None  # 0.3 spent, 2 x 0.3 set aside: a fourth may not fit


@pytest.mark.parametrize(
    ("limits", "thresholds", "reserved"),
    [
        ({"cost_usd": 0.4}, {}, 0.4),
        ({}, {"max_estimated_cost_usd": 0.2}, 0.2),
        ({"cost_usd": 0.4}, {"max_estimated_cost_usd": 0.2}, 0.4),
    ],
)
def test_a_cases_limit_is_set_aside_until_it_was_observed(
    limits: dict[str, float], thresholds: dict[str, float], reserved: float
) -> None:
    source = guard(planned(30, limits=limits, thresholds=thresholds), 2.0)
    started = 0
    while source.next() is not None:
        started += 1
    assert started == round(2.0 / reserved)


def test_the_cases_own_95th_percentile_replaces_its_limit() -> None:
    source = guard(planned(1, trials=100, limits={"cost_usd": 1.0}), 10.0)
    for cost in (0.1, 0.1, 0.5):
        trial = source.next()
        assert trial is not None
        end(source, trial, cost)
    started = 0
    while source.next() is not None:
        started += 1
    assert started == int((10.0 - 0.7) / 0.46)  # numpy.percentile([.1, .1, .5], 95)


def test_what_was_set_aside_and_not_spent_is_free_again() -> None:
    source = guard(planned(3, limits={"cost_usd": 1.0}), 1.5)
    first = source.next()
    assert first is not None
    assert source.next() is None
    end(source, first, 0.1)
    assert source.next() is not None


@given(
    st.lists(st.floats(0.01, 3.0), min_size=1, max_size=30),
    st.floats(0.05, 1.0),
    st.floats(0.1, 5.0),
    st.integers(1, 8),
    st.data(),
)
def test_the_total_exceeds_the_budget_by_no_more_than_trials_in_flight_exceed_their_reservations(
    costs: list[float], limit: float, budget: float, concurrency: int, order: st.DataObject
) -> None:
    source = guard(planned(len(costs), limits={"cost_usd": limit}), budget)
    flying: list[tuple[PlannedCase, int]] = []
    excess = spent = 0.0
    while True:
        while len(flying) < concurrency and (trial := source.next()) is not None:
            flying.append(trial)
        if not flying:
            break
        trial = flying.pop(order.draw(st.integers(0, len(flying) - 1)))
        cost = costs[int(trial[0].case.id[1:])]
        end(source, trial, cost)
        spent += cost
        excess += max(0.0, cost - limit)
    assert spent <= budget + excess + 1e-6
    assert source.spent_usd == pytest.approx(spent)


def test_every_attempt_and_the_judges_count() -> None:
    source = guard(planned(2, limits={"cost_usd": 0.1}), 1.0)
    trial = source.next()
    assert trial is not None
    first = record("c0", 1, 0.2, status=TrialStatus.FAILED, stop_reason=StopReason.AGENT_ERROR)
    source.write(first, EMPTY)
    end(source, trial, 0.2, attempt=2, judge_cost_usd=0.3)
    assert source.spent_usd == pytest.approx(0.7)


def test_time_that_is_up_starts_nothing_and_ends_nothing() -> None:
    now = [100.0]
    source = guard(planned(5), None, time_s=10.0, clock=lambda: now[0])
    first = source.next()
    assert first is not None
    now[0] = 109.9
    assert source.next() is not None
    now[0] = 110.0
    assert source.next() is None
    assert source.ran_out
    end(source, first, None)
    assert source.next() is None


def test_time_that_is_up_after_the_last_trial_started_is_no_shortage() -> None:
    now = [0.0]
    source = guard(planned(1), None, time_s=10.0, clock=lambda: now[0])
    assert source.next() is not None
    now[0] = 99.0
    assert source.next() is None
    assert not source.ran_out


# --- costs that are unknown -----------------------------------------------------------------------------------------


def unpriced() -> Trace:
    return trace(ModelCallEvent(number=1, model="new-model", usage=Usage(input=1, output=1)))


def test_a_model_without_a_price_ends_the_run() -> None:
    source = guard(planned(3, limits={"cost_usd": 0.1}), 1.0, prices={"m": Price(input=1, output=1)})
    trial = source.next()
    assert trial is not None
    source.write(record("c0", 1, None), unpriced())
    assert source.problem == "the price of model 'new-model' is unknown"
    assert source.next() is None


def test_an_answer_of_unknown_cost_ends_the_run_while_no_cost_was_ever_known() -> None:
    source = guard(planned(3), 1.0)
    trial = source.next()
    assert trial is not None
    end(source, trial, None)
    assert "the cost of c0#1 is unknown" in source.problem


def test_a_cost_that_was_lost_counts_as_what_was_set_aside() -> None:
    source = guard(planned(3, trials=2, limits={"cost_usd": 0.2}), 1.0)
    for cost, more in ((0.1, {}), (None, {"stop_reason": StopReason.TIMEOUT}), (None, {})):
        trial = source.next()
        assert trial is not None
        end(source, trial, cost, **more)
    assert source.problem == ""
    assert source.spent_usd == pytest.approx(0.1 + 0.2 + 0.2)


def test_what_is_known_of_a_lost_cost_counts_at_least() -> None:
    source = guard(planned(1, limits={"cost_usd": 0.1}), 5.0, prices={"m": Price(input=1_000_000, output=0)})
    assert source.next() is not None
    calls = [ModelCallEvent(number=1, model="m", usage=Usage(input=1, output=0)), ModelCallEvent(number=2, model="m")]
    source.write(record("c0", 1, None, stop_reason=StopReason.TIMEOUT), trace(*calls))
    assert source.spent_usd == pytest.approx(1.0)


def test_a_trial_whose_fixture_failed_cost_nothing() -> None:
    source = guard(planned(2), 1.0)
    trial = source.next()
    assert trial is not None
    broken = {"status": TrialStatus.INVALID, "invalid_reason": InvalidReason.FIXTURE}
    end(source, trial, None, stop_reason=StopReason.HARNESS_ERROR, **broken)
    assert (source.problem, source.spent_usd) == ("", 0.0)
    assert source.next() is not None


def test_with_unknown_costs_allowed_they_count_as_nothing_and_hold_nobody_up() -> None:
    source = guard(planned(4), 0.1, allow_unknown_cost=True)
    first = source.next()
    assert first is not None
    assert source.next() is None  # the first trial runs alone: it may tell what one costs
    end(source, first, None)
    trials = [source.next() for _ in range(3)]
    for trial in trials:
        assert trial is not None
        end(source, trial, None)
    assert (source.problem, source.spent_usd, source.ran_out) == ("", 0.0, False)


@pytest.mark.parametrize("concurrency", [1, 6])
def test_known_costs_hold_the_budget_where_unknown_ones_are_allowed(concurrency: int) -> None:
    source = guard(planned(6), 0.03, allow_unknown_cost=True)
    assert run_all(source, 0.01, concurrency) == 3
    assert source.spent_usd == pytest.approx(0.03)


def test_a_resumed_run_of_unknown_costs_goes_on_at_once() -> None:
    source = guard(planned(4), 0.1, allow_unknown_cost=True, kept=[record("c0", 1, None)])
    assert [source.next() is None for _ in range(3)] == [False] * 3


def test_a_judge_that_broke_may_have_cost_what_was_set_aside_and_ends_nothing() -> None:
    source = guard(planned(2, limits={"cost_usd": 0.1}), 1.0)
    trial = source.next()
    assert trial is not None
    end(source, trial, 0.05, judge_cost_usd=None)
    assert source.problem == ""
    assert source.spent_usd == pytest.approx(0.1)


@pytest.mark.parametrize("allowed", [False, True])
def test_a_judge_that_does_not_say_what_it_cost_ends_the_run_unless_that_is_allowed(allowed: bool) -> None:
    graders = (Judge("dear"), Judge("silent"))
    cases = [replace(item, graders=graders) for item in planned(3, limits={"cost_usd": 0.1})]
    source = guard(cases, 1.0, allow_unknown_cost=allowed)
    trial = source.next()
    assert trial is not None
    said = (Grade(name="dear", verdict="pass", cost_usd=0.5), Grade(name="silent", verdict="pass"))
    end(source, trial, 0.25, judge_cost_usd=None, grades=said)
    assert source.spent_usd == pytest.approx(0.75)  # what is known counts either way
    assert ("'silent'" in source.problem, source.next() is None) == (not allowed, not allowed)


def test_a_resumed_run_has_spent_what_is_known_of_costs_that_are_not_known_whole() -> None:
    source = guard(planned(2), 1.0, kept=[record("c0", 1, 0.75, judge_cost_usd=None)])
    assert source.spent_usd == pytest.approx(0.75)


def test_free_models_never_run_out() -> None:
    assert run_all(guard(planned(50), 0.5), 0.0) == 50


def test_what_a_resumed_run_kept_is_spent_already() -> None:
    kept = [record("c0", 1, 0.3, status=TrialStatus.FAILED), record("c0", 1, 0.3, attempt=2), record("c1", 1, 0.2)]
    source = guard(planned(5), 1.0, kept=kept)
    assert source.spent_usd == pytest.approx(0.8)
    assert source.next() is None  # c0's trial cost 0.6 in all
    assert source.ran_out
