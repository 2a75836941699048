"""Records read back by their positions, in whatever order they are looked at."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from made import failing, grade, passing
from seatrial.core.ledger import Ledger
from seatrial.core.trial import TrialRecord
from seatrial.errors import StorageError
from seatrial.store.journal import TRIALS
from seatrial.store.records import ledger_of


def lines_of(records: list[TrialRecord]) -> list[bytes]:
    return [record.model_dump_json().encode() + b"\n" for record in records]


def noted(folder: Path, records: list[TrialRecord]) -> Ledger:
    """A ledger of records in a file."""
    ledger, at = ledger_of(folder), 0
    for record, line in zip(records, lines_of(records), strict=True):
        ledger.add(record, at, len(line) - 1)
        at += len(line)
    return ledger


MANY = [passing("c", number, output="x" * (number * 37 % 5_000)) for number in range(1, 301)]


def test_records_come_back_as_they_were_in_whatever_order(tmp_path: Path) -> None:
    (tmp_path / TRIALS).write_bytes(b"".join(lines_of(MANY)))  # some ten times what is read at once
    ledger = noted(tmp_path, MANY)
    assert list(ledger) == MANY
    about = sorted(range(300), key=lambda number: number + random.Random(number).randrange(20))
    for order in (about, random.Random(1).sample(range(300), 300), range(299, -1, -1)):
        assert [ledger[number] for number in order] == [MANY[number] for number in order]
        assert [ledger.entry(number).told["output"] for number in order] == [MANY[number].output for number in order]


def test_a_record_that_was_appended_after_the_last_look_is_read_whole(tmp_path: Path) -> None:
    first, second = lines_of(MANY[:2])
    path = tmp_path / TRIALS
    path.write_bytes(first + second[:40])  # in the midst of being written
    ledger = noted(tmp_path, MANY[:2])
    assert ledger[0] == MANY[0]
    path.write_bytes(first + second)
    assert list(ledger) == MANY[:2]


def test_lone_surrogates_are_told_as_they_were_written(tmp_path: Path) -> None:
    record = failing("c", output="x\ud800", grades=(grade("answer", "fail", "no \udc00"),))
    line = b'{"case_id":"c","status":"failed","stop_reason":"answered","output":"x\\ud800",'
    line += b'"grades":[{"name":"answer","verdict":"fail","reason":"no \\udc00"}]}'
    (tmp_path / TRIALS).write_bytes(line + b"\n")
    ledger = ledger_of(tmp_path)
    ledger.add(record, 0, len(line))
    told = ledger.entry(0).told
    assert (told["output"], told["grades"]) == ("x\ud800", [{"reason": "no \udc00"}])


def test_a_file_that_went_away_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=TRIALS):
        list(noted(tmp_path, MANY[:1]))
