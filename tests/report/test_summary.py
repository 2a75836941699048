from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from made import broken, case, failing, grade, invalid, passing, raising, record, run, ungradable
from seatrial.core.encoding import dumps
from seatrial.core.trial import Tokens
from seatrial.report.files import json_text
from seatrial.report.summary import summary, summary_of
from seatrial.verdict.metrics import case_results

TOP = ["version", "suites", "cases", "graders", "figures", "problems", "times"]


def test_the_summary_has_the_published_keys_and_every_selected_case():
    data = summary(run(), [case("a"), case("b")], [passing("a")])
    assert list(data) == TOP
    assert [(row["id"], row["verdict"]) for row in data["cases"]] == [("a", "passed"), ("b", "not_run")]
    assert {"id", "suite", "verdict", "passes", "valid", "trials", "rate"} <= set(data["cases"][0])
    json.loads(dumps(data))


def test_bl_050_an_erring_agent_counts_against_the_headline():
    data = summary(run(), [case("a"), case("b")], [passing("a"), raising("b")])
    assert data["figures"]["pass_rate"]["rate"] == 0.5
    assert data["figures"]["cases"] == {"total": 2, "passed": 1, "failed": 1, "ungraded": 0, "invalid": 0, "not_run": 0}
    assert data["figures"]["trials"]["stops"] == {"agent_error": 1, "answered": 1}
    assert data["figures"]["verdict"] == "failed"


def test_bl_052_grader_rows_carry_their_counts():
    cases = [case(name) for name in "abcd"]
    half = grade("h", "pass", score=0.5)
    trials = [passing("a", grades=(grade("g"), half))]
    trials += [
        record(name, 1, "invalid", invalid_reason="grader", grades=(half,), grader_failures=(broken("g"),))
        for name in "bcd"
    ]
    data = summary(run(), cases, trials)
    rows = [(row["name"], row["mean"], row["scored"], row["of"], row["failures"]) for row in data["graders"]]
    assert rows == [("g", 1.0, 1, 4, 3), ("h", 0.5, 4, 4, 0)]
    assert len(data["problems"]) == 3


def test_bl_054_a_case_without_a_score_is_neither_0_nor_a_success():
    cases = [case("lost"), case("good")]
    data = summary(run(), cases, [ungradable("lost", 1, "g", "h"), passing("good", grades=(grade("g", score=0.8),))])
    assert (data["cases"][0]["verdict"], data["cases"][0]["rate"]) == ("invalid", None)
    rate = data["figures"]["pass_rate"]
    assert (rate["rate"], rate["cases"], rate["of_cases"]) == (1.0, 1, 2)
    assert data["graders"][0]["minimum"] == 0.8
    assert data["figures"]["verdict"] == "incomplete"


def test_bl_056_every_trial_keeps_its_output_and_reason():
    trials = [failing("a", 1, "too short", output="no"), failing("a", 2, "off topic", output="weather")]
    (row,) = summary(run(), [case("a", 2)], trials)["cases"]
    assert [(t["trial"], t["output"], t["reason"]) for t in row["trials_detail"]] == [
        (1, "no", "answer: too short"),
        (2, "weather", "answer: off topic"),
    ]


def test_bl_028_trials_that_could_not_be_judged_are_counted_apart():
    cases = [case(f"c{n}") for n in range(10)]
    trials = [passing(f"c{n}") for n in range(7)]
    trials += [record(f"c{n}", 1, "invalid", invalid_reason="judge", detail="no verdict read") for n in range(7, 10)]
    data = summary(run(), cases, trials)
    rate = data["figures"]["pass_rate"]
    assert (rate["passes"], rate["valid"], rate["cases"], rate["of_cases"]) == (7, 7, 7, 10)
    assert data["figures"]["cases"]["failed"] == 0
    assert data["figures"]["trials"]["invalid"] == 3
    assert [problem["kind"] for problem in data["problems"]] == ["judge"] * 3


def test_nothing_measured_is_none_never_zero():
    figures = summary(run(), [case("a")], [invalid("a")])["figures"]
    assert figures["pass_rate"] is None
    assert figures["first_attempt"]["mean"] is None
    assert figures["cost"]["per_success_usd"] is None
    assert figures["cost"]["total"]["usd"] is None


def test_equal_behaviour_reads_equal_outside_times():
    cases = [case(name, 3) for name in "abc"]
    trials = [make(name, n) for name, make in zip("abc", (passing, failing, raising), strict=True) for n in (1, 2, 3)]
    slow = [
        trial.model_copy(update={"latency_ms": random.random(), "started": "2026-11-30T09:00:00Z", "seed": n})
        for n, trial in enumerate(trials)
    ]
    random.shuffle(slow)
    one = summary(run(), cases, trials)
    other = summary(run(run_id="other", build_id="b2", started="now", seed=5), cases, slow)
    assert one.pop("times") != other.pop("times")
    assert dumps(one, indent=2) == dumps(other, indent=2)


def test_long_outputs_are_cut_with_their_size():
    (row,) = summary(run(), [case("a")], [passing("a", output={"text": "x" * 3000})])["cases"]
    shown = row["trials_detail"][0]["output"]
    assert shown.endswith("... truncated, 3.0 kB")
    assert len(shown) < 2100


statuses = st.sampled_from([passing, failing, raising, invalid, ungradable])


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 3), statuses), max_size=9), st.randoms())
def test_counts_add_up_whatever_happened(made, order):
    trials = {(name, number): make(name, number) for name, number, make in made}
    records = list(trials.values())
    order.shuffle(records)
    data = summary(run(), [case(name, 3) for name in "abc"], records)
    counts = data["figures"]["trials"]
    assert counts["run"] == len(trials) == sum(counts[word] for word in ("passed", "failed", "ungraded", "invalid"))
    assert counts["planned"] == 9
    cases = data["figures"]["cases"]
    assert sum(cases.values()) - cases["total"] == cases["total"] == 3
    for row in data["graders"]:
        assert row["scored"] + row["abstained"] + row["failures"] <= row["of"]
    dumps(data)


reasons = st.sampled_from(["", "no", "<Thing at 0x7f0000000000>"])


@st.composite
def told(draw):
    """A trial of which there is something to tell beside its status."""
    graded = grade("answer", draw(st.sampled_from(["pass", "fail"])), draw(reasons))
    return record(
        "a",
        draw(st.integers(1, 2)),
        "failed" if graded.verdict == "fail" else "passed",
        attempt=draw(st.integers(1, 2)),
        grades=(graded,),
        output=draw(st.sampled_from([None, "a", {"b": ["c"]}, "d" * 3000])),
        outcome=draw(st.sampled_from([None, {"files": {"e": "f"}}])),
        tokens=draw(st.builds(Tokens, input=st.none() | st.integers(0, 9))),
        cost_usd=draw(st.sampled_from([None, 0.0, 0.25])),
    )


several = st.lists(told(), max_size=4)


@given(st.tuples(several, several, several))
def test_rows_of_a_case_are_those_that_it_has_alone_whatever_stands_before_it(trials):
    cases = [case(name, 2) for name in "abc"]
    own = {
        each.id: [trial.altered({"case_id": each.id}) for trial in its] for each, its in zip(cases, trials, strict=True)
    }
    records = [*own["a"], *own["b"], *own["c"]]
    data = summary(run(), cases, records)
    assert data["cases"] == [summary(run(), [each], own[each.id])["cases"][0] for each in cases]
    lazily = summary_of(run(), cases, case_results(run(), cases, records))
    assert json_text(lazily) == json.dumps(data, indent=2, ensure_ascii=False) + "\n"
