"""What is left of a run: by case and trial number, attempts included."""

from __future__ import annotations

from made import case, failing, passing, raising
from seatrial.core.ports import PlannedCase
from seatrial.core.trial import TrialRecord
from seatrial.environment.workspace import FileFixture
from seatrial.runner.remaining import Earlier, Remaining, earlier
from seatrial.runner.schedule import FixedTrials


def planned(case_id: str, trials: int, **more: object) -> PlannedCase:
    item = case(case_id, trials, **more)
    return PlannedCase(item, item.digest, (), trials, FileFixture(case=item))


def left(source: Remaining) -> list[str]:
    found = []
    while (trial := source.next()) is not None:
        found.append(f"{trial[0].case.id}#{trial[1]}")
    return found


def test_trials_on_record_are_left_out_whatever_their_order() -> None:
    cases = [planned("a", 3), planned("b", 2)]
    before = earlier(cases, [passing("b", 2), failing("a", 1), passing("a", 3)])
    assert left(Remaining(FixedTrials(cases), before.finished)) == ["b#1", "a#2"]


def test_a_retryable_last_attempt_has_more_attempts_and_no_other_has() -> None:
    cases = [planned("a", 4, retries={"attempts": 3, "on": ["ConnectionError"]}), planned("b", 1)]
    fault = raising("a", 1, "ConnectionError")
    on_record = [
        fault,
        fault.model_copy(update={"attempt": 2}),
        raising("a", 2),
        *[fault.model_copy(update={"trial_index": 3, "attempt": attempt}) for attempt in (3, 1, 2)],
        raising("b", 1, "ConnectionError"),
    ]
    before = earlier(cases, on_record)
    assert before.attempts == {("a", 1): 2}
    assert sorted(before.finished) == [("a", 2), ("a", 3), ("b", 1)]
    assert before.finished["a", 3].attempt == 3


def test_the_source_is_told_of_what_is_on_record() -> None:
    told: list[TrialRecord] = []

    class Listening(FixedTrials):
        def finished(self, record: TrialRecord) -> None:
            told.append(record)

    cases, kept = [planned("a", 2)], passing("a", 1)
    source = Remaining(Listening(cases), earlier(cases, [kept]).finished)
    assert left(source) == ["a#2"]
    source.finished(passing("a", 2))
    assert [record.trial_index for record in told] == [1, 2]


def test_nothing_on_record_leaves_everything() -> None:
    assert earlier([planned("a", 1)], []) == Earlier()
