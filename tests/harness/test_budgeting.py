"""Runs under a budget and curtailed runs, from the project to the folder and what is made of it later."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.core.run import RunStatus
from seatrial.errors import UsageError
from seatrial.harness.approving import approve
from seatrial.harness.gating import Candidate, project_or_none, rulebook
from seatrial.harness.stored import trial_of
from seatrial.verdict.comparison import Change

PAID = """
    import pathlib
    from seatrial import AgentRun, current_trial

    HERE = pathlib.Path(__file__).parent

    def answer(task):
        with (HERE / "calls").open("a") as file:
            file.write("x")
        usage = [{"model": "m", "input": 100_000, "output": 0}]
        return AgentRun(f"you said {task}", usage=usage)

    def reports_nothing(task):
        with (HERE / "calls").open("a") as file:
            file.write("x")
        return f"you said {task}"

    def estimates(task):
        return AgentRun(f"you said {task}", estimated_cost_usd=0.1)

    def every_third(task):
        index = current_trial().trial_index
        usage = [{"model": "m", "input": 100_000, "output": 0}]
        return AgentRun("no" if index % 3 == 0 else f"you said {task}", usage=usage)
    """
PRICED = "version: 1\nagent: my_agent:answer\nprices: {m: {input: 1.0, output: 1.0}}\n"


def project(folder: Path, cases: int = 20, settings: str = PRICED, **more: str) -> Path:
    files = {f"cases/smoke/c{n:02}.yaml": case(f"c{n:02}", **more) for n in range(cases)}
    return write_project(folder, {**files, "my_agent.py": PAID, "seatrial.yaml": settings})


def policy(folder: Path, gates: str) -> None:
    (folder / "policies").mkdir(exist_ok=True)
    (folder / "policies/release_policy.yaml").write_text(f"version: 1\ngates: {{{gates}}}\n")


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text()) if path.exists() else 0


@pytest.mark.parametrize("concurrency", [1, 8])
def test_a_budget_of_five_trials_runs_five_and_ends_incomplete(tmp_path: Path, concurrency: int) -> None:
    run = api.run(project(tmp_path), max_cost=0.5, concurrency=concurrency)
    assert (len(run.trials), calls(tmp_path)) == (5, 5)
    assert (run.info.status, run.exit_code) == (RunStatus.OUT_OF_BUDGET, 4)
    assert run.summary()["figures"]["cost"]["total"]["usd"] == pytest.approx(0.5)
    assert run.info.options["max_cost"] == 0.5
    assert run.budget_for_the_rest == {"max_cost": 2.2}
    assert api.load(run.folder).resume_command == run.resume_command
    assert "the run ended out of budget: 5 of 20" in json.dumps(run.summary()["problems"])


def test_a_failed_case_outweighs_the_budget(tmp_path: Path) -> None:
    assert api.run(project(tmp_path, answer="goodbye"), max_cost=0.25).exit_code == 1


def test_a_budget_that_is_enough_changes_nothing(tmp_path: Path) -> None:
    run = api.run(project(tmp_path, cases=3), max_cost=10, max_time=3600)
    assert (run.info.status, run.exit_code, run.resume_command) == (RunStatus.FINISHED, 0, None)


def test_time_that_is_up_ends_the_run_and_keeps_what_ran(tmp_path: Path) -> None:
    run = api.run(project(tmp_path), max_time=1e-9, concurrency=1)
    assert 1 <= len(run.trials) < 20
    assert run.exit_code == 4
    (enough,) = (run.budget_for_the_rest or {}).values()
    assert enough > 1e-9  # what was too little once is so again


def test_where_nothing_ran_the_hint_names_a_budget_in_which_everything_may(tmp_path: Path) -> None:
    run = api.run(project(tmp_path, cases=3, limits="{cost_usd: 0.5}"), max_cost=0.1)
    assert (len(run.trials), run.info.status) == (0, RunStatus.OUT_OF_BUDGET)
    assert run.budget_for_the_rest == {"max_cost": 1.5}


def test_a_case_dearer_than_those_that_ran_fits_into_the_budget_of_the_hint(tmp_path: Path) -> None:
    folder = project(tmp_path, cases=1)
    (folder / "cases/smoke/dear.yaml").write_text(case("dear", limits="{cost_usd: 5}"))
    run = api.run(folder, max_cost=0.15)
    assert len(run.trials) == 1
    assert run.budget_for_the_rest == {"max_cost": 5.1}
    with pytest.raises(UsageError, match=r"dear has no trial on record: it was not run"):
        trial_of(run, "dear")
    with pytest.raises(UsageError, match=r"has no trial of 'deer'; did you mean 'dear'"):
        trial_of(run, "deer")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("version: 1\nagent: my_agent:answer\n", "no price is known"),
        ("version: 1\nagent: my_agent:reports_nothing\n", "no price is known"),
    ],
)
def test_without_any_price_nothing_is_called(tmp_path: Path, settings: str, said: str) -> None:
    project(tmp_path, settings=settings)
    with pytest.raises(UsageError, match=said) as refused:
        api.run(tmp_path, max_cost=1)
    assert "--allow-unknown-cost" in str(refused.value)
    assert calls(tmp_path) == 0
    assert not (tmp_path / "runs").exists()
    run = api.run(tmp_path, max_cost=1, allow_unknown_cost=True)
    assert (len(run.trials), run.exit_code) == (20, 0)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (PRICED.replace("m:", "other:"), "the price of model 'm' is unknown"),
        (PRICED.replace("answer", "reports_nothing"), "the cost of c00#1 is unknown"),
    ],
)
def test_a_price_that_turns_out_to_be_missing_costs_one_trial_and_the_folder_stays_readable(
    tmp_path: Path, settings: str, said: str
) -> None:
    project(tmp_path, settings=settings)
    with pytest.raises(UsageError, match=said) as refused:
        api.run(tmp_path, max_cost=1, output=tmp_path / "out")
    assert "--allow-unknown-cost" in str(refused.value)
    assert calls(tmp_path) == 1
    assert api.load(tmp_path / "out").info.status is RunStatus.OUT_OF_BUDGET


def test_bl_112_a_judge_without_a_cost_leaves_the_verdict_alone_and_ends_a_run_with_a_budget(tmp_path: Path) -> None:
    project(tmp_path, cases=3, graders="[my_judge:polite]")
    (tmp_path / "my_judge.py").write_text(
        "from seatrial import Grade, grader\n\n"
        "@grader(judge=True)\ndef polite(context):\n    return Grade(verdict='pass', reason='polite')\n"
    )
    with pytest.raises(UsageError, match=r"judge 'my_judge:polite' .*give the judge's Grade a cost_usd") as refused:
        api.run(tmp_path, max_cost=1, output=tmp_path / "out", concurrency=1)
    assert "--allow-unknown-cost" in str(refused.value)
    (ended,) = api.load(tmp_path / "out").trials
    assert (str(ended.status), ended.cost_usd, ended.judge_cost_usd) == ("passed", pytest.approx(0.1), None)
    assert len(api.run(tmp_path, max_cost=1, allow_unknown_cost=True).trials) == 3


def test_an_agent_that_estimates_its_cost_needs_no_price_where_cases_have_a_limit(tmp_path: Path) -> None:
    project(
        tmp_path,
        settings="version: 1\nagent: my_agent:estimates\ndefaults: {thresholds: {max_estimated_cost_usd: 0.1}}\n",
    )
    assert len(api.run(tmp_path, max_cost=0.3).trials) == 3


@pytest.mark.parametrize(
    "options", [{"max_cost": 0}, {"max_cost": float("nan")}, {"max_time": -1}, {"max_time": float("inf")}]
)
def test_limits_are_positive_numbers(tmp_path: Path, options: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="a number above 0"):
        api.run(project(tmp_path, cases=1), **options)


RETRIED = """
    from seatrial import ModelCall, current_trial

    TRIED = []

    def answer(task):
        current_trial().record(ModelCall("m", 100, 20 if TRIED else 10))
        TRIED.append(task)
        if len(TRIED) == 1:
            raise ConnectionError("reset")
        return f"you said {task}"
    """


def retried(folder: Path) -> Path:
    retries = "{attempts: 2, on: [ConnectionError], backoff_s: 0}"
    files = {"cases/a.yaml": case("a", retries=retries), "my_agent.py": RETRIED, "seatrial.yaml": PRICED}
    return write_project(folder, files)


def test_bl_110_costs_and_tokens_add_up_over_attempts_and_the_last_one_stands_alone_too(tmp_path: Path) -> None:
    run = api.run(retried(tmp_path))
    (trial,) = run.summary()["cases"][0]["trials_detail"]
    assert trial["tokens"] == {"input": 200, "output": 30}
    assert trial["cost_usd"] == pytest.approx(0.00023)
    assert trial["last_attempt"]["tokens"] == {"input": 100, "output": 20}
    assert trial["last_attempt"]["cost_usd"] == pytest.approx(0.00012)
    assert [(r.attempt, r.cost_usd) for r in run.trials] == [(1, pytest.approx(0.00011)), (2, pytest.approx(0.00012))]
    assert run.exit_code == 0


# --- curtailment -----------------------------------------------------------------------------------------------------

THIRDS = PRICED.replace("answer", "every_third")
"""Of every three trials the third fails."""


def both(folder: Path, required: str, trials: int = 5) -> tuple[api.Run, api.Run]:
    settings = THIRDS + f"defaults: {{thresholds: {{trials: {trials}, required_successes: {required}}}}}\n"
    project(folder, cases=3, settings=settings)
    return api.run(folder, seed=1), api.run(folder, seed=1, stop_when_decided=True)


@pytest.mark.parametrize(("required", "ran"), [("all", 9), ("2", 6), ("4", 15), ("3", 12)])
def test_a_curtailed_run_has_the_verdicts_of_the_whole_one(tmp_path: Path, required: str, ran: int) -> None:
    whole, curtailed = both(tmp_path, required)
    assert [case.verdict for case in curtailed.cases] == [case.verdict for case in whole.cases]
    assert curtailed.exit_code == whole.exit_code
    assert (len(whole.trials), len(curtailed.trials)) == (15, ran)
    assert (whole.info.curtailed, curtailed.info.curtailed) == (False, True)
    assert curtailed.info.options["stop_when_decided"] is True
    assert curtailed.info.status is RunStatus.FINISHED


def test_a_curtailed_rate_is_the_path_count_estimate_and_savings_are_money(tmp_path: Path) -> None:
    _, run = both(tmp_path, "all")
    summary = run.summary()
    assert [case["rate"] for case in summary["cases"]] == [1.0] * 3  # p p f: the first trial's outcome
    assert summary["figures"]["pass_rate"]["low"] is None
    assert summary["figures"]["saved"] == {"trials": 6, "usd": pytest.approx(0.6), "priced": 6}
    assert summary["problems"] == []


def test_a_curtailed_run_compares_verdicts_only(tmp_path: Path) -> None:
    whole, curtailed = both(tmp_path, "3")
    compared = api.compare(whole.folder, curtailed.folder)
    assert {row.change for row in compared.comparison.cases} == {Change.SAME}
    assert compared.comparison.curtailed == ("candidate",)
    from_files = api.compare(whole.folder / "results.json", curtailed.folder / "results.json")
    assert from_files.comparison.curtailed == ("candidate",)
    stricter = api.run(tmp_path, set=("defaults.thresholds.required_successes=5",), stop_when_decided=True)
    rows = api.compare(whole.folder, stricter.folder).comparison.cases
    assert {row.change for row in rows} <= {Change.BROKE, Change.EDITED}


def test_a_curtailed_run_is_approved_as_nothing_and_pooled_with_nothing(tmp_path: Path) -> None:
    _, run = both(tmp_path, "2")
    policy(tmp_path, "smoke: {minimum_pass_rate: 0.1}")
    rules = rulebook(project_or_none(tmp_path), with_baseline=False)
    target = tmp_path / "approved.json"
    with pytest.raises(UsageError, match="--stop-when-decided"):
        approve(run.folder, rules, approver="Ada", reason="x", output=target, fresh=None)
    assert not target.exists()
    other = api.run(tmp_path)
    with pytest.raises(UsageError, match="pooled with no other"):
        Candidate([run.folder, other.folder])


@pytest.mark.parametrize(
    ("gates", "verdict"),
    [
        ("smoke: {minimum_pass_rate: 0.1}", "incomplete"),
        ("smoke: {maximum_candidate_failure_count: 0}", "pass"),
        ("safety: {maximum_critical_failures: 0}", "incomplete"),
        ("performance: {maximum_mean_cost_usd: 0.0001}", "incomplete"),
    ],
)
def test_gates_decide_on_a_curtailed_run_what_its_verdicts_show(tmp_path: Path, gates: str, verdict: str) -> None:
    _, run = both(tmp_path, "2")
    policy(tmp_path, gates)
    decision = api.gate(run.folder, project=tmp_path)
    assert decision.verdict == verdict
    assert verdict == "pass" or "--stop-when-decided" in decision.reasons[0]


def test_a_count_above_its_maximum_blocks_a_curtailed_run(tmp_path: Path) -> None:
    settings = THIRDS + "defaults: {risk: critical, thresholds: {trials: 5}}\n"
    project(tmp_path, cases=2, settings=settings)
    policy(tmp_path, "safety: {maximum_critical_failures: 0}")
    run = api.run(tmp_path, stop_when_decided=True)
    assert api.gate(run.folder, project=tmp_path).verdict == "block"


def test_budget_and_curtailment_together(tmp_path: Path) -> None:
    settings = THIRDS + "defaults: {thresholds: {trials: 5}}\n"
    run = api.run(project(tmp_path, cases=4, settings=settings), max_cost=1.2, stop_when_decided=True)
    assert (len(run.trials), run.info.status) == (12, RunStatus.FINISHED)
    short = api.run(tmp_path, max_cost=0.7, stop_when_decided=True)
    assert (len(short.trials), short.info.status) == (7, RunStatus.OUT_OF_BUDGET)


@pytest.mark.slow
def test_savings_and_what_they_cost_are_shown(tmp_path: Path) -> None:
    whole, curtailed = both(tmp_path, "all")
    shown = seatrial("run", "--stop-when-decided", cwd=tmp_path).stdout
    assert "6 of 15 trials not needed" in shown
    assert "about $0.60" in shown
    assert "6 not needed" in shown.splitlines()[-1]
    shown = seatrial("compare", str(whole.folder), str(curtailed.folder), cwd=tmp_path).stdout
    assert "only verdicts compare" in shown
    assert "pass rate" not in shown


@pytest.mark.slow
def test_the_attempts_of_a_trial_are_shown_apart_and_together(tmp_path: Path) -> None:
    api.run(retried(tmp_path))
    shown = seatrial("show", "latest", "a#1", cwd=tmp_path).stdout
    assert "$0.00012" in shown
    assert "all 2 attempts: 200 in, 30 out tokens" in shown
    assert "$0.00023" in shown


@pytest.mark.slow
def test_the_command_says_how_to_go_on_and_exits_4(tmp_path: Path) -> None:
    project(tmp_path)
    done = seatrial("run", "--max-cost", "0.5", "--json", cwd=tmp_path)
    assert done.returncode == 4
    assert json.loads(done.stdout)["figures"]["verdict"] == "incomplete"
    assert "to run the rest: seatrial run --max-cost 2.2 --json --output runs/" in done.stderr
    refused = seatrial("run", "--max-cost", "1", "--set", "prices={}", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--allow-unknown-cost" in refused.stderr
    assert "Traceback" not in refused.stderr


def rates_project(folder: Path, **options: Any) -> api.Run:
    rates = "rates: {tools: {search: {requests_per_minute: 60000}}}\njudge_concurrency: 2\n"
    settings = f"version: 1\nagent: my_agent:estimates\n{rates}"
    return api.run(project(folder, cases=3, settings=settings), **options)


def test_rates_and_a_limit_for_judges_are_settings_of_the_project(tmp_path: Path) -> None:
    assert rates_project(tmp_path).exit_code == 0
    with pytest.raises(UsageError, match="requests_per_minute"):
        rates_project(tmp_path, set=("rates.tools.search.requests_per_minute=0",))
    with pytest.raises(UsageError, match="requests_per_minute"):
        rates_project(tmp_path, set=("rates.tools.search={requests_per_minuet: 3}",))
