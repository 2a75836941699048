"""A replayed run says so everywhere, and is no evidence beyond the run that recorded it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.errors import UsageError
from seatrial.harness.approving import approve
from seatrial.harness.gating import Candidate, project_or_none, rulebook
from seatrial.report.comparison_data import comparison_data
from seatrial.report.comparison_view import print_comparison
from seatrial.report.junit import junit_text
from seatrial.report.markdown import markdown_text
from seatrial.report.summary_view import print_summary
from seatrial.testing.model_server import ModelServer, Reply

POLICY = "version: 1\ngates: {smoke: {minimum_pass_rate: 0.9}}\n"
AGENT = """
import json
import os
import urllib.request


def answer(message):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": message}]}).encode()
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as said:
        return json.load(said)["choices"][0]["message"]["content"]


def offline(message):
    return "hello"
"""
Runs = dict[str, api.Run]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Runs]]:
    """A run that recorded and one that replayed it."""
    files = {"my_agent.py": AGENT, "policies/release_policy.yaml": POLICY, "cases/smoke/c.yaml": case("c")}
    write_project(tmp_path, files)

    with ModelServer(lambda request: Reply("hello there")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)

        def both(**options: Any) -> Runs:
            given: dict[str, Any] = {"cassettes": tmp_path / "tapes", "trials": 2, "seed": 1, **options}
            return {mode: api.run(tmp_path, cassette_mode=mode, output=tmp_path / mode, **given) for mode in MODES}

        yield both


MODES = ("record", "replay")


def printed(show: Any, *arguments: Any) -> str:
    console = Console(file=io.StringIO(), width=200)
    show(console, *arguments)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_every_report_says_that_trials_were_replayed(runs: Any) -> None:
    done = runs()
    said = "2 of 2 trials replayed from cassettes: no new evidence"
    recorded, replayed = done["record"].summary(), done["replay"].summary()
    assert (recorded["times"]["cassettes"], replayed["times"]["cassettes"]) == MODES
    assert [trial["replayed"] for trial in replayed["times"]["trials"]] == [1, 1]
    assert [trial["recorded"] for trial in recorded["times"]["trials"]] == [1, 1]
    for text in (printed(print_summary, replayed), markdown_text(replayed), junit_text(replayed)):
        assert said in " ".join(text.split())
    for text in (printed(print_summary, recorded), markdown_text(recorded), junit_text(recorded)):
        assert "model calls of 2 of 2 trials recorded" in text
        assert "replayed" not in text


def test_a_run_that_went_past_the_proxy_says_so(runs: Any) -> None:
    done = runs(agent="my_agent:offline")
    said = {mode: printed(print_summary, run.summary()) for mode, run in done.items()}
    assert "no model call came through the proxy, so nothing was recorded" in said["record"]
    assert "no answer came from a cassette: model calls were missed, or passed the proxy by" in said["replay"]


def test_a_run_without_cassettes_says_nothing_of_them(tmp_path: Path, runs: Any) -> None:
    plain = api.run(tmp_path, agent="my_agent:offline", output=tmp_path / "plain").summary()
    assert plain["times"]["cassettes"] is None
    for text in (printed(print_summary, plain), markdown_text(plain), junit_text(plain)):
        assert "cassette" not in text


def test_a_gate_on_a_replayed_run_is_incomplete_and_says_why(tmp_path: Path, runs: Any) -> None:
    done = runs()
    assert api.gate(done["record"].folder, project=tmp_path).verdict == "pass"
    decision = api.gate(done["replay"].folder, project=tmp_path)
    assert decision.verdict == "incomplete"
    assert decision.reasons == (
        f"run {done['replay'].info.run_id} was replayed from cassettes: no evidence beyond the run that recorded them",
    )


def test_a_replayed_run_is_pooled_with_nothing(runs: Any) -> None:
    done = runs()
    for pair in (MODES, MODES[::-1]):
        with pytest.raises(UsageError, match=r"replay: was replayed from cassettes, .* pooled with no other"):
            Candidate([done[mode].folder for mode in pair])
    assert Candidate([done["replay"].folder]).records


def test_a_replayed_run_is_not_approved_on_its_own_trials(tmp_path: Path, runs: Any) -> None:
    done = runs()
    rules = rulebook(project_or_none(tmp_path), with_baseline=False)
    terms: dict[str, Any] = {"approver": "Ada", "reason": "r", "output": tmp_path / "b.json", "fresh": None}
    with pytest.raises(UsageError, match="replayed from cassettes, so its trials are no fresh evidence"):
        approve(done["replay"].folder, rules, **terms)
    assert not (tmp_path / "b.json").exists()
    assert approve(done["record"].folder, rules, **terms).baseline is not None


@pytest.mark.parametrize("said", ["", "record"])
def test_the_records_tell_a_replay_whatever_run_json_says(tmp_path: Path, runs: Any, said: str) -> None:
    done = runs()
    path = done["replay"].folder / "run.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | {"cassettes": said}), "utf-8")
    decision = api.gate(path.parent, project=tmp_path)
    assert decision.verdict == "incomplete"
    assert "c#1 was replayed from cassettes, which run.json does not say" in " ".join(decision.reasons)
    with pytest.raises(UsageError, match="pooled with no other"):
        Candidate([done["record"].folder, path.parent])
    rules = rulebook(project_or_none(tmp_path), with_baseline=False)
    with pytest.raises(UsageError, match="no fresh evidence"):
        approve(path.parent, rules, approver="Ada", reason="r", output=tmp_path / "b.json", fresh=None)
    assert "2 of 2 trials replayed" in markdown_text(api.load(path.parent).summary())


def test_a_comparison_marks_the_side_that_was_replayed(runs: Any) -> None:
    done = runs()
    compared = api.compare(done["record"].folder, done["replay"].folder)
    assert compared.comparison.replayed == ("candidate",)
    assert comparison_data(compared.comparison)["replayed"] == ["candidate"]
    assert "trials of the candidate were replayed from cassettes" in printed(print_comparison, compared.comparison)
    back = api.compare(done["replay"].folder, done["record"].folder)
    assert back.comparison.replayed == ("baseline",)


@pytest.mark.slow
def test_regrading_keeps_the_mark(tmp_path: Path, runs: Any) -> None:
    runs()
    assert seatrial("regrade", "replay", "--output", "again", cwd=tmp_path).returncode == 0
    again = api.load(tmp_path / "again")
    assert [record.replayed for record in again.trials] == [1, 1]
    assert api.gate(again.folder, project=tmp_path).verdict == "incomplete"


@pytest.mark.slow
def test_the_command_records_replays_and_shows_it(tmp_path: Path, runs: Any) -> None:
    tapes = ("--cassettes", "tapes", "--cassette-mode")
    first = seatrial("run", *tapes, "record", "--output", "a", "--json", cwd=tmp_path)
    second = seatrial("run", *tapes, "replay", "--output", "b", "--json", cwd=tmp_path)
    assert (first.returncode, second.returncode) == (0, 0)
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert (one.pop("times")["cassettes"], two.pop("times")["cassettes"]) == MODES
    assert one == two
    assert "1 answer replayed" in seatrial("show", "b", "c", cwd=tmp_path).stdout
    (tmp_path / "cases" / "smoke" / "c.yaml").write_text(case("c", "hello you"))
    missed = seatrial("run", *tapes, "replay", "--output", "c", cwd=tmp_path)
    assert missed.returncode == 4
    assert 'body.messages[0].content: recorded "hello", now "hello you"' in " ".join(missed.stdout.split())
