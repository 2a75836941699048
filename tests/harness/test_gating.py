"""Decisions on stored runs: the same whenever they are made, always written, never on unlike things."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.errors import UsageError
from seatrial.harness.approving import approve, fresh_plan
from seatrial.harness.gating import Candidate, project_or_none, rulebook

POLICY = (
    "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9, maximum_drop_from_baseline: 0.01, maximum_new_failures: 0}}\n"
)
ABSOLUTE = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}, evidence: {maximum_invalid_rate: 0.05}}\n"
SWITCHED = """
    import os, pathlib

    def answer(task):
        fault = pathlib.Path(__file__).with_name("fault")
        return "no" if fault.exists() and task in fault.read_text().split() else f"you said {task}"
    """


def project(folder: Path, policy: str = POLICY, cases: int = 4) -> Path:
    files = {f"cases/smoke/c{n}.yaml": case(f"c{n}", message=f"word{n}", answer=f"word{n}") for n in range(cases)}
    return write_project(folder, {**files, "my_agent.py": SWITCHED, "policies/release_policy.yaml": policy})


def break_cases(folder: Path, *words: str) -> None:
    (folder / "fault").write_text(" ".join(words))


def approved(folder: Path, run: api.Run, **options: Any) -> Path:
    rules = rulebook(project_or_none(folder), with_baseline=False)
    target = folder / "baselines" / "approved.json"
    result = approve(run.folder, rules, approver="Ada", reason="first", output=target, fresh=None, **options)
    assert result.written == target, result.decision.reasons
    return target


def test_a_good_build_passes_against_its_baseline_and_a_broken_one_is_blocked(tmp_path: Path) -> None:
    project(tmp_path)
    approved(tmp_path, api.run(tmp_path))
    assert api.gate(api.run(tmp_path).folder, project=tmp_path).verdict == "pass"
    break_cases(tmp_path, "word2")
    decision = api.gate(api.run(tmp_path).folder, project=tmp_path)
    assert decision.verdict == "block"
    assert "smoke.minimum_pass_rate" in decision.reasons[0]


def test_without_a_baseline_its_gates_are_incomplete_and_the_decision_is_written_all_the_same(tmp_path: Path) -> None:
    project(tmp_path)
    run = api.run(tmp_path)
    decision = api.gate(run.folder, project=tmp_path, output=tmp_path / "decision.json")
    assert (decision.verdict, decision.exit_code) == ("incomplete", 4)
    assert json.loads((tmp_path / "decision.json").read_text())["verdict"] == "incomplete"


@pytest.mark.slow
def test_bl_084_gate_on_a_stored_run_equals_the_gate_at_its_end(tmp_path: Path) -> None:
    files = {f"cases/smoke/c{n}.yaml": case(f"c{n}") for n in range(9)}
    broken = "id: c9\ninput: hello\nexpected: {answer: hello}\ngraders: [my_graders:breaks]\n"
    write_project(
        tmp_path,
        {
            **files,
            "cases/smoke/c9.yaml": broken,
            "my_graders.py": "def breaks(context):\n    raise KeyError('x')\n",
            "policies/release_policy.yaml": "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}}\n",
        },
    )
    live = seatrial(
        *("run", "--json", "--output", "out", "--policy", "policies/release_policy.yaml"),
        cwd=tmp_path,
    )
    stored = seatrial("gate", "--candidate", "out", "--json", "--output", "again.json", cwd=tmp_path)
    one, two = json.loads(live.stdout), json.loads(stored.stdout)
    assert (one.pop("decided"), two.pop("decided")) is not None
    assert one == two
    assert live.returncode == stored.returncode == 4
    assert one["gates"][0]["counts"].startswith("9 ")


def test_bl_086_errors_are_counted_from_the_records_of_every_kind_of_case(tmp_path: Path) -> None:
    files: dict[str, str] = {f"cases/smoke/ok{n}.yaml": case(f"ok{n}") for n in range(84)}
    for n in range(8):
        files[f"cases/smoke/fixture{n}.yaml"] = (
            f"id: fixture{n}\ninput: hello\nenvironment: {{fixture: broken}}\nexpected: {{answer: hello}}\n"
        )
        files[f"cases/smoke/grader{n}.yaml"] = f"id: grader{n}\ninput: hello\ngraders: [my_graders:breaks]\n"
    files["fixtures/broken.py"] = "def broken(environment):\n    raise OSError('no database')\n    yield\n"
    files["my_graders.py"] = "def breaks(context):\n    raise KeyError('x')\n"
    files["policies/release_policy.yaml"] = ABSOLUTE
    write_project(tmp_path, files)
    decision = api.gate(api.run(tmp_path).folder, project=tmp_path)
    (rate,) = [gate for gate in decision.gates if gate.metric == "invalid_rate"]
    assert (rate.figure, rate.counts) == (0.16, "16 of 100 trials")
    assert decision.verdict == "incomplete"


def test_bl_082_other_cases_than_the_baselines_never_pass(tmp_path: Path) -> None:
    project(tmp_path)
    approved(tmp_path, api.run(tmp_path))
    for path in (tmp_path / "cases" / "smoke").iterdir():
        path.unlink()
    (tmp_path / "cases" / "smoke" / "easy1.yaml").write_text(case("easy1"))
    decision = api.gate(api.run(tmp_path).folder, project=tmp_path)
    assert decision.verdict == "incomplete"
    assert (decision.new, decision.removed) == (("easy1",), ("c0", "c1", "c2", "c3"))


def test_adding_a_case_does_not_block_and_removing_one_does_not_pass_unnoticed(tmp_path: Path) -> None:
    project(tmp_path)
    approved(tmp_path, api.run(tmp_path))
    (tmp_path / "cases" / "smoke" / "added.yaml").write_text(case("added"))
    assert api.gate(api.run(tmp_path).folder, project=tmp_path).verdict == "pass"
    (tmp_path / "cases" / "smoke" / "c0.yaml").unlink()
    decision = api.gate(api.run(tmp_path).folder, project=tmp_path)
    assert (decision.verdict, decision.removed) == ("incomplete", ("c0",))


def test_several_runs_of_one_build_are_one_candidate(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    break_cases(tmp_path, "word0")
    runs = [api.run(tmp_path).folder]
    break_cases(tmp_path)
    runs += [api.run(tmp_path, trials=2).folder for _ in range(2)]
    candidate = Candidate(runs)
    first = candidate.results[0]
    assert (first.case_id, first.passes, first.valid) == ("c0", 4, 5)
    decision = api.gate(runs, project=tmp_path)
    assert decision.gates[0].figure == pytest.approx(0.95)
    assert decision.candidate["run_ids"] == [info.run_id for info in candidate.infos]


def test_unlike_runs_are_no_candidate(tmp_path: Path) -> None:
    project(tmp_path)
    one = api.run(tmp_path, output=tmp_path / "one").folder
    with pytest.raises(UsageError, match="named twice"):
        Candidate([one, one])
    with pytest.raises(UsageError, match="build 'other'"):
        Candidate([one, api.run(tmp_path, set="build_id=other").folder])
    (tmp_path / "cases" / "smoke" / "c1.yaml").write_text(case("c1", answer="else"))
    with pytest.raises(UsageError, match="c1 was edited"):
        Candidate([one, api.run(tmp_path).folder])


def test_a_run_and_what_was_graded_again_from_it_are_one_piece_of_evidence(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    run = api.run(tmp_path, seed=1)
    one, two = (api.regrade(run.folder, project=tmp_path).folder for _ in range(2))
    again = api.regrade(one, project=tmp_path).folder
    first, other = run.info.run_id, api.run(tmp_path, seed=1)
    for pooled, said in (
        ([run.folder, one], f"{one.name} is graded again from the trials of {first}"),
        ([one, run.folder], f"{one.name} is graded again from the trials of {first}"),
        ([one, two], f"{two.name} and run {one.name} are graded again from the trials of {first}"),
        ([run.folder, other.folder, two], f"{two.name} is graded again"),
        ([run.folder, again], f"runs {first} and {again.name} hold the same trial c[0-9]+#1"),
        ([two, again], f"runs {two.name} and {again.name} hold the same trial c[0-9]+#1"),
    ):
        with pytest.raises(UsageError, match=said) as refused:
            api.gate(pooled, project=tmp_path)
        assert "name only one of them" in str(refused.value)
    assert Candidate([run.folder, other.folder]).results[0].valid == 2  # of one seed, but two runs
    assert api.gate([two, other.folder], project=tmp_path).verdict == "pass"
    assert api.gate(again, project=tmp_path).verdict == "pass"


@pytest.mark.slow
def test_the_command_refuses_a_run_beside_its_regrade_with_exit_2(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    run = api.run(tmp_path)
    again = api.regrade(run.folder, project=tmp_path)
    refused = seatrial("gate", "--candidate", str(run.folder), "--candidate", str(again.folder), cwd=tmp_path)
    assert refused.returncode == 2
    assert f"run {again.info.run_id} is graded again from the trials of {run.info.run_id}" in refused.stderr
    assert "Traceback" not in refused.stderr


def test_a_trial_that_was_run_again_to_be_looked_at_is_pooled_with_nothing(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    run = api.run(tmp_path)
    again = api.rerun(run.folder, "c0#1", project=tmp_path)
    with pytest.raises(UsageError, match="run again to be looked at"):
        Candidate([run.folder, again.run.folder])


def test_approval_measures_anew_after_the_choice_and_refuses_what_does_not_hold(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    run = api.run(tmp_path)
    found = project_or_none(tmp_path)
    assert found is not None
    rules = rulebook(found, with_baseline=False)
    target = tmp_path / "approved.json"
    plan = fresh_plan(found, run.folder, 3)
    made = approve(run.folder, rules, approver="Ada", reason="r", output=target, fresh=plan)
    assert made.baseline is not None
    assert made.baseline.fresh
    assert {item.valid for item in made.baseline.cases} == {3}
    assert made.run != run.folder
    target.unlink()
    break_cases(tmp_path, "word1", "word2")
    refused = approve(
        run.folder, rules, approver="Ada", reason="r", output=target, fresh=fresh_plan(found, run.folder, 1)
    )
    assert refused.baseline is None
    assert refused.decision.verdict == "block"
    assert not target.exists()


def test_fresh_trials_need_the_same_cases_and_a_build_that_can_be_run_again(tmp_path: Path) -> None:
    project(tmp_path)
    found = project_or_none(tmp_path)
    assert found is not None
    by_object = api.run(tmp_path, agent=lambda task: task)
    with pytest.raises(UsageError, match="given as an object"):
        fresh_plan(found, by_object.folder, 2)
    run = api.run(tmp_path)
    (tmp_path / "cases" / "smoke" / "c1.yaml").write_text(case("c1", answer="else"))
    with pytest.raises(UsageError, match="c1 was edited since"):
        fresh_plan(found, run.folder, 2)


def test_an_interrupted_run_is_not_approved_and_does_not_pass(tmp_path: Path) -> None:
    project(tmp_path, ABSOLUTE)
    run = api.run(tmp_path)
    info = json.loads((run.folder / "run.json").read_text())
    (run.folder / "run.json").write_text(json.dumps({**info, "status": "interrupted"}))
    rules = rulebook(project_or_none(tmp_path), with_baseline=False)
    refused = approve(run.folder, rules, approver="A", reason="r", output=tmp_path / "b.json", fresh=None)
    assert (refused.baseline, refused.decision.verdict) == (None, "incomplete")
    assert "interrupted" in refused.decision.reasons[0]
    assert api.gate(run.folder, project=tmp_path).verdict == "incomplete"


def test_a_decision_on_named_files_needs_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project(tmp_path / "project", ABSOLUTE)
    run = api.run(folder)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert api.gate(run.folder, folder / "policies" / "release_policy.yaml").verdict == "pass"
    with pytest.raises(UsageError, match="name the policy"):
        api.gate(run.folder)
