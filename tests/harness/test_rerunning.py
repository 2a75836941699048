"""One stored trial run again as it was: the same seed, fixture, faults and build; and what is not as it was is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import seatrial as api
from projects import case, seatrial, write_project
from seatrial.errors import UsageError
from seatrial.harness.runs import find_run, runs_of

CHANCE = """
    import random
    from pathlib import Path
    from seatrial import ToolCall

    def build(environment, config):
        def answer(task):
            drawn = random.Random(environment.seed).randrange(10**9)
            for n in range(config.get("calls", 1)):
                environment.record(ToolCall("draw", {"n": n}))
            try:
                environment.tools.pay(amount=drawn)
            except Exception as error:
                return f"could not pay {drawn}: {error} {Path('mood').read_text() if Path('mood').exists() else ''}"
            return f"paid {drawn}"
        return answer
    """
FIXTURE = """
    tools: {pay: [{otherwise: true, returns: done}]}
    faults: [{tool: pay, error: "OSError: no route", probability: 0.5}]
    """


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write_project(
        tmp_path,
        {
            "seatrial.yaml": "version: 1\nagent: {target: 'my_agent:build', config: {calls: 2}}\n",
            "my_agent.py": CHANCE,
            "fixtures/till/fixture.yaml": FIXTURE,
            "cases/a.yaml": case("a", answer="paid", environment="{fixture: till}", thresholds="{trials: 8}"),
        },
    )


def test_the_same_seed_and_faults_come_to_the_same(project: Path) -> None:
    live = api.run(project, output=project / "live")
    assert {str(record.status) for record in live.trials} == {"passed", "failed"}, "chance had its say"
    for record in live.trials[:4]:
        done = api.rerun(live.folder, str(record.key), project=project)
        assert (done.after.output, done.after.seed) == (record.output, record.seed)
        assert (done.same, done.exit_code, done.diff.first, done.notes) == (True, 0, None, ())
        assert (done.run.info.rerun_of, done.run.info.build_id) == (live.info.run_id, live.info.build_id)
        assert [str(one.key) for one in done.run.trials] == [str(record.key)]
        assert done.after.fixture_digest == record.fixture_digest != ""
    assert find_run("latest", project).resolve() == live.folder.resolve(), "a rerun is no run of the project"
    assert [info.run_id for info in runs_of(project)] == [live.info.run_id]


def test_where_the_two_part_is_shown(project: Path) -> None:
    live = api.run(project, trials=1, output=project / "live")
    (project / "my_agent.py").write_text((project / "my_agent.py").read_text().replace('{"n": n}', '{"n": n * 5}'))
    done = api.rerun(live.folder, "a#1", project=project)
    assert done.diff.first == 1
    assert done.diff.pairs[1].difference == "arguments"
    assert done.same


def test_another_ending_is_another_exit_code(project: Path) -> None:
    live = api.run(project, output=project / "live")
    passed = next(record for record in live.trials if record.status == "passed")
    source = (project / "my_agent.py").read_text()
    # of another size: Python takes a file of the same size and second for the one that it has compiled
    (project / "my_agent.py").write_text(source.replace('return f"paid', 'return f"handed over'))
    done = api.rerun(live.folder, str(passed.key), project=project)
    assert (str(done.after.status), done.same, done.exit_code) == ("failed", False, 1)
    (project / "fixtures/till/fixture.yaml").write_text("outcome: {n: {sql: 'SELECT nothing'}}\ntools: {pay: []}\n")
    done = api.rerun(live.folder, str(passed.key), project=project)
    assert done.exit_code == 1, "the agent failed, whatever the fixture did"


def test_a_new_trial_that_says_nothing_is_incomplete(tmp_path: Path) -> None:
    fixture = "def shop(environment):\n    yield\n"
    write_project(tmp_path, {"fixtures/shop.py": fixture, "cases/a.yaml": case("a", environment="{fixture: shop}")})
    live = api.run(tmp_path, output=tmp_path / "live")
    (tmp_path / "fixtures/shop.py").write_text("def shop(environment):\n    raise OSError('disk full')\n    yield\n")
    done = api.rerun(live.folder, "a", project=tmp_path)
    assert (str(done.after.invalid_reason), done.exit_code) == ("fixture", 4)
    assert [note.rule for note in done.notes] == ["fixture-edited"]


@pytest.mark.parametrize(
    ("file", "old", "new", "rule"),
    [
        ("cases/a.yaml", "input: hello", "input: good day", "input-edited"),
        ("cases/a.yaml", "answer: paid", "answer: pay", "case-edited"),
        ("fixtures/till/fixture.yaml", "no route", "no way", "fixture-edited"),
    ],
)
def test_what_was_edited_since_is_said_and_strictly_refused(
    file: str, old: str, new: str, rule: str, project: Path
) -> None:
    live = api.run(project, trials=1, output=project / "live")
    path = project / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert [note.rule for note in api.rerun(live.folder, "a#1", project=project).notes] == [rule]
    with pytest.raises(UsageError, match="edited since this trial ran; without --strict"):
        api.rerun(live.folder, "a#1", project=project, strict=True)


def test_what_cannot_be_run_again_says_why(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = api.run(project, agent=lambda task: "paid", trials=1, output=project / "given")
    with pytest.raises(UsageError, match=r"given as an object .*give the agent itself"):
        api.rerun(given.folder, "a#1", project=project)
    assert api.rerun(given.folder, "a#1", project=project, agent=lambda task: "paid").same
    with pytest.raises(UsageError, match="has trials 1 to 1, no trial 2"):
        api.rerun(given.folder, "a#2", project=project)
    settings = project / "seatrial.yaml"
    settings.write_text(settings.read_text().replace("{calls: 2}", "{key: '${PAY_KEY:-}'}"))
    monkeypatch.setenv("PAY_KEY", "pay-key-0123456789")
    live = api.run(project, trials=1, output=project / "live")
    assert api.rerun(live.folder, "a#1", project=project).same, "masked settings are put back"
    monkeypatch.delenv("PAY_KEY")
    with pytest.raises(UsageError, match=r"\[secret:PAY_KEY\], whose value is not known now"):
        api.rerun(live.folder, "a#1", project=project)
    (project / "cases/a.yaml").rename(project / "cases/b.yaml")
    (project / "cases/b.yaml").write_text((project / "cases/b.yaml").read_text().replace("id: a", "id: b"))
    monkeypatch.setenv("PAY_KEY", "pay-key-0123456789")
    with pytest.raises(UsageError, match="no case of the project any more"):
        api.rerun(live.folder, "a#1", project=project)


@pytest.mark.slow
def test_the_commands_show_and_exit_as_they_say(project: Path) -> None:
    live = api.run(project, output=project / "live")
    failed = next(str(record.key) for record in live.trials if record.status == "failed")
    again = seatrial("rerun", "live", failed, cwd=project)
    assert again.returncode == 0
    assert f"{failed}  failed, as before" in again.stdout
    assert "both did the same (3 steps of calls and hand-offs)" in again.stdout
    (project / "my_agent.py").write_text((project / "my_agent.py").read_text().replace('f"could not pay', 'f"paid'))
    again = seatrial("rerun", "live", failed, cwd=project)
    assert again.returncode == 1
    assert "failed then, passed now" in again.stdout
    assert "could not pay" in again.stdout.partition("Final output")[2]
    told: dict[str, Any] = json.loads(seatrial("rerun", "live", failed, "--json", cwd=project).stdout)
    assert (told["same"], told["before"]["status"], told["after"]["status"]) == (False, "failed", "passed")
    path = project / "cases/a.yaml"
    path.write_text(path.read_text().replace("answer: paid", "answer: pay"))
    regraded = seatrial("regrade", "live", "--output", "again", cwd=project)
    assert regraded.returncode == 1
    assert "trials with another status than before" in regraded.stdout
    assert f"{failed}" in regraded.stdout.partition("another status")[2] or "passed → failed" in regraded.stdout
    quiet = seatrial("regrade", "live", "--json", cwd=project)
    assert json.loads(quiet.stdout)["cases"][0]["verdict"] == "failed"
    assert seatrial("regrade", "live", "b", cwd=project).returncode == 5
    assert seatrial("regrade", "nowhere", cwd=project).returncode == 2
    assert seatrial("rerun", "live", "a#1", "--strict", cwd=project).returncode == 2
