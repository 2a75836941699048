from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.core.metric import METRICS
from seatrial.core.policy import Exceptions, Policy, gates_of
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.loading.check import check
from seatrial.loading.located import plain
from seatrial.loading.policies import EXCEPTIONS, POLICY, load_exceptions, load_policy
from seatrial.loading.rules_of_policies import policy_problems
from seatrial.loading.yaml import read_yaml

SUITES = ("smoke", "regression")


def project(folder) -> Project:
    return Project(root=str(folder.root))


def refused(folder, text: str) -> tuple[Diagnostic, ...]:
    folder.write({POLICY: text})
    with pytest.raises(InputError) as caught:
        load_policy(project(folder), suites=SUITES)
    return caught.value.diagnostics


def test_the_printed_policy_loads(folder, data) -> None:
    folder.write({POLICY: (data / "printed_policy.yaml").read_bytes()})
    policy = load_policy(project(folder), suites=SUITES)
    assert (policy.alpha, policy.confirm) == (0.05, True)
    names = [gate.name for gate in gates_of(policy)]
    assert len(names) == 16
    assert names[0] == "safety.maximum_critical_failures"
    assert names[-1] == "review.candidate_failure_count_exceeds"
    assert policy.gates["regression"]["minimum_pass_rate"].value == 0.98
    levels = {gate.spec.level for gate in gates_of(policy) if gate.condition}
    assert levels == {"review"}


def test_a_gate_may_say_more_than_its_limit(folder) -> None:
    text = "gates: {tools: {minimum_pass_rate: {value: 1, level: review, suite: smoke, risk: high, evidence: proven}}}"
    policy = load_policy(project(folder.write({POLICY: text})), suites=SUITES)
    (gate,) = gates_of(policy)
    assert (gate.spec.level, gate.suite, gate.spec.risk, gate.spec.evidence) == ("review", "smoke", "high", "proven")
    assert gate.spec.when_missing == "incomplete"


@pytest.mark.parametrize(
    ("text", "rule", "message", "hint"),
    [
        (
            "gates: {smoke: {minimum_pas_rate: 1}}",
            "unknown-metric",
            "gates.smoke.minimum_pas_rate",
            "minimum_pass_rate",
        ),
        ("gates: {smoke: {maximum_new_failure: 1}}", "unknown-metric", "names no metric", "'maximum_new_failures'"),
        ("gates: {smoke: {min_pass_rate: 1}}", "unknown-metric", "names no metric", "'minimum_pass_rate'"),
        ("gates: {smoke: {pass_rate: 1}}", "unknown-metric", "names no metric", "minimum_pass_rate or maximum_"),
        ("gates: {regresion: {minimum_pass_rate: 1}}", "unknown-suite", "'regresion'", "did you mean 'regression'?"),
        ("gates: {tool: {minimum_pass_rate: 1}}", "unknown-suite", "'tool'", "did you mean 'tools'?"),
        (
            "gates: {tools: {minimum_pass_rate: {value: 1, suite: smok}}}",
            "unknown-suite",
            "'smok' is no suite",
            "did you mean 'smoke'?",
        ),
        ("gates: {smoke: {minimum_pass_rate: 98}}", "out-of-range", "from 0 to 1, not 98 (a number)", "98 % is 0.98"),
        ("gates: {smoke: {minimum_pass_rate: -0.1}}", "out-of-range", "not -0.1", ""),
        ("gates: {smoke: {minimum_pass_rate: {value: 1.01}}}", "out-of-range", "minimum_pass_rate.value", ""),
        ("gates: {smoke: {maximum_drop_from_baseline: 2}}", "out-of-range", "from 0 to 1", "2 % is 0.02"),
        ("gates: {smoke: {maximum_new_failures: -1}}", "out-of-range", "0 or more", ""),
        ("gates: {smoke: {minimum_pass_rate: '0.98'}}", "wrong-value", "a number or a mapping, not '0.98' (text)", ""),
        ("gates: {smoke: {minimum_pass_rate: true}}", "wrong-value", "not true (a boolean)", ""),
        ("gates: {smoke: {minimum_pass_rate: [1]}}", "wrong-value", "not a list", ""),
        ("gates: {smoke: {minimum_pass_rate: null}}", "wrong-value", "not null", ""),
        ("gates: {smoke: {minimum_pass_rate: {value: '1'}}}", "wrong-value", "a number, not '1' (text)", "quotes"),
        ("gates: {smoke: {minimum_pass_rate: {level: block}}}", "missing-key", "value", ""),
        ("gates: {smoke: {minimum_pass_rate: {value: 1, levl: block}}}", "unknown-key", "'levl'", "'level'"),
        ("gates: {smoke: {minimum_pass_rate: {value: 1, level: stop}}}", "wrong-value", "'block' or 'review'", ""),
        ("gates: {smoke: {minimum_pass_rate: {value: 1, when_missing: pass}}}", "wrong-value", "'skip'", ""),
        (
            "gates: {smoke: {maximum_new_failures: {value: 0, evidence: proven}}}",
            "wrong-value",
            "minimum_pass_rate and maximum_drop_from_baseline only",
            "",
        ),
        ("gates: {smoke: {maximum_pass_rate: {value: 0, evidence: beyond}}}", "wrong-value", "evidence beyond", ""),
        ("gates: {smoke: null}", "wrong-value", "a mapping", ""),
        (
            "gates: {smoke: {minimum_pass_rate: {value: 1, suite: regression}}}",
            "contradiction",
            "`gates.smoke.minimum_pass_rate.suite` is 'regression', but the group 'smoke' judges",
            "move the gate to the group 'regression'",
        ),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, alpha: 0.5}", "wrong-value", "should be below 0.5, not 0.5", ""),
        ("gates: {smoke: {minimum_pass_rate: 007}}", "leading-zero", "007", ""),
        ("gates: {smoke: {maximum_pass_rate: .inf}}", "not-finite", ".inf", ""),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, alfa: 0.1}", "unknown-key", "'alfa'", "'alpha'"),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, alpha: '0.1'}", "wrong-value", "a number", "without quotes"),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, alpha: 0}", "wrong-value", "above 0", ""),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, confirm: no}", "wrong-value", "true or false", "false"),
        ("{gates: {smoke: {minimum_pass_rate: 1}}, version: 2}", "wrong-value", "should be 1", ""),
        ("review: {require_human_review_when: {quality_drop_exceeds: 1}}", "unknown-metric", "", "quality_score_drop"),
        ("review: {require_human_review_when: {new_failures: 1}}", "unknown-metric", "", "write new_failures_exceeds"),
        ("review: {require_human_review_when: {new_failures_exceeds: '3'}}", "wrong-value", "a number", "quotes"),
        ("review: {require_human_review_when: {pass_rate_exceeds: 3}}", "out-of-range", "from 0 to 1", ""),
        ("version: 1", "no-gates", "no gate", ""),
        ("gates: {}", "no-gates", "no gate", ""),
        ("gates: {smoke: {}}", "no-gates", "no gate", ""),
        ("", "wrong-value", "a release policy is a mapping", ""),
        ("- gates", "wrong-value", "a release policy is a mapping", ""),
    ],
)
def test_a_bad_policy_is_refused_with_place_rule_value_and_hint(
    folder, text: str, rule: str, message: str, hint: str
) -> None:
    (problem,) = refused(folder, text)
    assert (problem.rule, problem.path, problem.line) == (rule, POLICY, 1), problem
    assert problem.column is not None
    assert message in problem.message
    assert hint in problem.hint


def test_every_problem_comes_at_once_in_the_order_of_the_file(folder) -> None:
    problems = refused(
        folder,
        "version: 1\ngates:\n  smoke:\n    minimum_pass_rate: 98\n    maximum_drp: 0\n"
        "  tools:\n    minimum_recall: '1'\n",
    )
    assert [(problem.line, problem.column, problem.rule) for problem in problems] == [
        (4, 24, "out-of-range"),
        (5, 5, "unknown-metric"),
        (7, 21, "wrong-value"),
    ]


def test_without_the_suites_of_the_project_any_group_may_be_one(folder) -> None:
    text = "gates: {regresion: {minimum_pass_rate: 1}, tools: {minimum_pass_rate: {value: 1, suite: anything}}}"
    folder.write({POLICY: text})
    assert list(load_policy(project(folder)).gates) == ["regresion", "tools"]


def test_another_file_may_be_named_and_a_missing_one_is_said(folder, tmp_path: Path) -> None:
    strict = tmp_path / "strict.yaml"
    strict.write_text("gates: {smoke: {minimum_pass_rate: 1}}", encoding="utf-8")
    assert load_policy(project(folder), strict).gates["smoke"]["minimum_pass_rate"].value == 1
    for path, said in ((None, POLICY), (tmp_path / "none.yaml", r"none\.yaml")):
        with pytest.raises(UsageError, match=f"no release policy .*{said}"):
            load_policy(project(folder), path)


@given(
    st.sampled_from(sorted(METRICS)),
    st.sampled_from(["minimum", "maximum"]),
    st.floats(-2, 200, allow_nan=False) | st.integers(-2, 200),
)
def test_a_limit_is_accepted_exactly_within_the_range_of_its_metric(name: str, bound: str, limit: float) -> None:
    written = read_yaml(f"gates: {{smoke: {{{bound}_{name}: {limit!r}}}}}")
    highest = METRICS[name].most
    within = limit >= 0 and (highest is None or limit <= highest)
    assert (not list(policy_problems(written, SUITES))) == within
    Policy.model_validate(plain(written))


# --- exceptions ------------------------------------------------------------------------------------------------------

WHOLE = "reason: known, approver: someone, expires: 2026-12-31"


def test_the_printed_exceptions_load(folder, data) -> None:
    folder.write({EXCEPTIONS: (data / "printed_exceptions.yaml").read_bytes()})
    case, gate = load_exceptions(project(folder)).exceptions
    assert (case.case, case.gate, case.expires) == ("refund_requires_supervisor_001", None, date(2026, 12, 31))
    assert (gate.case, gate.gate, gate.approver) == (None, "performance.p95_latency_ms", "platform")


@pytest.mark.parametrize("text", [None, "", "# nothing yet\n", "exceptions: []", "version: 1"])
def test_a_project_may_have_no_exceptions(folder, text: str | None) -> None:
    if text is not None:
        folder.write({EXCEPTIONS: text})
    assert load_exceptions(project(folder)) == Exceptions()


def test_a_named_file_of_exceptions_must_be_there(folder, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.yaml"):
        load_exceptions(project(folder), tmp_path / "none.yaml")


@pytest.mark.parametrize(
    ("entry", "rule", "message", "hint"),
    [
        ("{case: a, reason: r, expires: 2026-12-31}", "missing-key", "`exceptions[0].approver`", ""),
        ("{case: a, reason: r, approver: me}", "missing-key", "`exceptions[0].expires`", ""),
        ("{case: a, approver: me, expires: 2026-12-31}", "missing-key", "`exceptions[0].reason`", ""),
        ("{case: a, reason: r, approver: '', expires: 2026-12-31}", "wrong-value", "approver", ""),
        ("{case: a, reason: r, approver: ' ', expires: 2026-12-31}", "wrong-value", "text that is not blank", ""),
        ("{case: a, reason: r, approver: me, expires: 2026-02-30}", "wrong-value", "expires", ""),
        ("{case: a, reason: r, approver: me, expires: 20261231}", "wrong-value", "YYYY-MM-DD", ""),
        (
            "{case: a, reason: r, approver: me, expires: never}",
            "wrong-value",
            "should be a date, YYYY-MM-DD, not 'never'",
            "",
        ),
        (f"{{{WHOLE}}}", "wrong-value", "a case or a gate", ""),
        (f"{{case: a, gate: smoke.pass_rate, {WHOLE}}}", "wrong-value", "a case or a gate", ""),
        (f"{{gate: smoke.pas_rate, {WHOLE}}}", "unknown-metric", "'smoke.pas_rate' names no gate", "'pass_rate'"),
        (f"{{gate: pass_rate, {WHOLE}}}", "unknown-metric", "write group.metric", ""),
        (f"{{case: a, until: x, {WHOLE}}}", "unknown-key", "'until'", ""),
    ],
)
def test_bad_exceptions_are_refused(folder, entry: str, rule: str, message: str, hint: str) -> None:
    folder.write({EXCEPTIONS: f"exceptions: [{entry}]"})
    with pytest.raises(InputError) as caught:
        load_exceptions(project(folder))
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.path, problem.line) == (rule, EXCEPTIONS, 1), problem
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    "name", ["smoke.pass_rate", "smoke.minimum_pass_rate", "review.candidate_failure_count_exceeds"]
)
def test_a_gate_is_named_with_or_without_its_bound(folder, name: str) -> None:
    folder.write({EXCEPTIONS: f"exceptions: [{{gate: {name}, {WHOLE}}}]"})
    assert load_exceptions(project(folder)).exceptions[0].gate == name


# --- check -----------------------------------------------------------------------------------------------------------


def test_check_reads_policies_with_the_suites_of_the_project(folder) -> None:
    folder.write(
        {
            "seatrial.yaml": "version: 1\nagent: m:f\nsuites: {empty: {}}\n",
            "cases/smoke/a.yaml": "{id: a, query: hi, expected_answer: x}",
            POLICY: "gates:\n  smok: {minimum_pass_rate: 1}\n  empty: {minimum_pass_rate: 1}\n",
            EXCEPTIONS: "exceptions: [{case: a}]",
        }
    )
    found = [(problem.path, problem.line, problem.rule) for problem in check(folder.root)]
    assert found == [(EXCEPTIONS, 1, "missing-key")] * 3 + [(POLICY, 2, "unknown-suite")]
