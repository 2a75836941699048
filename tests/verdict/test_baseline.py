from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made import case, failing, grade, invalid, passing, run, tally
from seatrial.core.encoding import digest
from seatrial.core.trial import Tokens
from seatrial.errors import StorageError, UsageError
from seatrial.verdict import baseline as module
from seatrial.verdict.baseline import (
    Baseline,
    BaselineCase,
    baseline_of,
    baseline_text,
    parse_baseline,
    problems_with,
    read_baseline,
    side_of_baseline,
)
from seatrial.verdict.comparison import Change, compare
from seatrial.verdict.metrics import case_results
from seatrial.verdict.side_files import read_side
from seatrial.verdict.sides import side_of_run
from seatrial.verdict.totals import Sum, Tallied
from seatrial.verdict.trajectories import Detail, Step, Trajectory
from traces import tool_call, trace_of

CASES = [case("b", 3, "80%", risk="critical"), case("a", 2, suite="extra"), case("c")]
TRIALS = [
    passing(
        "b",
        1,
        steps=3,
        latency_ms=100.04,
        cost_usd=0.1,
        tokens=Tokens(input=7, output=1),
        tools={"pay": 2},
        handoffs=(("x", "y"),),
        tallies={"loop_rate": tally(0, 1)},
        grades=(grade("answer", reason="4 is in the output", tallies={"tool_f1": tally(0.5, 1)}),),
    ),
    passing("b", 2, steps=5, latency_ms=300.0, tools={"pay": 1, "look": 1}),
    passing("b", 3, trace_at=9),
    failing("a", 1),
    passing("a", 2),
    invalid("c"),
]
INFO = run(run_id="r1", build_id="good", agent={"target": "m:f", "config": {"model": "small"}}, gating={"extra": False})


def approved(**more) -> Baseline:
    trace = trace_of(tool_call("pay", {"amount": 5}))
    given_ = {"approver": "Ann", "reason": "first", "fresh": True, "now": "2026-01-31T12:00:00Z"} | more
    return baseline_of(case_results(INFO, CASES, TRIALS), [INFO], trace_of=lambda record: trace, **given_)


def test_a_baseline_holds_what_a_later_comparison_needs():
    found = approved(digests={"policy": "sha256:1"}, expires=date(2026, 7, 1))
    assert [one.id for one in found.cases] == ["a", "b", "c"]
    _, good, broken = found.cases
    assert (good.passes, good.valid, good.trials, good.required, good.verdict) == (3, 3, 3, 3, "passed")
    assert good.tallies == {"loop_rate": Tallied(0, 1), "tool_f1": Tallied(0.5, 1)}
    assert good.sums["latency_ms"] == Sum(400.04, 2)
    assert good.sums["cost_usd"] == Sum(0.1, 1)
    assert good.tools == {"look": 1, "pay": 3}
    assert good.handoffs == (("x", "y", 1),)
    assert good.trajectory == Trajectory(
        steps=(Step(kind="call", name="pay", arguments={"amount": 5}),), reasons={"answer": "4 is in the output"}
    )
    assert (broken.verdict, broken.valid, broken.trajectory) == ("invalid", 0, None)
    assert found.agent == {"target": "m:f", "config": {"model": "small"}}
    assert (found.build_id, found.run_ids, found.digests["policy"]) == ("good", ("r1",), "sha256:1")


def test_its_file_reads_back_equal_and_has_a_line_a_case(tmp_path):
    found = approved(expires=date(2026, 7, 1))
    path = tmp_path / "approved.json"
    path.write_text(baseline_text(found), encoding="utf-8")
    assert read_baseline(path) == found
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.strip().rstrip(","))["id"] for line in lines if line.startswith('    {"id"')] == list("abc")
    assert not re.search(r'"(trials|required|verdict)"', next(line for line in lines if '"id":"b"' in line))


names = st.text(min_size=1, max_size=12)
numbers = st.floats(0, 1e9, allow_nan=False)


@st.composite
def baseline_cases(draw, case_id=names) -> BaselineCase:
    trials = draw(st.integers(0, 12))
    valid = draw(st.integers(0, trials))
    passes, required = draw(st.integers(0, valid)), draw(st.integers(0, trials))
    verdict = "passed" if passes >= required else ("failed" if trials - valid + passes < required else "invalid")
    arguments = st.dictionaries(names, st.text(max_size=300) | st.integers() | st.booleans(), max_size=3)
    steps = st.builds(Step, kind=st.sampled_from(["call", "handoff", "approval"]), name=names, arguments=arguments)
    return BaselineCase(
        id=draw(case_id),
        suite=draw(names),
        digest=draw(names.filter(str.strip)),
        passes=passes,
        valid=valid,
        trials=trials,
        required=required,
        verdict=verdict,
        tallies=draw(st.dictionaries(names, st.builds(Tallied, numbers, numbers), max_size=4)),
        sums={"steps": Sum(draw(numbers), valid)},
        tools=draw(st.dictionaries(names, st.integers(0, 99), max_size=4)),
        trajectory=draw(st.none() | st.builds(Trajectory, steps=st.lists(steps, max_size=4).map(tuple))),
    )


@settings(max_examples=40, deadline=None)
@given(st.lists(baseline_cases(), max_size=3, unique_by=lambda one: one.id), st.sampled_from(list(Detail)))
def test_any_baseline_survives_its_file(cases, detail):
    ordered = tuple(sorted(cases, key=lambda one: one.id))
    found = approved().model_copy(update={"cases": ordered, "detail": detail})
    assert parse_baseline(json.loads(baseline_text(found)), "x") == found


@settings(max_examples=40, deadline=None)
@given(st.lists(baseline_cases(), max_size=3, unique_by=lambda one: one.id), st.randoms())
def test_the_order_of_cases_does_not_change_the_file(cases, random):
    found = approved()
    one = baseline_text(found.model_copy(update={"cases": tuple(cases)}))
    random.shuffle(cases)
    assert baseline_text(found.model_copy(update={"cases": tuple(cases)})) == one


@pytest.mark.slow
def test_ten_thousand_cases_stay_under_five_megabytes():
    words = ["lookup_order", "verify_customer", "process_refund"]
    steps = tuple(Step(kind="call", name=word, arguments={"order_id": "O-1", "note": "n" * 90}) for word in words)
    tallies = {
        f"{metric}/{word}": Tallied(10, 10) for metric in ("required_tool_recall", "tool_precision") for word in words
    }
    cases = tuple(
        BaselineCase(
            id=f"refund_requires_supervisor_{number:05}",
            suite="regression",
            digest=digest(number),
            passes=10,
            valid=10,
            trials=10,
            required=10,
            tallies={**tallies, "tool_f1": Tallied(8.5, 10), "critical_violations": Tallied(0, 10)},
            sums={
                name: Sum(1234.5, 10) for name in ("latency_ms", "input_tokens", "output_tokens", "cost_usd", "steps")
            },
            tools=dict.fromkeys(words, 10),
            trajectory=Trajectory(steps=steps, reasons=dict.fromkeys(words, "as expected " * 5)),
        )
        for number in range(10_000)
    )
    fitted = module._fitted(approved().model_copy(update={"cases": cases}))
    text = baseline_text(fitted)
    assert len(text.encode("utf-8")) < 5_000_000
    assert [step.name for step in fitted.cases[0].trajectory.steps] == words
    assert parse_baseline(json.loads(text), "x") == fitted


def spoilt(**changes) -> dict:
    data = json.loads(baseline_text(approved()))
    data["cases"][1] |= changes.pop("case", {})
    return data | changes


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (spoilt(version=2), "no approved baseline of version 1 (its version is 2)"),
        ([], "no approved baseline of version 1"),
        (spoilt(case={"passes": 4}), "case 'b': 4 passes, 3 valid, 3 trials"),
        (spoilt(case={"passes": True}), "case 'b': passes: "),
        (spoilt(case={"passes": -1}), "case 'b': passes: "),
        (spoilt(case={"id": "a"}), "the case 'a' stands there 2 times"),
        (spoilt(case={"verdict": "failed"}), "case 'b': verdict 'failed' does not follow from 3 passes of 3 valid"),
        (spoilt(case={"sums": {"latency_ms": [1.0, 9]}}), "sums.latency_ms: [1.0, 9] is no sum over at most 3 valid"),
        (spoilt(case={"sums": {"speed": [1.0, 1]}}), "sums.speed: known are latency_ms"),
        (spoilt(case={"tallies": {"loop_rate": [-1, 1]}}), "tallies.loop_rate"),
        (spoilt(case={"tallies": {"loop_rate": [float("nan"), 1]}}), "tallies.loop_rate"),
        (spoilt(case={"passed": 3}), "case 'b': passed: is no known key"),
        (spoilt(cases=5), "cases: "),
        (spoilt(cases=[5]), "cases[0]: "),
        (spoilt(short={"a": []}, cases=[5]), "cases[0]: "),
        (spoilt(approver=""), "approver: "),
        (spoilt(approved="yesterday"), "approved: 'yesterday' is no time in UTC"),
        (spoilt(approved="todayZ"), "approved: "),
        (spoilt(expires="soon"), 'expires: should be a date, YYYY-MM-DD, not "soon"'),
        (spoilt(expires=20261231), "expires: a date is written YYYY-MM-DD"),
        (spoilt(approver=" "), "approver: should be text that is not blank"),
        (spoilt(reason="\t"), "reason: should be text that is not blank"),
        (spoilt(case={"digest": ""}), "case 'b': digest: should be text that is not empty"),
        (spoilt(approved="2999-01-31T12:00:00Z"), "approved: 2999-01-31T12:00:00Z is in the future"),
    ],
)
def test_a_file_that_contradicts_itself_is_refused_with_its_place(data, said):
    with pytest.raises(UsageError) as caught:
        parse_baseline(data, "approved.json")
    assert str(caught.value).startswith("approved.json: ")
    assert said in str(caught.value)


def test_a_day_is_allowed_for_clocks_that_differ():
    soon = datetime.now(UTC) + timedelta(hours=20)
    text = soon.isoformat(timespec="seconds").replace("+00:00", "Z")
    assert parse_baseline(spoilt(approved=text), "x").approved == text


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path):
    path = tmp_path / "approved.json"
    with pytest.raises(UsageError, match=r"approved\.json: cannot be read"):
        read_baseline(path)
    path.write_text('{"version": 1,\n<<<<<<< mine\n', encoding="utf-8")
    with pytest.raises(UsageError, match=r"approved\.json: is not JSON.*line 2"):
        read_baseline(path)


def test_an_approver_and_a_reason_are_needed():
    for name in ("approver", "reason"):
        with pytest.raises(UsageError, match=f"needs its {name}"):
            approved(**{name: " "})


def test_a_trace_that_is_missing_is_an_error_of_approval_not_a_gap():
    def gone(record):
        raise StorageError("no trace")

    with pytest.raises(StorageError, match="no trace"):
        baseline_of(
            case_results(INFO, CASES, TRIALS), [INFO], trace_of=gone, approver="A", reason="r", fresh=True, now="2026Z"
        )


# --- use -------------------------------------------------------------------------------------------------------------


def test_it_holds_until_the_end_of_its_last_day():
    found = approved(expires=date(2026, 7, 1))
    assert problems_with(found, INFO, today=date(2026, 7, 1)) == []
    assert problems_with(found, INFO, today=date(2026, 7, 2))[0].startswith("the baseline expired")
    assert problems_with(approved(), INFO, today=date(2999, 1, 1)) == []


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [("judge", {"model": "m2"}, "another judge"), ("prices", {"m": {}}, "another price table")],
)
def test_unlike_judges_and_price_tables_do_not_compare(name, more, said):
    (problem,) = problems_with(approved(), INFO.model_copy(update={name: more}), today=date(2026, 2, 1))
    assert said in problem


def test_another_policy_is_no_problem():
    assert problems_with(approved(digests={"policy": "sha256:old"}), INFO, today=date(2026, 2, 1)) == []


def test_its_side_compares_as_the_run_that_it_was_made_of(tmp_path):
    path = tmp_path / "approved.json"
    path.write_text(baseline_text(approved()), encoding="utf-8")
    side = read_side(path)
    assert side.label.startswith("good (approved by Ann, 2026-01-31)")
    found = compare(side, side_of_run(INFO, CASES, TRIALS))
    assert {row.case_id: row.change for row in found.cases} == {
        "a": Change.SAME,
        "b": Change.SAME,
        "c": Change.INCOMPLETE,
    }
    for ours, theirs in zip(side_of_baseline(approved()).cases, side.cases, strict=True):
        assert ours == theirs


@settings(max_examples=25)
@given(st.sampled_from([Detail.FULL, Detail.SHORT, Detail.CALLS, Detail.NAMES]), st.text(max_size=400))
def test_cutting_a_trajectory_again_changes_nothing(detail, text):
    step = Step(kind="call", name="pay", arguments={"note": text, "list": [text] * 3, text: 1})
    cut = Trajectory(steps=(step,) * 50, reasons={"answer": text}).cut(detail)
    assert cut.cut(detail) == cut
    assert cut.more == 50 - len(cut.steps)
