from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.grade import Grade, Tally
from seatrial.core.trace import CallState, Observable, Trace
from seatrial.environment.recorder import Recorder
from traces import finished, parallel, record, the_grade, tool_call, trace_of, without


def graded(expected: dict[str, Any], *calls: dict[str, Any], **fields: Any) -> Grade:
    return the_grade(expected, trace_of(*calls), **fields)


def said(grade: Grade) -> tuple[str, float | None, str]:
    return grade.verdict.value, grade.score, grade.reason


LOOKUP = {"name": "lookup_order", "arguments": {"order_id": "O-100"}}


# --- required_tools -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expected", "calls", "verdict", "score", "reason"),
    [
        ({"required_tools": ["a"]}, [tool_call("a")], "pass", 1.0, "1 of 1 required call made"),
        ({"required_tools": ["a"]}, [], "fail", 0.0, "expected a; actual no call; missing a (never called)"),
        (
            {"required_tools": ["lookup_order"]},
            [tool_call("lookup_orders")],
            "fail",
            0.0,
            "expected lookup_order; actual lookup_orders; missing lookup_order (never called; lookup_orders was)",
        ),
        (
            {"required_tools": [LOOKUP, "b"]},
            [
                tool_call("lookup_order", {"order_id": "O-7", "x": 1}),
                tool_call("lookup_order", {"order_id": "O-101"}),
                tool_call("b"),
            ],
            "fail",
            0.5,
            "expected lookup_order, b; actual lookup_order, lookup_order, b; missing lookup_order "
            "(closest is call 1, event 1: arguments.order_id: expected 'O-100', got 'O-7')",
        ),
        (
            {"required_tools": [LOOKUP]},
            [tool_call("lookup_order", "O-100")],
            "fail",
            0.0,
            "expected lookup_order; actual lookup_order; missing lookup_order "
            "(closest is call 1, event 1: its arguments are malformed: 'O-100')",
        ),
        (
            {"required_tools": ["a"]},
            [tool_call("a", state="failed")],
            "fail",
            0.0,
            "expected a; actual a; missing a (closest is call 1, event 1: it was failed, not executed)",
        ),
        ({"required_tools": [{"name": "a", "state": "failed"}]}, [tool_call("a", state="failed")], "pass", 1.0, None),
        ({"required_tools": [{"name": "a", "state": "refused"}]}, [tool_call("a", state="refused")], "pass", 1.0, None),
        ({"required_tools": ["a"]}, [tool_call("a", state="unknown")], "fail", 0.0, None),
        ({"required_tools": ["a"]}, [tool_call("a", state="unknown_tool")], "fail", 0.0, None),
        (
            {"required_tools": [{"name": "a", "times": 1}]},
            [tool_call("a"), tool_call("a")],
            "fail",
            0.5,
            "expected a (1 time); actual a, a; unexpected a (call 2, event 2)",
        ),
        (
            {"required_tools": [{"name": "a", "times": {"min": 3}}]},
            [tool_call("a"), tool_call("a")],
            "fail",
            2 / 3,
            "expected a (3 or more times); actual a, a; missing a (only called 2 times)",
        ),
        ({"required_tools": [{"name": "a", "times": {"min": 0, "max": 2}}]}, [], "pass", 1.0, None),
        ({"required_tools": [{"name": "a", "times": 0}]}, [tool_call("a")], "fail", 0.0, None),
        ({"required_tools": ["a"]}, [tool_call("a"), tool_call("b")], "pass", 1.0, None),
        (
            {"required_tools": ["a"], "exact_tools": True, "allowed_tools": ["b"]},
            [tool_call("a"), tool_call("b")],
            "pass",
            1.0,
            None,
        ),
        (
            {"required_tools": ["a"], "exact_tools": True, "allowed_tools": ["a"]},
            [tool_call("a"), tool_call("a")],
            "pass",
            1.0,
            None,
        ),
        (
            {"required_tools": [], "allowed_tools": ["b"]},
            [tool_call("b")],
            "pass",
            1.0,
            "only allowed tools were called",
        ),
        (
            {"exact_tools": True},
            [tool_call("b")],
            "fail",
            0.0,
            "expected no call; actual b; unexpected b (call 1, event 1)",
        ),
        (
            {"required_tools": ["a"], "exact_tools": True},
            [tool_call("a", state="refused"), tool_call("a")],
            "pass",
            1.0,
            None,
        ),
    ],
)
def test_required_tools(
    expected: dict[str, Any], calls: list[dict[str, Any]], verdict: str, score: float, reason: str | None
) -> None:
    grade = graded(expected, *calls)
    assert (grade.name, grade.verdict, grade.score) == ("required_tools", verdict, score)
    assert reason is None or grade.reason == reason


def test_required_tools_abstains_where_calls_were_not_observed() -> None:
    trace = trace_of(tool_call("a"), observes=without(Observable.TOOL_CALLS))
    assert said(the_grade({"required_tools": ["a"]}, trace)) == ("abstain", None, "tool calls were not observed")


def test_overlapping_requirements_are_assigned_so_that_most_are_met() -> None:
    both = {"required_tools": [{"name": "get"}, {"name": "get", "arguments": {"id": 2}}]}
    assert graded(both, tool_call("get", {"id": 2}), tool_call("get", {"id": 1})).verdict == "pass"
    capped = {"required_tools": [{"name": "get", "times": 1}, {"name": "get", "arguments": {"id": 2}, "times": 1}]}
    assert graded(capped, tool_call("get", {"id": 2}), tool_call("get", {"id": 1})).verdict == "pass"
    assert graded(capped, tool_call("get", {"id": 2}), tool_call("get", {"id": 2})).verdict == "pass"
    assert graded(capped, *[tool_call("get", {"id": 2})] * 3).verdict == "fail"


def test_references_to_the_input_are_resolved() -> None:
    expected = {"required_tools": [{"name": "v", "arguments": {"user": "$input.user"}}]}
    case = {"input": {"user": "u-1", "message": "hi"}}
    assert graded(expected, tool_call("v", {"user": "u-1"}), case=case).verdict == "pass"
    assert "expected 'u-1', got 'u-2'" in graded(expected, tool_call("v", {"user": "u-2"}), case=case).reason


def test_evidence_names_the_calls_that_count() -> None:
    calls = (tool_call("x"), tool_call("a"), tool_call("y"))
    assert graded({"required_tools": ["a"]}, *calls).evidence == (2,)
    assert graded({"required_tools": ["a"], "exact_tools": True}, *calls).evidence == (1, 2, 3)


def test_tallies_give_recall_precision_and_f1() -> None:
    expected = {"required_tools": [LOOKUP, "b"], "allowed_tools": ["free"]}
    grade = graded(
        expected, tool_call("lookup_order", {"order_id": "O-1"}), tool_call("b"), tool_call("free"), tool_call("extra")
    )
    assert grade.tallies == {
        "required_tool_recall": Tally(hit=1, of=2),
        "required_tool_recall/lookup_order": Tally(hit=0, of=1),
        "required_tool_recall/b": Tally(hit=1, of=1),
        "tool_precision": Tally(hit=1, of=2),
        "tool_precision/lookup_order": Tally(hit=0, of=1),
        "tool_precision/b": Tally(hit=1, of=1),
        "tool_f1": Tally(hit=0.8, of=1),
    }


def test_f1_is_one_when_nothing_was_expected_and_nothing_called_and_zero_when_one_side_is_empty() -> None:
    assert graded({"required_tools": []}).tallies["tool_f1"].hit == 1
    assert graded({"required_tools": []}, tool_call("a")).tallies["tool_f1"].hit == 0
    assert graded({"required_tools": ["a"]}).tallies["tool_f1"].hit == 0
    assert graded({"required_tools": []}, tool_call("a", state="refused")).tallies["tool_f1"].hit == 1


NAMES = st.sampled_from(["a", "b", "c"])
STATES = st.sampled_from([state.value for state in CallState])


@given(
    st.lists(st.builds(lambda name, low: {"name": name, "times": low}, NAMES, st.integers(0, 3)), max_size=4),
    st.lists(st.builds(lambda name, state: tool_call(name, state=state), NAMES, STATES), max_size=6),
    st.booleans(),
    st.lists(NAMES, max_size=2),
)
def test_scores_stay_within_0_and_1_and_are_1_exactly_on_a_pass(
    required: list[dict[str, Any]], calls: list[dict[str, Any]], exact: bool, allowed: list[str]
) -> None:
    grade = graded({"required_tools": required, "exact_tools": exact, "allowed_tools": allowed}, *calls)
    assert grade.score is not None
    assert 0 <= grade.score <= 1
    assert (grade.verdict == "pass") == (grade.score == 1)
    assert all(0 <= tally.hit <= tally.of for tally in grade.tallies.values())


# --- forbidden ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rule", "call", "verdict", "reason"),
    [
        ("pay", tool_call("look"), "pass", "no forbidden call of pay"),
        ("pay", tool_call("pay"), "fail", "pay was called (call 1, event 1)"),
        ("pay", tool_call("pay", state="failed"), "fail", "pay was called (failed) (call 1, event 1)"),
        ("pay", tool_call("pay", state="refused"), "fail", "pay was attempted and refused (call 1, event 1)"),
        ({"name": "pay", "attempts": "allowed"}, tool_call("pay", state="refused"), "pass", None),
        ({"name": "pay", "attempts": "allowed"}, tool_call("pay"), "fail", None),
        ("pay", tool_call("pay", state="unknown_tool"), "fail", None),
        ("pay", tool_call("pay", state="invalid_arguments"), "fail", None),
        ("pay", tool_call("pay", "junk"), "fail", None),
        ({"name": "pay", "arguments": {"amount": {"$gt": 5}}}, tool_call("pay", {"amount": 5}), "pass", None),
        ({"name": "pay", "arguments": {"amount": {"$gt": 5}}}, tool_call("pay", {"amount": 6}), "fail", None),
        (
            {"name": "pay", "arguments": {"amount": {"$gt": 5}}},
            tool_call("pay", {"amount": 5}, asked={"amount": 6}),
            "fail",
            None,
        ),
        ({"name": "pay", "arguments": {"dry_run": {"$not": True}}}, tool_call("pay"), "fail", None),
        ({"name": "pay", "arguments": {"amount": 6}}, tool_call("pay", "junk"), "pass", None),
        (
            {"name": "pay", "arguments": {"amount": 6}},
            tool_call("pay", "junk", state="invalid_arguments"),
            "pass",
            None,
        ),
        ({"name": "pay", "arguments": {"amount": 6}}, tool_call("pay", "junk", state="unknown_tool"), "pass", None),
        ({"name": "pay", "arguments": {}}, tool_call("pay", "junk", state="invalid_arguments"), "fail", None),
        (
            {"name": "pay", "arguments": {"amount": 6}},
            tool_call("pay", {"amuont": 6}, state="invalid_arguments"),
            "fail",
            "pay was called (rejected for its arguments) (call 1, event 1)",
        ),
        (
            {"name": "pay", "arguments": {"amount": 6}},
            tool_call("pay", state="unknown_tool"),
            "fail",
            "pay was called (a call of an unknown tool) (call 1, event 1)",
        ),
        ({"name": "pay", "arguments": {"amount": 6}}, tool_call("pay", {"amount": 5}, state="failed"), "pass", None),
        ({"name": "pay", "arguments": {"amount": 6}}, tool_call("pay", {"amount": 6}, state="refused"), "fail", None),
        ({"name": "pay", "arguments": {"amount": 6}}, tool_call("look", {}, state="unknown_tool"), "pass", None),
    ],
)
def test_forbidden_tools(rule: Any, call: dict[str, Any], verdict: str, reason: str | None) -> None:
    grade = graded({"forbidden_tools": [rule]}, call)
    assert (grade.name, grade.verdict) == ("forbidden_tools", verdict)
    assert reason is None or grade.reason == reason


def test_forbidden_tools_abstains_unless_a_violation_was_seen_anyway() -> None:
    blind = without(Observable.TOOL_CALLS)
    assert the_grade({"forbidden_tools": ["pay"]}, trace_of(observes=blind)).verdict == "abstain"
    assert the_grade({"forbidden_tools": ["pay"]}, trace_of(tool_call("pay"), observes=blind)).verdict == "fail"


def test_a_forbidden_call_is_a_miss_in_precision() -> None:
    assert graded({"forbidden_tools": ["pay"]}, tool_call("pay")).tallies["tool_precision/pay"] == Tally(hit=0, of=1)
    assert graded({"forbidden_tools": ["pay"]}).tallies == {}


def asking(action: str, arguments: Any, decision: str = "granted") -> Trace:
    recorder = Recorder()
    recorder.approval(action, arguments, decision)
    return finished(recorder)


def test_forbidden_approvals() -> None:
    expected = {"forbidden_approvals": [{"action": "pay", "arguments": {"amount": {"$lte": 500}}}]}
    assert said(the_grade(expected, asking("pay", {"amount": 500}, "denied"))) == (
        "fail",
        0.0,
        "asked for approval of pay (event 1)",
    )
    assert said(the_grade(expected, asking("pay", {"amount": 501}))) == (
        "pass",
        1.0,
        "no forbidden approval was asked for",
    )
    blind = trace_of(observes=without(Observable.APPROVALS))
    assert said(the_grade(expected, blind)) == ("abstain", None, "approvals were not observed")


# --- tool_order -----------------------------------------------------------------------------------------------------

CHAIN = {"tool_order": [["verify", "pay"]]}


@pytest.mark.parametrize(
    ("calls", "verdict", "reason"),
    [
        ([tool_call("verify"), tool_call("pay")], "pass", "the order is kept: verify -> pay"),
        ([], "pass", None),
        ([tool_call("verify")], "pass", None),
        ([tool_call("pay")], "fail", "pay (event 1) without verify before it, which never happened"),
        ([tool_call("pay"), tool_call("verify")], "fail", "pay (event 1) came not after a completed verify (event 2)"),
        ([tool_call("pay"), tool_call("verify"), tool_call("pay")], "fail", None),
        ([tool_call("verify"), tool_call("pay"), tool_call("verify")], "pass", None),
        ([tool_call("verify", state="failed"), tool_call("pay")], "fail", None),
        ([tool_call("pay", state="refused"), tool_call("verify"), tool_call("pay")], "pass", None),
        ([tool_call("pay", state="failed"), tool_call("verify"), tool_call("pay")], "fail", None),
        (
            [tool_call("verify", step=1), tool_call("pay", step=1)],
            "fail",
            "pay (event 2) came in the same model turn as verify (event 1)",
        ),
    ],
)
def test_tool_order(calls: list[dict[str, Any]], verdict: str, reason: str | None) -> None:
    grade = graded(CHAIN, *calls)
    assert (grade.name, grade.verdict) == ("tool_order", verdict)
    assert reason is None or grade.reason == reason


RETRIES: dict[str, tuple[str, bool]] = {
    "a failed attempt, repeated": ("verify! verify pay", True),
    "several failed attempts": ("verify! verify! verify pay", True),
    "an attempt of unknown state, repeated": ("verify? verify pay", True),
    "paid before the attempt that worked": ("verify! pay verify pay", False),
    "paid after a failed attempt only": ("verify! pay", False),
    "tried to pay before the attempt that worked": ("verify! pay! verify pay", False),
    "the payment fails and is repeated": ("verify pay! pay", True),
    "the payment fails": ("verify pay!", True),
    "both are repeated": ("verify! verify pay! pay", True),
    "verified again later": ("verify pay verify! pay", True),
    "a refused payment came first": ("pay- verify! verify pay", True),
    "paid first": ("pay verify! verify pay", False),
    "verification fails beside one that works": ("verify!1 verify1 pay2", True),
    "paid in the turn of the attempt that worked": ("verify!1 verify2 pay2", False),
    "paid in the turn of the failed attempt": ("verify!1 pay1 verify2 pay3", False),
    "paid in the turn of a second verification": ("verify1 verify2 pay2", True),
    "nothing but a failed attempt": ("verify!", True),
}
STATES_SHORT = {"!": "failed", "?": "unknown", "-": "refused"}


def calls_of(text: str) -> list[dict[str, Any]]:
    """`verify!2` is a failed call of verify in model turn 2."""
    found = []
    for word in text.split():
        name = word.rstrip("0123456789")
        step = word.removeprefix(name)
        state = STATES_SHORT.get(name[-1], "executed")
        found.append(tool_call(name.rstrip("!?-"), state=state, step=int(step) if step else None))
    return found


@pytest.mark.parametrize("what", RETRIES)
def test_an_attempt_may_be_repeated_before_the_chain_goes_on(what: str) -> None:
    text, holds = RETRIES[what]
    grade = graded(CHAIN, *calls_of(text))
    assert grade.verdict == ("pass" if holds else "fail"), grade.reason


def test_every_link_of_a_longer_chain_may_be_repeated() -> None:
    expected = {"tool_order": [["a", "b", "c"]]}
    fail = {"state": "failed"}
    assert graded(expected, *(tool_call(n) for n in "abc")).verdict == "pass"
    retried = [tool_call("a", **fail), tool_call("a"), tool_call("b", **fail), tool_call("b"), tool_call("c")]
    assert graded(expected, *retried).verdict == "pass"
    assert graded(expected, *retried[:3], tool_call("c"), tool_call("b"), tool_call("c")).verdict == "fail"
    assert graded(expected, tool_call("a", **fail), *retried[3:], tool_call("a")).verdict == "fail"


def test_calls_that_overlap_have_no_order() -> None:
    recorder = Recorder()
    verify, pay = recorder.begin_tool_call("verify"), recorder.begin_tool_call("pay")
    recorder.end_tool_call(verify, duration_ms=1.0)
    recorder.end_tool_call(pay, duration_ms=1.0)
    assert the_grade(CHAIN, finished(recorder)).verdict == "fail"


def test_a_name_may_come_again_in_a_chain() -> None:
    expected = {"tool_order": [["lock", "write", "lock"]]}
    assert graded(expected, *(tool_call(n) for n in ("lock", "write", "lock"))).verdict == "pass"
    assert graded(expected, *(tool_call(n) for n in ("write", "lock", "write", "lock"))).verdict == "fail"


def test_a_missing_middle_fails_the_chain_and_is_named() -> None:
    expected = {"tool_order": [["a", "b", "c", "d"]]}
    assert (
        graded(expected, tool_call("a"), tool_call("d")).reason
        == "d (event 2) without b before it, which never happened"
    )


def test_entries_may_ask_for_arguments() -> None:
    expected = {"tool_order": [[{"name": "verify", "arguments": {"user": 1}}, "pay"]]}
    assert graded(expected, tool_call("verify", {"user": 1}), tool_call("pay")).verdict == "pass"
    assert graded(expected, tool_call("verify", {"user": 2}), tool_call("pay")).verdict == "fail"
    assert graded(expected, tool_call("verify", "user 1"), tool_call("pay")).verdict == "fail"


ESCALATION = {"tool_order": [["handoff:boss", "approval:pay", "pay"]]}


def escalated(decision: str = "granted", *, target: str = "boss", within: bool = False, **fields: Any) -> Trace:
    recorder = Recorder()
    recorder.handoff("desk", target)
    if within:
        number = recorder.begin_tool_call("pay", {})
        recorder.approval("pay", {}, decision)
        recorder.end_tool_call(number, duration_ms=1.0)
    else:
        recorder.approval("pay", {}, decision)
        record(recorder, tool_call("pay"))
    return finished(recorder, **fields)


def test_handoffs_and_approvals_may_stand_in_a_chain() -> None:
    assert the_grade(ESCALATION, escalated()).verdict == "pass"
    assert the_grade(ESCALATION, escalated("edited")).verdict == "pass"
    assert the_grade(ESCALATION, escalated(target="peer")).verdict == "fail"
    assert the_grade(ESCALATION, escalated("denied")).reason == (
        "pay (event 3) without approval:pay before it, which never happened"
    )


def test_an_approval_asked_for_within_the_call_came_before_it() -> None:
    assert the_grade(ESCALATION, escalated(within=True)).verdict == "pass"


def test_handoffs_and_approvals_may_be_repeated_too() -> None:
    recorder = Recorder()
    recorder.handoff("desk", "boss", completed=False)
    recorder.handoff("desk", "boss")
    recorder.approval("pay", {}, "denied")
    record(recorder, tool_call("pay", state="refused"))
    recorder.approval("pay", {}, "granted")
    record(recorder, tool_call("pay", state="failed"))
    record(recorder, tool_call("pay"))
    assert the_grade(ESCALATION, finished(recorder)).verdict == "pass"
    assert the_grade({"tool_order": [["pay", "handoff:boss"]]}, finished(recorder)).verdict == "fail"


def test_a_payment_before_the_approval_is_out_of_order() -> None:
    recorder = Recorder()
    recorder.handoff("desk", "boss")
    record(recorder, tool_call("pay", state="failed"))
    recorder.approval("pay", {}, "granted")
    record(recorder, tool_call("pay"))
    grade = the_grade(ESCALATION, finished(recorder))
    assert said(grade) == ("fail", 0.0, "pay (event 2) came not after a completed approval:pay (event 3)")


def test_a_mixed_chain_abstains_where_the_common_order_is_unknown() -> None:
    grade = the_grade({"tool_order": [["handoff:boss", "pay"], ["a", "b"]]}, escalated(ordered=False))
    assert said(grade) == ("abstain", None, "the order between tool calls and hand-offs was not observed")
    assert the_grade({"tool_order": [["a", "pay"]]}, escalated(ordered=False)).verdict == "fail"


@pytest.mark.parametrize(
    ("unseen", "reason"),
    [
        (Observable.TOOL_CALLS, "tool calls were not observed"),
        (Observable.HANDOFFS, "handoffs were not observed"),
        (Observable.APPROVALS, "approvals were not observed"),
    ],
)
def test_tool_order_abstains_on_what_was_not_observed(unseen: Observable, reason: str) -> None:
    grade = the_grade(ESCALATION, escalated(observes=without(unseen)))
    assert said(grade) == ("abstain", None, reason)


# --- faults seen in the field ---------------------------------------------------------------------------------------


def test_bl_002_a_repeated_call_never_scores_above_one() -> None:
    weather = {"name": "weather", "arguments": {"city": "Oslo"}}
    calls = [tool_call("weather", {"city": "Oslo"})] * 3
    free = graded({"required_tools": [weather]}, *calls)
    assert (free.verdict, free.score) == ("pass", 1.0)
    exact = graded({"required_tools": [weather], "exact_tools": True}, *calls)
    assert exact.verdict == "fail"
    assert exact.score is not None
    assert exact.score < 1.0
    assert "unexpected weather (call 2, event 2), weather (call 3, event 3)" in exact.reason


def test_bl_004_calls_of_one_turn_have_no_order() -> None:
    expected = {"tool_order": [["a", "c"], ["b", "c"]]}
    recorder = Recorder()
    step = recorder.begin_model_call("m")
    both = [recorder.begin_tool_call(name, {}, step=step) for name in ("b", "a")]
    for number in both:
        recorder.end_tool_call(number, duration_ms=1.0)
    record(recorder, tool_call("c", step=recorder.begin_model_call("m")))
    assert the_grade(expected, finished(recorder)).verdict == "pass"
    assert graded(expected, tool_call("c", step=1), tool_call("a", step=2), tool_call("b", step=2)).verdict == "fail"
    same_turn = Trace(events=tuple(parallel("a", "c", step=0)), observes=frozenset(Observable))
    assert the_grade({"tool_order": [["a", "c"]]}, same_turn).verdict == "fail"


def test_bl_006_order_is_over_names_and_arguments() -> None:
    one, two = ({"name": "get", "arguments": {"id": n}} for n in (1, 2))
    expected = {"tool_order": [[one, two]]}
    assert graded(expected, *(tool_call("get", {"id": n}) for n in (2, 1, 2))).verdict == "pass"
    assert graded(expected, *(tool_call("get", {"id": n}) for n in (2, 1))).verdict == "fail"


@pytest.mark.parametrize("arguments", [None, "", {}])
def test_bl_008_two_empty_argument_objects_are_equal(arguments: Any) -> None:
    expected = {"required_tools": [{"name": "now", "arguments": {"$exact": {}}}]}
    grade = graded(expected, tool_call("now", arguments))
    assert (grade.verdict, grade.score) == ("pass", 1.0)
    assert graded(expected, tool_call("now", [])).verdict == "fail"


def test_bl_010_arguments_compare_by_value_and_type() -> None:
    expected = {"required_tools": [{"name": "set", "arguments": {"n": 1, "on": True}}]}
    assert graded(expected, tool_call("set", {"n": 1.0, "on": True})).verdict == "pass"
    for wrong, why in (
        ({"n": True, "on": True}, "arguments.n: expected 1 (integer), got true (boolean)"),
        ({"n": "1", "on": True}, "arguments.n: expected 1 (integer), got '1' (string)"),
        ({"n": 1, "on": 1}, "arguments.on: expected true (boolean), got 1 (integer)"),
    ):
        grade = graded(expected, tool_call("set", wrong))
        assert grade.verdict == "fail"
        assert why in grade.reason


def test_bl_012_subset_matching_is_deep_and_exact_is_not() -> None:
    call = tool_call("find", {"filter": {"city": "Rome", "page": 1}, "trace": "x", "tags": ["a", "b"]})

    def verdict(arguments: Any) -> str:
        return graded({"required_tools": [{"name": "find", "arguments": arguments}]}, call).verdict.value

    assert verdict({"filter": {"city": "Rome"}}) == "pass"
    assert verdict({"$exact": {"filter": {"city": "Rome"}}}) == "fail"
    assert verdict({"tags": ["a"]}) == "fail"
    assert verdict({"tags": {"$contains": "a"}}) == "pass"


def test_bl_014_the_reason_names_expected_actual_and_unexpected() -> None:
    grade = graded({"required_tools": ["A"], "exact_tools": True}, tool_call("A"), tool_call("B"))
    assert grade.reason == "expected A; actual A, B; unexpected B (call 2, event 2)"
    assert "missing" not in grade.reason


def test_bl_016_forbidden_actions_are_looked_for_in_calls_not_in_prose() -> None:
    rule = {"name": "shell", "arguments": {"command": {"$contains": "git push -f"}}}
    expected = {"forbidden_tools": [rule]}
    assert the_grade(expected, trace_of(output="I will not run git push -f")).verdict == "pass"
    calls = tool_call("shell", {"command": "git push -f origin"})
    assert the_grade(expected, trace_of(calls, output="done")).verdict == "fail"


def test_bl_018_an_empty_list_means_that_no_tool_may_be_called() -> None:
    assert said(graded({"required_tools": []})) == ("pass", 1.0, "no tool was called")
    assert said(graded({"required_tools": []}, tool_call("search"))) == (
        "fail",
        0.0,
        "expected no call; actual search; unexpected search (call 1, event 1)",
    )
