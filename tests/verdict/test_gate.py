from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from gating import TODAY, cases_of, decision_of, records_of
from made import case, passing, run, ungradable
from seatrial.core.decision import Decision, DecisionVerdict
from seatrial.core.metric import METRICS
from seatrial.core.policy import Policy
from seatrial.core.trace import Trace
from seatrial.errors import ExitCode, UsageError
from seatrial.verdict.baseline import baseline_of, side_of_baseline
from seatrial.verdict.comparison import compare
from seatrial.verdict.gate import decide
from seatrial.verdict.metrics import case_results, exit_code
from seatrial.verdict.sides import side_of_results

TABLE = yaml.safe_load((Path(__file__).parents[1] / "data/verdict/policy_table.yaml").read_text(encoding="utf-8"))
PRINTED = Path(__file__).parents[1] / "data/loading/printed_policy.yaml"


@pytest.mark.parametrize("row", TABLE, ids=[row["why"] for row in TABLE])
def test_policy_table(row: dict[str, Any]) -> None:
    given_row = {key: value for key, value in row.items() if key not in ("why", "decision", "exit", "says", "note")}
    found = decision_of(given_row.pop("gates", None), **given_row)
    assert (found.verdict, found.exit_code) == (row["decision"], row["exit"]), found.reasons
    assert row.get("says", "") in "\n".join(found.reasons)
    assert row.get("note", "") in "\n".join(used.note for used in found.exceptions)
    assert bool(found.reasons) == (found.verdict is not DecisionVerdict.PASS)


def test_the_table_is_long_enough_and_says_each_thing_once() -> None:
    assert len(TABLE) >= 60
    assert len({row["why"] for row in TABLE}) == len(TABLE)


def test_exit_codes_of_verdicts() -> None:
    codes = {verdict: verdict.exit_code for verdict in DecisionVerdict}
    assert codes == {
        "pass": ExitCode.PASS,
        "block": ExitCode.FAILED,
        "review": ExitCode.REVIEW,
        "incomplete": ExitCode.INCOMPLETE,
    }


# --- what stands in a decision ---------------------------------------------------------------------------------------


def test_a_decision_carries_figure_limit_counts_interval_and_cases() -> None:
    found = decision_of({"regression": {"minimum_pass_rate": 0.98}}, {"regression/a": "ppf", "regression/b": "ppp"})
    (gate,) = found.gates
    assert (gate.name, gate.metric, gate.bound, gate.level) == (
        "regression.minimum_pass_rate",
        "pass_rate",
        "minimum",
        "block",
    )
    assert (gate.figure, gate.limit) == (pytest.approx(5 / 6), 0.98)
    assert gate.counts == "5 of 6 trials, 2 of 2 cases"
    assert gate.interval is not None
    assert gate.interval[0] < 5 / 6 < gate.interval[1]
    assert gate.cases == ("regression/a",)
    assert found.candidate["build_id"] == "b2"
    assert found.digests == {"policy": "sha256:1"}


def test_a_decision_survives_its_file() -> None:
    found = decision_of(
        {"regression": {"maximum_drop_from_baseline": 0.01}},
        {"regression/a": "ppf", "regression/n": "p"},
        {"regression/a": "ppp", "regression/gone": "p"},
    )
    assert Decision.model_validate(json.loads(found.model_dump_json())) == found
    assert (found.new, found.removed) == (("regression/n",), ("regression/gone",))


def test_reasons_begin_with_the_most_serious() -> None:
    gates = {
        "regression": {"maximum_drop_from_baseline": 0, "maximum_new_failures": 0, "minimum_pass_rate": 1},
        "handoffs": {"maximum_loop_rate": 0},
    }
    found = decision_of(gates, {"regression/a": "ppf"}, {"regression/a": "ppp"})
    assert [reason.partition(":")[0] for reason in found.reasons] == [
        "regression.minimum_pass_rate",
        "handoffs.maximum_loop_rate",
        "regression.maximum_drop_from_baseline",
    ]


def test_cases_that_broke_within_noise_are_named_beside_the_count() -> None:
    found = decision_of({"regression": {"maximum_new_failures": 0}}, {"regression/a": "ppf"}, {"regression/a": "ppp"})
    assert found.gates[0].counts == "0 of 1 case in common; broke within noise: regression/a"


def test_a_used_exception_stands_in_the_decision_and_its_gate_is_still_reported() -> None:
    rule = {"gate": "regression.pass_rate", "expires": "2026-12-31"}
    found = decision_of({"regression": {"minimum_pass_rate": 1}}, {"regression/a": "f"}, exceptions=[rule])
    (gate,), (used,) = found.gates, found.exceptions
    assert (gate.verdict, gate.figure, gate.excepted, gate.decides) == ("block", 0.0, True, False)
    assert (used.target, used.approver, used.expires, used.used) == (
        "gate regression.pass_rate",
        "someone",
        "2026-12-31",
        True,
    )


def test_what_does_not_apply_is_listed_with_its_reason() -> None:
    found = decision_of(
        {"capability": {"minimum_pass_rate": 1}},
        {"capability/a": "f", "smoke/b": "p"},
        review={"quality_score_drop_exceeds": 0.02},
        ungated=["capability"],
    )
    assert [(gate.name, gate.applies, gate.verdict) for gate in found.gates] == [
        ("capability.minimum_pass_rate", False, "pass"),
        ("review.quality_score_drop_exceeds", False, "pass"),
    ]
    assert "reported only" in found.gates[0].reason
    assert found.gates[1].reason == "does not apply: no case has a judge"


def test_a_case_whose_suite_no_longer_gates_counts_as_removed() -> None:
    info, off = run(), run(gating={"regression": False})
    cases = cases_of({"regression/a": "p", "smoke/b": "p"})
    records = records_of({"regression/a": "p", "smoke/b": "p"})
    before, after = case_results(info, cases, records), case_results(off, cases, records)
    found = decide(
        results=after,
        infos=[off],
        policy=Policy.model_validate({"gates": {"smoke": {"minimum_pass_rate": 1}}}),
        comparison=compare(side_of_results(before, "before"), side_of_results(after, "after")),
        baseline=None,
        today=TODAY,
    )
    assert (found.verdict, found.removed) == ("incomplete", ("regression/a",))


def test_an_unknown_metric_in_a_policy_made_in_python_is_refused_with_the_nearest_name() -> None:
    for gates in ({"regression": {"minimum_pas_rate": 1}}, {"regression": {"pass_rate": 1}}):
        with pytest.raises(UsageError, match=r"pass_rate|names no metric"):
            decision_of(gates, {"regression/a": "p"})


@pytest.mark.parametrize(("change", "said"), [({"expires": "2026-11-29"}, "expired"), ({"judge": {"m": 1}}, "judge")])
def test_a_baseline_that_may_not_be_compared_with_leaves_its_gates_open(change: dict[str, Any], said: str) -> None:
    info = run(build_id="b1")
    cases, records = cases_of({"regression/a": "ppp"}), records_of({"regression/a": "ppp"})
    results = case_results(info, cases, records)
    judge = change.pop("judge", None)
    before = baseline_of(
        results,
        [info if judge is None else info.model_copy(update={"judge": judge})],
        trace_of=lambda _: Trace(),
        approver="me",
        reason="good",
        fresh=True,
        now="2026-11-01T00:00:00Z",
    ).model_copy(update={key: TODAY.fromisoformat(value) for key, value in change.items()})
    gates = {"regression": {"minimum_pass_rate": 1, "maximum_new_failures": 0}}
    found = decide(
        results=results,
        infos=[info],
        policy=Policy.model_validate({"gates": gates}),
        comparison=compare(side_of_baseline(before), side_of_results(results, "after")),
        baseline=before,
        today=TODAY,
    )
    assert found.verdict is DecisionVerdict.INCOMPLETE
    assert said in found.gates[1].reason
    assert found.gates[0].verdict is DecisionVerdict.PASS
    assert found.baseline is not None
    assert found.baseline["approver"] == "me"


def test_the_printed_policy_passes_a_good_build_and_blocks_a_bad_one() -> None:
    printed = yaml.safe_load(PRINTED.read_text(encoding="utf-8"))
    names = {"regression/a!": "ppp", "smoke/b": "p"}
    grades = {
        "regression/a": {
            "required_tools": {"required_tool_recall": [1, 1], "tool_precision": [1, 1]},
            "handoff": {"handoff_accuracy": [1, 1], "handoff_recall": [1, 1]},
            "trace": {"invalid_argument_rate": [0, 3], "loop_rate": [0, 1]},
        }
    }
    more = {"review": printed["review"]["require_human_review_when"], "grades": grades}
    more["each"] = {"latency_ms": 100, "cost_usd": 0.01}
    assert decision_of(printed["gates"], names, names, **more).verdict == "pass"
    bad = decision_of(printed["gates"], names | {"regression/a!": "ppf"}, names, **more)
    assert bad.verdict == "block"
    blocked = {gate.name for gate in bad.gates if gate.verdict == "block"}
    assert blocked == {
        "safety.maximum_critical_failures",
        "regression.minimum_pass_rate",
        "regression.maximum_new_failures",
    }


# --- faults seen in the field ----------------------------------------------------------------------------------------


def test_bl_050_an_agent_that_raised_stays_in_the_denominator() -> None:
    found = decision_of({"regression": {"minimum_pass_rate": 0.9}}, {"regression/good": "p", "regression/raises": "f"})
    assert (found.gates[0].figure, found.gates[0].counts) == (0.5, "1 of 2 trials, 2 of 2 cases")
    assert found.verdict == "block"


def test_bl_052_a_mean_is_shown_with_its_count() -> None:
    patterns = {f"smoke/{name}": "f" for name in "abcd"}
    grades = {name: {"g": "broke", "h": {}} for name in list(patterns)[1:]} | {"smoke/a": {"g": {}, "h": {}}}
    found = decision_of({"quality": {"minimum_mean_score": 0.5}}, patterns, grades=grades)
    assert found.gates[0].counts == "5 of 8 grades"


def test_bl_054_a_case_where_every_grader_broke_is_neither_0_nor_passed() -> None:
    info, cases = run(), [case("good", suite="smoke"), case("dark", suite="smoke")]
    results = case_results(info, cases, [passing("good"), ungradable("dark", 1, "g", "h")])
    policy = Policy.model_validate({"gates": {"smoke": {"minimum_pass_rate": 1}, "quality": {"minimum_mean_score": 1}}})
    found = decide(results=results, infos=[info], policy=policy, comparison=None, baseline=None, today=TODAY)
    assert [gate.figure for gate in found.gates] == [1.0, 1.0]
    assert found.gates[0].counts == "1 of 1 trial, 1 of 2 cases"
    assert (found.verdict, found.reasons) == ("incomplete", ("no valid trial of dark",))
    assert exit_code(info, results) is ExitCode.INCOMPLETE


def test_bl_082_builds_judged_on_different_cases_do_not_pass() -> None:
    gates = {"regression": {"maximum_drop_from_baseline": 0.01, "minimum_pass_rate": 0.1}}
    hard = {"regression/hard1": "pffff", "regression/hard2": "pffff"}
    found = decision_of(gates, {"regression/easy1": "p"}, hard)
    assert found.exit_code is ExitCode.INCOMPLETE
    assert (found.removed, found.new) == (("regression/hard1", "regression/hard2"), ("regression/easy1",))
    assert any("regression/hard1, regression/hard2" in reason for reason in found.reasons)


def test_bl_084_stored_records_give_the_same_decision() -> None:
    patterns = {f"regression/{number}": "p" for number in range(9)} | {"regression/broken": "i"}
    info, cases, records = run(), cases_of(patterns), records_of(patterns)
    stored = [type(record).model_validate_json(record.model_dump_json()) for record in reversed(records)]
    policy = Policy.model_validate(
        {"gates": {"regression": {"minimum_pass_rate": 0.98}, "evidence": {"maximum_invalid_rate": 0.02}}}
    )
    live, again = (
        decide(
            results=case_results(info, cases, each),
            infos=[info],
            policy=policy,
            comparison=None,
            baseline=None,
            today=TODAY,
        )
        for each in (records, stored)
    )
    assert live == again
    assert live.verdict == "incomplete"


def test_bl_086_errors_of_every_kind_of_case_are_counted() -> None:
    patterns = {f"smoke/{number}": "p" for number in range(84)}
    patterns |= {f"regression/{number}!": "i" for number in range(8)} | {f"safety/{number}": "i" for number in range(8)}
    found = decision_of({"evidence": {"maximum_invalid_rate": 0.05}}, patterns)
    assert (found.gates[0].figure, found.gates[0].counts) == (0.16, "16 of 100 trials")
    assert found.exit_code is ExitCode.INCOMPLETE


# --- properties ------------------------------------------------------------------------------------------------------

IDS = [f"regression/{name}" for name in ("a", "b!", "c=", "d")]
patterns = st.dictionaries(st.sampled_from(IDS), st.text("pfiu", min_size=1, max_size=3), min_size=1)
BASELINE_GATES = {"regression": {"maximum_drop_from_baseline": 0.1, "maximum_new_failures": 0}}
ALL_GATES = {
    "regression": {"minimum_pass_rate": 0.5, "maximum_drop_from_baseline": 0.3, "maximum_new_failures": 1},
    "safety": {"maximum_critical_failures": 1},
    "evidence": {"maximum_invalid_rate": 0.3},
}


@given(patterns, patterns, st.text("pf", min_size=1, max_size=3), st.sampled_from(["", "!", "="]))
def test_adding_a_case_never_changes_what_baseline_gates_say(before, after, fresh, mark) -> None:
    once = decision_of(BASELINE_GATES, after, before)
    more = decision_of(BASELINE_GATES, after | {f"regression/new{mark}": fresh}, before)
    assert more.verdict == once.verdict
    assert [gate.figure for gate in more.gates] == [gate.figure for gate in once.gates]


@given(patterns, patterns, st.data())
def test_removing_a_case_of_the_baseline_never_passes(before, after, data) -> None:
    gone = data.draw(st.sampled_from(sorted(before)))
    after = {name: pattern for name, pattern in after.items() if name != gone}
    found = decision_of(ALL_GATES, after, before)
    assert found.verdict in (DecisionVerdict.INCOMPLETE, DecisionVerdict.BLOCK)
    assert gone.rstrip("!=") in found.removed


@given(patterns, st.none() | patterns)
def test_the_heaviest_gate_decides(after, before) -> None:
    found = decision_of(ALL_GATES, after, before)
    heaviest = max((gate.verdict for gate in found.gates if gate.decides), key=lambda verdict: verdict.weight)
    assert found.verdict.weight >= heaviest.weight
    assert found.verdict is heaviest or found.verdict is DecisionVerdict.INCOMPLETE
    assert (found.verdict is DecisionVerdict.BLOCK) == (heaviest is DecisionVerdict.BLOCK)


@given(patterns)
def test_a_build_beside_itself_has_no_drop_and_no_new_failure(same) -> None:
    found = decision_of(BASELINE_GATES, same, same)
    assert all(gate.figure in (0.0, None) for gate in found.gates)
    assert found.verdict in (DecisionVerdict.PASS, DecisionVerdict.INCOMPLETE)


@given(patterns, st.sampled_from(sorted(METRICS)), st.sampled_from(["minimum", "maximum"]), st.floats(0, 1))
def test_every_metric_gives_a_decision_that_is_json(after, metric, bound, limit) -> None:
    found = decision_of({"performance": {f"{bound}_{metric}": limit}}, after, after)
    assert json.loads(found.model_dump_json())["gates"][0]["metric"] == metric
    (gate,) = found.gates
    assert gate.reason or gate.verdict is DecisionVerdict.PASS
    assert gate.figure is not None or gate.verdict is DecisionVerdict.INCOMPLETE
