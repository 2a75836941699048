"""Curtailment: the same verdicts as all trials, from those trials alone that running one by one would have come to."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import case, run
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.ports import PlannedCase
from seatrial.core.trace import StopReason
from seatrial.core.trial import TrialRecord, TrialStatus
from seatrial.environment.workspace import FileFixture
from seatrial.runner.curtailment import CurtailedTrials
from seatrial.verdict.metrics import case_results, exit_code

Script = dict[str, list[str]]
"""What every trial of a case would come to."""


def planned(cases: list[Case]) -> list[PlannedCase]:
    return [
        PlannedCase(item, item.digest, (), item.thresholds.trials, FileFixture(FixtureSpec(), case=item), order=n)
        for n, item in enumerate(cases)
    ]


def record(case_id: str, index: int, status: str) -> TrialRecord:
    return TrialRecord(
        case_id=case_id,
        suite="default",
        trial_index=index,
        status=TrialStatus(status),
        stop_reason=StopReason.ANSWERED,
    )


def go(cases: list[Case], script: Script, concurrency: int, order: st.DataObject | None = None) -> list[TrialRecord]:
    """Run the source with so many trials in flight; which ends next is drawn."""
    source, flying, records = CurtailedTrials(planned(cases)), [], []
    while True:
        while len(flying) < concurrency and (trial := source.next()) is not None:
            flying.append((trial[0].case.id, trial[1]))
        if not flying:
            return records
        at = 0 if order is None else order.draw(st.integers(0, len(flying) - 1))
        case_id, index = flying.pop(at)
        records.append(record(case_id, index, script[case_id][index - 1]))
        source.finished(records[-1])


def full(script: Script) -> list[TrialRecord]:
    return [
        record(case_id, index, status) for case_id, row in script.items() for index, status in enumerate(row, start=1)
    ]


@st.composite
def plans(draw: st.DrawFn) -> tuple[list[Case], Script]:
    statuses = st.sampled_from(["passed", "failed", "passed", "failed", "invalid", "ungraded"])
    cases, script = [], {}
    for number in range(draw(st.integers(1, 4))):
        trials = draw(st.integers(1, 6))
        required = draw(st.sampled_from(["all", *range(1, trials + 1), "50%"]))
        cases.append(case(f"c{number}", trials, required))
        script[f"c{number}"] = draw(st.lists(statuses, min_size=trials, max_size=trials))
    return cases, script


@given(plans(), st.integers(1, 12), st.data())
def test_verdicts_and_exit_codes_are_those_of_all_trials(
    plan: tuple[list[Case], Script], concurrency: int, order: st.DataObject
) -> None:
    cases, script = plan
    trials = {item.id: item.thresholds.trials for item in cases}
    few = case_results(run(trials=trials, curtailed=True), cases, go(cases, script, concurrency, order))
    all_of_them = case_results(run(trials=trials), cases, full(script))
    assert [result.verdict for result in few] == [result.verdict for result in all_of_them]
    assert exit_code(run(), few) == exit_code(run(), all_of_them)


@given(plans(), st.integers(1, 12), st.data())
def test_the_trials_on_record_are_those_of_running_one_by_one(
    plan: tuple[list[Case], Script], concurrency: int, order: st.DataObject
) -> None:
    cases, script = plan
    one_by_one = {item.key for item in go(cases, script, 1)}
    assert Counter(item.key for item in go(cases, script, concurrency, order)) == Counter(one_by_one)


@given(plans(), st.integers(1, 12), st.data(), st.randoms(use_true_random=False))
def test_a_run_that_goes_on_with_what_it_kept_comes_to_the_same_trials(
    plan: tuple[list[Case], Script], concurrency: int, order: st.DataObject, chance: object
) -> None:
    cases, script = plan
    whole = go(cases, script, concurrency, order)
    kept = [item for item in whole if chance.random() < 0.5]  # type: ignore[attr-defined]
    source, again = CurtailedTrials(planned(cases), kept), []
    while (trial := source.next()) is not None:
        case_id, index = trial[0].case.id, trial[1]
        again.append(record(case_id, index, script[case_id][index - 1]))
        source.finished(again[-1])
    ids = [item.key for item in (*kept, *again)]
    assert len(ids) == len(set(ids))
    assert {item.key for item in whole} >= set(ids)
    results = [case_results(run(trials=_trials(cases)), cases, records) for records in (whole, [*kept, *again])]
    assert [r.verdict for r in results[0]] == [r.verdict for r in results[1]]


def _trials(cases: list[Case]) -> dict[str, int]:
    return {item.id: item.thresholds.trials for item in cases}


@pytest.mark.parametrize(
    ("required", "outcomes", "run_trials"),
    [
        ("all", "fpppp", 1),
        ("all", "ppppp", 5),
        (3, "pppff", 3),
        (3, "fffpp", 3),
        (3, "pfpfp", 5),
        (1, "ffpff", 3),
        (3, "pippf", 4),  # i: invalid, the next one takes its place
    ],
)
def test_a_case_stops_where_it_is_decided(required: str | int, outcomes: str, run_trials: int) -> None:
    words = {"p": "passed", "f": "failed", "i": "invalid"}
    records = go([case("c", 5, required)], {"c": [words[letter] for letter in outcomes]}, 10)
    assert [item.trial_index for item in records] == list(range(1, run_trials + 1))


def test_first_trials_of_all_cases_come_before_second_ones() -> None:
    cases = [case("a", 3), case("b", 3)]
    records = go(cases, {"a": ["passed"] * 3, "b": ["passed"] * 3}, 1)
    assert [str(item.key) for item in records] == ["a#1", "b#1", "a#2", "b#2", "a#3", "b#3"]
