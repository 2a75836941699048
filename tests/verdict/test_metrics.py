from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from made import case, failing, invalid, passing, raising, record, run, ungradable
from seatrial.errors import ExitCode, StorageError
from seatrial.verdict.metrics import CaseVerdict, case_results, exit_code

MAKERS = {"p": passing, "f": failing, "i": invalid, "u": lambda i, t: record(i, t, "ungraded")}


def result_of(pattern: str, planned: int | None = None, required="all"):
    trials = [MAKERS[letter]("a", number) for number, letter in enumerate(pattern, start=1) if letter != "-"]
    planned = planned or len(pattern)
    return case_results(run(trials={"a": planned}), [case("a", planned, required)], trials)[0]


@pytest.mark.parametrize(
    ("pattern", "required", "verdict"),
    [
        ("ppp", "all", "passed"),
        ("ppf", "all", "failed"),
        ("ppf", 2, "passed"),
        ("pff", 2, "failed"),
        ("ppi", "all", "invalid"),
        ("ppi", 2, "passed"),  # certain, whatever the third would have given
        ("fpi", "all", "failed"),  # likewise
        ("ffi", 2, "failed"),
        ("pfi", 2, "invalid"),
        ("iii", "all", "invalid"),
        ("uuu", "all", "ungraded"),
        ("ppu", "all", "ungraded"),
        ("pui", "all", "invalid"),
        ("p--", "all", "not_run"),
        ("---", "all", "not_run"),
        ("f--", "all", "failed"),
        ("pp-", 2, "passed"),
        ("pi-", "all", "invalid"),
        ("ppppf", "80%", "passed"),
        ("pppff", "80%", "failed"),
    ],
)
def test_a_case_is_decided_as_soon_as_it_is_certain(pattern, required, verdict):
    assert result_of(pattern, required=required).verdict == verdict


@given(st.lists(st.sampled_from("pfiu-"), min_size=1, max_size=6).map("".join), st.data())
def test_a_decided_case_cannot_be_overturned_by_its_other_trials(pattern, data):
    required = data.draw(st.integers(1, len(pattern)))
    verdict = result_of(pattern, required=required).verdict
    unknown = [at for at, letter in enumerate(pattern) if letter not in "pf"]
    best, worst = ("".join(letter if at in unknown else old for at, old in enumerate(pattern)) for letter in ("p", "f"))
    ends = {result_of(best, required=required).verdict, result_of(worst, required=required).verdict}
    assert (ends == {verdict}) == (verdict in (CaseVerdict.PASSED, CaseVerdict.FAILED))


def test_counts_and_reason_stand_in_the_result():
    result = result_of("pfi")
    assert (result.passes, result.valid, result.trials, result.run) == (1, 2, 3, 3)
    assert result.rate == 0.5
    assert result.reason == "answer: expected 4, got 5"
    assert result.invalid == {"fixture": 1}


def test_a_rate_without_valid_trials_is_none():
    assert result_of("ii").rate is None
    assert result_of("--").reason == "2 of 2 trials did not run"


def test_results_follow_the_cases_not_the_records():
    trials = [passing("b"), failing("a"), passing("c")]
    results = case_results(run(), [case("a"), case("b"), case("c")], trials)
    assert [result.case_id for result in results] == ["a", "b", "c"]


def test_trials_of_a_stranger_are_refused():
    with pytest.raises(StorageError, match="'zz'"):
        case_results(run(), [case("a")], [passing("zz")])


def test_bl_050_a_raising_agent_stays_in_the_denominator():
    results = case_results(run(), [case("good"), case("bad")], [passing("good"), raising("bad")])
    assert [result.verdict for result in results] == ["passed", "failed"]
    assert sum(result.valid for result in results) == 2
    assert sum(result.passes for result in results) == 1
    assert results[1].reason == "raised ValueError: no data"


def code_of(*verdicts: tuple[str, str, bool], **info) -> ExitCode:
    makers = {"passed": passing, "failed": failing, "invalid": invalid, "ungraded": MAKERS["u"]}
    cases = [case(name, suite=name) for name, _, _ in verdicts]
    trials = [makers[verdict](name, 1) for name, verdict, _ in verdicts if verdict != "not_run"]
    about = run(gating={name: gate for name, _, gate in verdicts}, **info)
    return exit_code(about, case_results(about, cases, trials))


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([("a", "passed", True)], ExitCode.PASS),
        ([("a", "passed", True), ("b", "failed", True)], ExitCode.FAILED),
        ([("a", "invalid", True), ("b", "failed", True)], ExitCode.FAILED),
        ([("a", "passed", True), ("b", "invalid", True)], ExitCode.INCOMPLETE),
        ([("a", "passed", True), ("b", "ungraded", True)], ExitCode.INCOMPLETE),
        ([("a", "passed", True), ("b", "not_run", True)], ExitCode.INCOMPLETE),
        ([("a", "passed", True), ("b", "failed", False)], ExitCode.PASS),
        ([("a", "passed", True), ("b", "invalid", False)], ExitCode.PASS),
        ([("a", "passed", True), ("b", "ungraded", False)], ExitCode.PASS),
        ([("a", "failed", False)], ExitCode.PASS),
        ([], ExitCode.INCOMPLETE),
    ],
)
def test_exit_codes_of_a_run(verdicts, code):
    assert code_of(*verdicts) is code


@pytest.mark.parametrize("status", ["interrupted", "out_of_budget"])
def test_a_run_that_was_cut_short_is_incomplete_unless_a_case_failed(status):
    assert code_of(("a", "passed", True), status=status) is ExitCode.INCOMPLETE
    assert code_of(("a", "failed", True), status=status) is ExitCode.FAILED


def test_a_case_or_its_agent_may_be_declared_deterministic():
    (declared,) = case_results(run(), [case("a", deterministic=True)], [])
    (by_agent,) = case_results(run(agent={"deterministic": True}), [case("a")], [])
    (neither,) = case_results(run(), [case("a")], [])
    assert (declared.deterministic, by_agent.deterministic, neither.deterministic) == (True, True, False)


def test_bl_054_a_case_whose_graders_all_broke_is_neither_passed_nor_failed():
    results = case_results(run(), [case("lost"), case("good")], [ungradable("lost", 1, "g", "h"), passing("good")])
    assert [result.verdict for result in results] == ["invalid", "passed"]
    assert results[0].rate is None
    assert results[0].invalid == {"grader": 1}
