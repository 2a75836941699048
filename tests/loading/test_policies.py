from __future__ import annotations

import pytest

from seatrial.core.permissions import CRITICAL_VIOLATIONS, VIOLATIONS
from seatrial.core.project import Project
from seatrial.errors import InputError
from seatrial.loading.policies import load_rules


def project(folder) -> Project:
    return Project(root=str(folder.root))


def test_the_printed_rules_load(printed) -> None:
    rules = load_rules(project(printed))
    assert rules is not None
    rule = rules.tools["process_refund"]
    assert rule.scopes["tenant"].must_be == "same"
    assert rule.requires[0].arguments == {"user_id": "$input.user_id"}
    assert rule.approval is not None
    assert rule.approval.by == ("supervisor",)
    assert rules.handoffs == {"refund_agent": ("refund_supervisor",)}
    assert rules.unlisted == "deny"
    assert (rules.side_effect("process_refund"), rules.side_effect("lookup_order")) == (True, False)
    assert not rules.side_effect("unheard_of")


def test_a_project_may_have_no_rules(folder) -> None:
    assert load_rules(project(folder)) is None


def test_a_scope_may_name_its_field_and_layout_does_not_change_the_digest(folder) -> None:
    text = "tools: {t: {scopes: {tenant: {field: hotel, is: same}}}}"
    rules = load_rules(project(folder.write({"policies/tool_permissions.yaml": text})))
    assert rules is not None
    assert rules.tools["t"].scopes["tenant"].field == "hotel"
    text = "# a comment\ntools:\n  t:\n    scopes:\n      tenant: {is: same, field: hotel}\n"
    again = load_rules(project(folder.write({"policies/tool_permissions.yaml": text})))
    assert again is not None
    assert again.digest == rules.digest


@pytest.mark.parametrize(
    ("text", "rule", "message"),
    [
        ("toools: {}", "unknown-key", "'toools'"),
        ("tools: {t: {side_effects: true}}", "unknown-key", "'side_effects'"),
        ("tools: {t: {scopes: {tenant: other}}}", "wrong-value", "'same'"),
        ("tools: {t: {limits: {amount: {$lt: 1, $foo: 2}}}}", "bad-matcher", "$foo"),
        ("tools: {t: {approval: {when: {amount: {$foo: 1}}}}}", "bad-matcher", "$foo"),
        ("tools: {t: {requires: [{tool: v, with: {a: {$foo: 1}}}]}}", "bad-matcher", "$foo"),
        ("tools: {t: {side_effect: yes}}", "wrong-value", "'yes' (text)"),
        ("unlisted: maybe", "wrong-value", "'deny' or 'allow'"),
        ("", "wrong-value", "a mapping"),
    ],
)
def test_bad_rules_are_named_with_rule_and_value(folder, text: str, rule: str, message: str) -> None:
    folder.write({"policies/tool_permissions.yaml": text})
    with pytest.raises(InputError) as caught:
        load_rules(project(folder))
    (problem,) = caught.value.diagnostics
    assert (problem.rule, problem.path, problem.line) == (rule, "policies/tool_permissions.yaml", 1)
    assert message in problem.message


def test_critical_violations_are_all_but_four() -> None:
    assert len(CRITICAL_VIOLATIONS) == len(VIOLATIONS) - 4
