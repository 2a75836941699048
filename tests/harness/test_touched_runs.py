"""Decisions on run folders that are not as their run wrote them: never a pass, never an internal error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from packed import edit_traces
from projects import case, write_project
from seatrial.cli import _exit_code
from seatrial.errors import StorageError, UsageError
from seatrial.harness.approving import approve, fresh_plan
from seatrial.harness.comparing import compare
from seatrial.harness.gating import project_or_none, rulebook
from seatrial.store.frames import TRACES

POLICY = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}}\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {f"cases/smoke/c{n}.yaml": case(f"c{n}", thresholds="{trials: 3}") for n in range(4)}
    monkeypatch.chdir(write_project(tmp_path, {**files, "policies/release_policy.yaml": POLICY}))
    return tmp_path


def edit_lines(folder: Path, edit: Callable[[list[str]], Any], name: str = "trials.jsonl") -> None:
    if name == TRACES:
        edit_traces(folder, edit)
        return
    lines = (folder / name).read_text().splitlines(keepends=True)
    edit(lines)
    (folder / name).write_text("".join(lines))


def edit_info(folder: Path, **fields: Any) -> None:
    path = folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def flip(lines: list[str]) -> None:
    lines[5] = lines[5].replace('"status":"failed"', '"status":"passed"')


def test_a_run_as_it_was_written_passes(project: Path) -> None:
    assert api.gate(api.run(project).folder, project=project).verdict == "pass"


def test_two_of_twelve_trials_taken_out_are_missed(project: Path) -> None:
    run = api.run(project)
    edit_lines(run.folder, lambda lines: lines.__delitem__(slice(-2, None)))
    edit_info(run.folder, chain_end=None)  # also by a version that did not note the chain's end
    decision = api.gate(run.folder, project=project)
    assert decision.verdict == "incomplete"
    assert "2 of 6 trials of c2, c3 are not on record" in decision.reasons


def test_a_flipped_line_is_named_with_its_place(project: Path) -> None:
    (project / "cases" / "smoke" / "c1.yaml").write_text(case("c1", answer="else", thresholds="{trials: 3}"))
    run = api.run(project)
    assert api.gate(run.folder, project=project).verdict == "block"
    edit_lines(run.folder, flip)
    decision = api.gate(run.folder, "policies/release_policy.yaml")
    assert any(f"run {run.info.run_id}: trials.jsonl:6: c1#2 is passed" in reason for reason in decision.reasons)


def test_trials_of_another_run_are_no_evidence(project: Path) -> None:
    run, other = api.run(project), api.run(project)
    (run.folder / "trials.jsonl").write_bytes((other.folder / "trials.jsonl").read_bytes())
    decision = api.gate(run.folder, project=project)
    assert decision.verdict == "incomplete"
    assert any(f"trials.jsonl:1: is of run {other.info.run_id!r}" in reason for reason in decision.reasons)


def test_approval_and_comparison_refuse_what_was_touched(project: Path) -> None:
    good, touched = api.run(project), api.run(project)
    edit_lines(touched.folder, lambda lines: lines.pop(3))
    rules = rulebook(project_or_none(project), with_baseline=False)
    target = project / "approved.json"
    plan = fresh_plan(project_or_none(project), touched.folder, 2)  # type: ignore[arg-type]
    for fresh in (None, plan):
        refused = approve(touched.folder, rules, approver="A", reason="r", output=target, fresh=fresh)
        assert (refused.baseline, refused.run, refused.decision.verdict) == (None, touched.folder, "incomplete")
    assert not plan.folder.exists()  # nothing was run for it
    compared = compare(good.folder, touched.folder)
    assert compared.exit_code == 4
    assert "trials.jsonl:4: does not follow" in compared.comparison.problems[0]
    assert compare(good.folder, good.folder).exit_code == 0


def test_retried_and_regraded_runs_are_as_they_were_written(project: Path) -> None:
    (project / "cases" / "smoke" / "c0.yaml").write_text(
        case("c0", message="raise", retries="{attempts: 3, on: [RuntimeError]}")
    )
    run = api.run(project)
    again = api.regrade(run.folder, project=project)
    for folder in (run.folder, again.folder):
        reasons = api.gate(folder, project=project).reasons
        assert all(reason.startswith("smoke.minimum_pass_rate") for reason in reasons)


def test_every_input_has_its_digest_in_the_decision(project: Path) -> None:
    run = api.run(project)
    before = api.gate(run.folder, project=project).digests
    files = ("run.json", "cases.jsonl", "trials.jsonl")
    assert {f"{run.info.run_id}/{name}" for name in files} | {"policy", "exceptions", "baseline"} == set(before)
    edit_lines(run.folder, lambda lines: lines.append("\n"), "cases.jsonl")
    after = api.gate(run.folder, project=project)
    assert {name for name in before if before[name] != after.digests[name]} == {f"{run.info.run_id}/cases.jsonl"}
    assert "cases.jsonl: is not as the run wrote it" in after.reasons[0]


def _no_trials(folder: Path) -> None:
    (folder / "trials.jsonl").unlink()


def _no_traces(folder: Path) -> None:
    (folder / TRACES).unlink()


def _no_cases(folder: Path) -> None:
    (folder / "cases.jsonl").unlink()


def _empty_cases(folder: Path) -> None:
    (folder / "cases.jsonl").write_text("")


def _unknown_case(folder: Path) -> None:
    edit_lines(folder, lambda lines: lines.insert(0, lines[0].replace('"c0"', '"zz"')))


def _not_json(folder: Path) -> None:
    edit_lines(folder, lambda lines: lines.insert(2, "{\n"))


def _not_a_record(folder: Path) -> None:
    edit_lines(folder, lambda lines: lines.insert(2, "[1]\n"))


DAMAGED = [_no_trials, _no_traces, _no_cases, _empty_cases, _unknown_case, _not_json, _not_a_record]


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_folder_gives_an_incomplete_decision(damage: Callable[[Path], None], project: Path) -> None:
    run = api.run(project)
    damage(run.folder)
    assert _exit_code(["gate", "--candidate", str(run.folder), "-q"]) == 4
    written = json.loads((run.folder / "release-decision.json").read_text())
    assert any(".jsonl" in reason for reason in written["reasons"])


@pytest.mark.parametrize("damage", DAMAGED)
def test_no_command_takes_a_damaged_folder_for_an_internal_error(
    damage: Callable[[Path], None], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, run = api.run(project).folder, api.run(project).folder
    damage(run)
    name = str(run)
    commands = [
        ["approve", name, "--by", "A", "--reason", "r", "--no-fresh"],
        ["approve", name, "--by", "A", "--reason", "r"],
        ["compare", str(good), name],
        ["compare", name, str(good), "--json"],
        ["report", name, "--junit", "j.xml", "--markdown", "m.md", "--annotations"],
        ["show", name, "c0"],
        ["show", name, "zz"],
        ["list"],
        ["run", "--failed-from", name],
        ["regrade", name],
        ["rerun", name, "c0#1"],
    ]
    codes = {tuple(command[:2]): _exit_code(command) for command in commands}
    assert 70 not in codes.values(), (codes, capsys.readouterr().err)
    assert "Traceback" not in capsys.readouterr().err
    assert codes["approve", name] == 1


def drop(lines: list[str]) -> None:
    del lines[3]


def say_passed(lines: list[str]) -> None:
    lines[0] = lines[0].replace("hello", "goodbye")


@pytest.mark.parametrize(("name", "edit"), [("trials.jsonl", drop), (TRACES, say_passed)])
def test_a_touched_run_is_not_graded_again(project: Path, name: str, edit: Callable[[list[str]], Any]) -> None:
    run = api.run(project)
    edit_lines(run.folder, edit, name)
    with pytest.raises(StorageError, match=r"is not as its run wrote it, so it is not graded again: trials\.jsonl:"):
        api.regrade(run.folder, project=project, output=project / "again")
    assert not (project / "again").exists()
    assert _exit_code(["regrade", str(run.folder)]) == 2


def test_an_edited_trace_decides_nothing_and_is_not_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = api.run(project)
    edit_traces(run.folder, say_passed)
    decision = api.gate(run.folder, project=project)
    assert decision.verdict == "incomplete"
    assert "trace of c0#1 is not as the run wrote it" in " ".join(decision.reasons)
    for command in (["show", str(run.folder), "c0#1"], ["export", str(run.folder), "spans.json"]):
        assert _exit_code(command) == 2
        assert "the trace of c0#1 is not as it was written" in capsys.readouterr().err


def test_runs_that_were_judged_otherwise_are_no_one_candidate(project: Path) -> None:
    first = api.run(project).folder
    for fields, message in (
        ({"gating": {"smoke": False}}, "the suite smoke gates in one"),
        ({"judge": {"model": "m"}}, "another judge"),
        ({"prices": {"m": {"input": 1.0, "output": 1.0}}}, "another price table"),
        ({"policies": {"tool_permissions": "sha256:1"}}, "another set of permission rules"),
    ):
        other = api.run(project).folder
        edit_info(other, **fields)
        with pytest.raises(UsageError, match=message):
            api.gate([first, other], project=project)
    (project / "cases" / "smoke" / "c0.yaml").write_text(case("c0", thresholds="{trials: 3, required_successes: 2}"))
    one = api.run(project).folder
    (project / "cases" / "smoke" / "c0.yaml").write_text(case("c0", thresholds="{trials: 5, required_successes: 2}"))
    with pytest.raises(UsageError, match="case c0 has another suite, risk, thresholds"):
        api.gate([one, api.run(project).folder], project=project)


def test_pooled_runs_that_lack_a_trial_are_incomplete(project: Path) -> None:
    runs = [api.run(project).folder, api.run(project).folder]
    assert api.gate(runs, project=project).verdict == "pass"
    edit_lines(runs[1], lambda lines: lines.pop())
    decision = api.gate(runs, project=project)
    assert decision.verdict == "incomplete"
    assert "1 of 6 trials of c3 is not on record" in decision.reasons


def test_permission_rules_are_on_record_and_leave_their_counts_open(project: Path) -> None:
    gates = "{maximum_unauthorized_side_effects: 0, maximum_cross_tenant_events: 0}"
    policy = project / "policies" / "release_policy.yaml"
    policy.write_text(f"version: 1\ngates: {{safety: {gates}}}\n")
    plain = api.run(project)
    assert plain.info.policies == {}
    assert api.gate(plain.folder, project=project).verdict == "pass"
    (project / "policies" / "tool_permissions.yaml").write_text("version: 1\nunlisted: allow\n")
    ruled = api.run(project)
    assert list(ruled.info.policies) == ["tool_permissions"]
    decision = api.gate(ruled.folder, project=project)
    assert decision.verdict == "incomplete"
    for reason in decision.reasons[:2]:
        assert "tool_permissions.yaml has permission rules, and this version cannot grade them" in reason


# --- decisions that stand in a folder --------------------------------------------------------------------------------


def test_a_gate_that_fails_leaves_no_older_decision_as_if_it_were_current(project: Path) -> None:
    folder = api.run(project).folder
    assert _exit_code(["gate", "--candidate", str(folder), "-q"]) == 0
    policy = project / "policies" / "release_policy.yaml"
    policy.write_text("version: 1\ngates: {smoke: {minimum_pas_rate: 1}}\n")
    assert _exit_code(["gate", "--candidate", str(folder), "-q"]) == 2
    assert not (folder / "release-decision.json").exists()
    assert json.loads((folder / "release-decision.json.old").read_text())["verdict"] == "pass"
    policy.write_text(POLICY)
    assert _exit_code(["gate", "--candidate", str(folder), "-q"]) == 0
    assert _exit_code(["gate", "--candidate", str(folder), "--candidate", "nowhere"]) == 2
    assert not (folder / "release-decision.json").exists()


def test_an_approval_is_no_release_decision(project: Path) -> None:
    folder = api.run(project).folder
    assert _exit_code(["approve", str(folder), "--by", "A", "--reason", "r", "--no-fresh"]) == 0
    assert not (folder / "release-decision.json").exists()
    assert json.loads((folder / "approval-decision.json").read_text())["verdict"] == "pass"


def test_a_report_shows_a_decision_on_these_very_records_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = api.run(project).folder, api.run(project).folder
    for folder in (one, other):
        assert _exit_code(["gate", "--candidate", str(folder), "-q"]) == 0
    report = ["report", str(one), "--markdown", "m.md"]
    assert _exit_code(report) == 0
    assert "minimum_pass_rate" in Path("m.md").read_text()
    named = [*report, "--decision", str(other / "release-decision.json")]
    capsys.readouterr()
    assert _exit_code(named) == 2
    assert "is a decision on other runs" in capsys.readouterr().err
    (one / "release-decision.json").write_bytes((other / "release-decision.json").read_bytes())
    assert _exit_code(report) == 0
    assert "left out" in capsys.readouterr().err
    assert "minimum_pass_rate" not in Path("m.md").read_text()
    assert _exit_code(["gate", "--candidate", str(one), "-q"]) == 0
    edit_lines(one, lambda lines: lines.pop())
    capsys.readouterr()
    assert _exit_code([*report, "--decision", str(one / "release-decision.json")]) == 2
    assert "trials.jsonl" in capsys.readouterr().err


def test_json_of_a_report_holds_its_annotations(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "cases" / "smoke" / "c0.yaml").write_text(case("c0", answer="else"))
    folder = api.run(project).folder
    capsys.readouterr()
    assert _exit_code(["report", str(folder), "--annotations", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["annotations"][0].startswith("::error ")
    assert document["junit"] is None
