"""A ledger counts as its records do, whatever they hold, and reads the rest back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import made
from seatrial.core.ledger import Entry, Ledger
from seatrial.core.trace import StopReason
from seatrial.core.trial import Leftover, LeftoverKind, Tokens, TrialRecord, TrialStatus

COUNTED = (
    *("case_id", "trial_index", "attempt", "status", "invalid_reason", "broken_off", "stop_reason", "steps"),
    *("steps_are_tool_calls", "tools", "handoffs", "tallies", "models", "tokens", "cost_usd", "judge_cost_usd"),
    *("latency_ms", "observes", "started", "valid", "key"),
)
MONEY = st.none() | st.floats(0, 1e6)
COUNT = st.none() | st.integers(0, 2**62)
NAMES = st.text("abc", min_size=1, max_size=2)
TALLIES = st.dictionaries(NAMES, st.builds(made.tally, st.floats(0, 9), st.floats(1, 9)), max_size=2)


@st.composite
def records(draw: st.DrawFn) -> TrialRecord:
    verdicts = st.sampled_from(["pass", "fail", "abstain"])
    grades = st.builds(made.grade, NAMES, verdicts, st.text(max_size=3), required=st.booleans(), tallies=TALLIES)
    return TrialRecord(
        case_id=draw(NAMES),
        trial_index=draw(st.integers(1, 4)),
        attempt=draw(st.integers(1, 3)),
        broken_off=draw(st.booleans()),
        status=draw(st.sampled_from(TrialStatus)),
        stop_reason=draw(st.sampled_from(StopReason)),
        grades=draw(st.lists(grades, max_size=2)),
        grader_failures=draw(st.lists(st.builds(made.broken, NAMES, required=st.booleans()), max_size=1)),
        output=draw(st.text(max_size=3)),
        steps=draw(COUNT),
        tools=draw(st.dictionaries(NAMES, st.integers(1, 9), max_size=2)),
        handoffs=draw(st.lists(st.tuples(NAMES, NAMES), max_size=2)),
        tallies=draw(TALLIES),
        models=draw(st.lists(NAMES, max_size=2)),
        tokens=draw(st.builds(Tokens, input=COUNT, output=COUNT, cached=COUNT)),
        cost_usd=draw(MONEY),
        judge_cost_usd=draw(MONEY),
        latency_ms=draw(MONEY),
        started=draw(st.none() | st.sampled_from(["2026-11-30T12:00:00.123Z", "0000-00-00T00:00:00.000Z", "long ago"])),
    )


def of_grade(entry: Entry | TrialRecord) -> list[tuple[Any, ...]]:
    return [(each.name, each.verdict, each.score, each.required, each.tallies) for each in entry.grades]


def each_once(several: list[TrialRecord]) -> list[TrialRecord]:
    found: dict[tuple[str, int, int], TrialRecord] = {}
    for record in several:
        found.setdefault((record.case_id, record.trial_index, record.attempt), record)
    return list(found.values())


@given(st.lists(records(), max_size=12))
def test_entries_count_as_their_records_do(several: list[TrialRecord]) -> None:
    ledger, kept = Ledger.of(several), each_once(several)
    assert list(ledger) == kept
    assert len(ledger) == len(kept)
    for entry, record in zip(ledger.entries(), kept, strict=True):
        assert [getattr(entry, name) for name in COUNTED] == [getattr(record, name) for name in COUNTED]
        assert of_grade(entry) == of_grade(record)
        assert [each.name for each in entry.grader_failures] == [each.name for each in record.grader_failures]
        assert entry.whole == record
        told, data = entry.told, record.model_dump(mode="json")
        assert {**told, "grades": [said["reason"] for said in told["grades"]]} == {
            **{name: data[name] for name in ("error", "output", "output_file", "outcome")},
            "grades": [grade["reason"] for grade in data["grades"]],
        }
    assert ledger.models == tuple(sorted({model for record in kept for model in record.models}))


@given(st.lists(records(), max_size=12))
def test_records_of_a_case_stand_in_order_of_trial_and_attempt(several: list[TrialRecord]) -> None:
    ledger, kept = Ledger.of(several), each_once(several)
    assert ledger.case_ids == list(dict.fromkeys(record.case_id for record in kept))
    for case_id in ledger.case_ids:
        own = sorted((r.trial_index, r.attempt) for r in kept if r.case_id == case_id)
        assert [(e.trial_index, e.attempt) for e in ledger.entries(ledger.of_case(case_id))] == own
        assert ledger.trials_of(case_id) == len({index for index, _ in own})
        for index in range(6):
            attempts = [attempt for trial, attempt in own if trial == index]
            last = ledger.last(case_id, index)
            assert (None if last is None else last.attempt) == (max(attempts) if attempts else None)


def test_ledgers_are_pooled_with_the_trials_of_later_ones_numbered_on() -> None:
    first = Ledger.of([made.passing("a"), made.failing("b")])
    second = Ledger.of([made.failing("a", reason="worse"), made.passing("c", latency_ms=2.0)])
    pool = Ledger.pooled([(first, {}), (second, {"a": 1, "b": 1})])
    assert [str(record.key) for record in pool] == ["a#1", "b#1", "a#2", "c#1"]
    assert [record.status for record in pool] == ["passed", "failed", "failed", "passed"]
    assert pool[2].grades[0].reason == "worse"
    assert [entry.latency_ms for entry in pool.entries()] == [None, None, None, 2.0]


def test_a_single_ledger_is_pooled_as_it_is() -> None:
    one = Ledger.of([made.passing("a")])
    assert Ledger.pooled([(one, {})]) is one
    assert Ledger.pooled([(one, {"a": 2})])[0].trial_index == 3


def test_a_record_is_had_by_its_number_and_several_by_a_slice() -> None:
    several = [made.passing("a", trial) for trial in (1, 2, 3)]
    ledger = Ledger.of(several)
    assert (ledger[0], ledger[-1], ledger[1:]) == (several[0], several[2], tuple(several[1:]))
    assert ledger == several
    assert ledger != several[1:]
    assert Ledger.of(ledger) is ledger
    with pytest.raises(IndexError):
        _ = ledger[3]


def test_like_trials_share_what_they_have_in_common() -> None:
    alike = [made.failing("a", trial, reason=f"said {trial}") for trial in range(1, 9)]
    entries = list(Ledger.of(alike).entries())
    assert len({id(entry.grades) for entry in entries}) == 1
    assert [entry.whole.grades[0].reason for entry in entries] == [f"said {trial}" for trial in range(1, 9)]
    left = made.passing("a", 9, leftovers=(Leftover(kind=LeftoverKind.CWD, what="moved"),))
    assert [entry.has_leftovers for entry in Ledger.of([alike[0], left]).entries()] == [False, True]
