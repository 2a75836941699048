from __future__ import annotations

import json

import pytest

from made import case, failing, grade, passing, run, ungradable
from seatrial.core.trial import Tokens
from seatrial.errors import ExitCode, UsageError
from seatrial.report.summary import summary
from seatrial.verdict.comparison import Change, compare
from seatrial.verdict.harness_results import HarnessResult, harness_json
from seatrial.verdict.side_files import read_side, side_of_harness, side_of_summary
from seatrial.verdict.sides import side_of_run

CASES = [case("a", 2, risk="critical"), case("b", suite="extra"), case("c")]
TRIALS = [
    passing("a", steps=3, cost_usd=0.5, latency_ms=12.5, tokens=Tokens(input=7), handoffs=(("x", "y"),)),
    failing("a", 2, output={"n": 1}),
    passing("b", grades=(grade("tone", "fail", "rude", required=False), grade("answer"))),
    ungradable("c"),
]


def test_results_json_gives_the_same_side_as_the_run():
    info = run(gating={"extra": False})
    by_run = side_of_run(info, CASES, TRIALS, "x")
    by_file = side_of_summary(json.loads(json.dumps(summary(info, CASES, TRIALS))), "x")
    for ours, theirs in zip(by_run.cases, by_file.cases, strict=True):
        assert [record.status for record in ours.records] == [record.status for record in theirs.records]
        assert [record.whole.grades for record in ours.records] == [record.whole.grades for record in theirs.records]
        assert [record.latency_ms for record in ours.records] == [record.latency_ms for record in theirs.records]
        assert {**vars(ours), "records": ()} == {**vars(theirs), "records": ()}
        assert ours.summed.sums == theirs.summed.sums
    assert {row.change for row in compare(by_run, by_file).cases} == {Change.SAME, Change.INCOMPLETE}


def test_harness_files_compare_as_free_of_chance(tmp_path):
    one = [HarnessResult(name="median", passed=False, detail="got 4"), HarnessResult(name="empty", passed=True)]
    two = [HarnessResult(name="median", passed=True), HarnessResult(name="empty", passed=False, detail="raised E: x")]
    for name, results in (("v1", one), ("v2", two)):
        (tmp_path / f"{name}.json").write_text(json.dumps(harness_json(results)), encoding="utf-8")
    found = compare(read_side(tmp_path / "v1.json"), read_side(tmp_path / "v2.json"))
    assert [(row.case_id, row.change) for row in found.cases] == [("empty", Change.BROKE), ("median", Change.FIXED)]
    assert found.cases[0].candidate.reason == "raised E: x"
    assert found.exit_code() is ExitCode.FAILED


def test_a_harness_case_whose_check_broke_is_incomplete():
    sides = [side_of_harness([HarnessResult(name="a", passed=passed)], "x") for passed in (True, None)]
    assert compare(*sides).exit_code() is ExitCode.INCOMPLETE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ('{"approver": "Ann", "version": 3}', "no approved baseline of version 1"),
        ("[]", "neither"),
        ('{"cases": [{"id": 1}]}', "no summary of a run"),
        ('{"version": 9, "cases": []}', "no summary of a run: version"),
        ('{"results": [{"passed": true}]}', "no file of Harness results: results.0.name"),
        ('{"results": [{"name": "a", "passed": true}, {"name": "a", "passed": true}]}', "'a' stands there 2 times"),
    ],
)
def test_a_file_that_is_something_else_is_refused_by_name(tmp_path, text, said):
    path = tmp_path / "odd.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=r"odd\.json") as caught:
        read_side(path)
    assert said in str(caught.value)


def test_a_missing_file_is_refused_by_name(tmp_path):
    with pytest.raises(UsageError, match=r"none\.json: cannot be read"):
        read_side(tmp_path / "none.json")
