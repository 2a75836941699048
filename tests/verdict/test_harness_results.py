from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from made import broken, case, grade, passing, raising, record, run
from seatrial.core.encoding import dumps
from seatrial.verdict.harness_results import (
    HarnessResult,
    harness_json,
    harness_results,
    parse_harness_json,
    read_harness_json,
)
from seatrial.verdict.metrics import case_results


def results_of(*trials):
    cases = [case(trial.case_id) for trial in trials]
    return harness_results(case_results(run(), cases, trials))


def test_details_are_the_checks_own_words():
    passed, failed, crashed, broke = results_of(
        passing("a", grades=(grade("check", reason="3.5, as it should be"),), latency_ms=10.0, output=3.5),
        record("b", 1, "failed", grades=(grade("check", "fail", "expected 3.5, got 4.0"),), output=4.0),
        raising("c"),
        record("d", 1, "invalid", invalid_reason="grader", grader_failures=(broken("check", "KeyError", "'x'"),)),
    )
    assert (passed.passed, passed.detail, passed.seconds, passed.output) == (True, "3.5, as it should be", 0.01, 3.5)
    assert (failed.passed, failed.detail, failed.output) == (False, "expected 3.5, got 4.0", 4.0)
    assert (crashed.passed, crashed.detail, crashed.seconds) == (False, "raised ValueError: no data", None)
    assert (broke.passed, broke.status, broke.detail) == (None, "invalid", "the check raised KeyError: 'x'")


def test_a_case_that_did_not_run_says_so():
    (result,) = harness_results(case_results(run(), [case("a")], []))
    assert (result.passed, result.detail) == (None, "1 of 1 trials did not run")


def test_the_file_counts_what_passed():
    data = harness_json([HarnessResult(name="a", passed=True), HarnessResult(name="b", passed=None)])
    assert (data["version"], data["passed"], data["total"]) == (1, 1, 2)
    assert [row["status"] for row in data["results"]] == ["passed", "invalid"]


def test_a_hand_written_file_needs_only_name_and_passed(tmp_path):
    path = tmp_path / "old.json"
    path.write_bytes(b'\xef\xbb\xbf{"results": [{"name": "a", "passed": false, "extra": 1}]}\r\n')
    assert read_harness_json(path) == (HarnessResult(name="a", passed=False),)


def test_a_large_output_is_cut_in_the_file():
    data = harness_json([HarnessResult(name="a", passed=True, output="x" * 50_000_000)])
    assert data["results"][0]["output"].endswith("x ... truncated, 50.0 MB")
    assert len(data["results"][0]["output"]) < 3000


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
some_results = st.lists(
    st.builds(
        HarnessResult,
        name=st.text(min_size=1),
        passed=st.sampled_from([True, False, None]),
        seconds=st.none() | st.floats(0, 1e6),
        detail=st.text(),
        output=json_values,
    ),
    max_size=5,
    unique_by=lambda result: result.name,
)


@given(some_results)
def test_results_read_back_equal(results):
    assert list(parse_harness_json(json.loads(dumps(harness_json(results))), "x")) == results
