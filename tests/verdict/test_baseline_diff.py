from __future__ import annotations

from typing import Any

from made import case, failing, passing, run
from seatrial.verdict.baseline import Baseline, baseline_of
from seatrial.verdict.baseline_diff import Changed, baseline_diff, run_diff
from seatrial.verdict.comparison import Change
from seatrial.verdict.metrics import case_results
from seatrial.verdict.sides import side_of_run
from traces import tool_call, trace_of


def made(trials, agent: dict[str, Any], **more: Any) -> Baseline:
    info = run(build_id="good", agent=agent)
    given_ = {"approver": "Ann", "reason": "first", "fresh": True, "now": "2026-01-31T12:00:00Z"} | more
    results = case_results(info, [case(name) for name in sorted({trial.case_id for trial in trials})], trials)
    return baseline_of(results, [info], trace_of=lambda record: trace_of(tool_call("pay")), **given_)


BEFORE = made([passing("a"), passing("gone")], {"target": "m:f", "config": {"model": "small", "n": 1}})


def test_a_baseline_does_not_differ_from_itself():
    found = baseline_diff(BEFORE, BEFORE)
    assert found.settings == ()
    assert {row.change for row in found.comparison.cases} == {Change.SAME}


def test_changed_agent_specs_approvers_and_cases_are_named():
    after = made([failing("a"), passing("new")], {"target": "m:f", "config": {"model": "big"}}, approver="Bob")
    found = baseline_diff(BEFORE, after)
    assert found.settings == (
        Changed("approver", "Ann", "Bob"),
        Changed("agent.config.model", "small", "big"),
        Changed("agent.config.n", "1", ""),
    )
    changes = {row.case_id: row.change for row in found.comparison.cases}
    assert changes == {"a": Change.BROKE, "gone": Change.REMOVED, "new": Change.NEW}


def test_a_run_differs_in_its_build_and_not_in_what_only_a_baseline_has():
    info = run(build_id="next", agent=BEFORE.agent, prices={"m": {"input": 1}})
    found = run_diff(BEFORE, info, side_of_run(info, [case("a"), case("gone")], [passing("a"), passing("gone")]))
    assert [changed.name for changed in found.settings] == ["build_id", "digests.prices"]
    assert found.comparison.counts == {Change.SAME: 2}
