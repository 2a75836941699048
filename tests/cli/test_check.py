"""`seatrial check` finds whatever `seatrial run` would refuse, with its place, and `run` names the same place."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from projects import case, seatrial, write_project
from seatrial.errors import Diagnostic, InputError
from seatrial.harness.checking import check_project
from seatrial.harness.plan import plan
from seatrial.harness.request import Request

GRADERS = """
import seatrial

constant = 5


def polite(context):
    return True


def scored(context, n):
    return n


@seatrial.grader(name="tone")
def toned(context):
    return True
"""
HEAD = "id: a\ninput: x\nexpected: {answer: x}\n"


def project(folder: Path, files: dict[str, str]) -> Path:
    return write_project(folder, {"my_graders.py": GRADERS, "cases/smoke/ok.yaml": case("ok"), **files})


def found(folder: Path, files: dict[str, str]) -> tuple[Diagnostic, ...]:
    return check_project(project(folder, files))


@pytest.mark.parametrize(
    ("text", "line", "rule", "message"),
    [
        ("advisory: [anwser]", 4, "unknown-grade", "did you mean 'answer'?"),
        ("graders: [{use: 'my_graders:polite', name: answer}]", 4, "duplicate-grade", "two grades are called 'answer'"),
        ("graders: ['my_grader:polite']", 1, "bad-grader", "did you mean 'my_graders'?"),
        ("graders: ['my_graders:polit']", 1, "bad-grader", "did you mean 'polite'?"),
        ("graders: ['my_graders:constant']", 1, "bad-grader", "cannot be called"),
        ("graders: [{use: 'my_graders:scored', with: {m: 1}}]", 1, "bad-grader", "missing a required argument: 'n'"),
        ("graders: [polite]", 1, "bad-grader", "unknown grader 'polite'"),
        ("graders: ['my_graders:toned']\nadvisory: [tune]", 1, "bad-case", "did you mean 'tone'?"),
        ("graders: ['my_graders:toned', {use: 'my_graders:polite', name: tone}]", 1, "bad-case", "are called 'tone'"),
        ("advisory: [permissions]", 1, "bad-case", "no grade is called 'permissions'"),
        ("user: {use: 'my_graders:nobody'}", 1, "bad-user", "has no 'nobody'"),
        ("user: {use: 'my_graders:constant'}", 1, "bad-user", "cannot be called"),
        ("judges: [{rubric: nice}]", 1, "not-available", "judges are not available"),
        ("thresholds: {trials: 2, required_successes: 3}", 4, "too-many-successes", "only 2 trials run"),
    ],
)
def test_what_run_refuses_in_a_case_check_finds_at_its_place(
    tmp_path: Path, text: str, line: int, rule: str, message: str
) -> None:
    (problem,) = found(tmp_path, {"cases/smoke/a.yaml": HEAD + text + "\n"})
    assert (problem.path, problem.line, problem.rule) == ("cases/smoke/a.yaml", line, rule), str(problem)
    assert message in str(problem)
    with pytest.raises(InputError) as refused:
        plan(Request(project=tmp_path))
    assert refused.value.diagnostics == (problem,)


@pytest.mark.parametrize(
    ("settings", "line", "column", "message"),
    [
        ("agent: my_agnt:answer", 1, 8, "did you mean 'my_agent'?"),
        ("agent: my_agent:anwser", 1, 8, "did you mean 'answer'?"),
        ("agent: my_agent:nothing", 1, 8, "an object of type NoneType is no agent"),
        ("agent: my_agent:build", 1, 8, "but it needs model too"),
        ("agent:\n  target: my_agent:anwser", 2, 11, "did you mean 'answer'?"),
        ("agent: {command: [no-such-program, a.py]}", 1, 18, "there is no program"),
        ("agent: {target: 'https://example.org/run', output: 7}", 1, 17, "agent output: 7 is neither"),
        ("agent: {target: 'https://example.org/run', sandbox: bubblewrap}", 1, 17, "only a command runs in a sandbox"),
        ("agent: {target: 'my_agent:answer', headers: {X: y}}", 1, 17, "only requests to a URL have headers"),
        ("agent: {target: 'my_agent:answer', input: {a: $mesage}}", 1, 17, "a function takes no `input`"),
        ("agent: ftp://x/y", 1, 8, "only http:// and https:// are supported"),
        ("agent: broken:answer", 1, 8, "ValueError: no key"),
        ("agent: my_agent:answer\nbuilds: {'b.c': my_agent:anwser}", 2, 17, "`builds.b.c`"),
        ("builds: {b: {kind: langgraf, target: my_agent:answer}}", 1, 38, "did you mean 'langgraph'?"),
    ],
)
def test_an_agent_or_build_that_is_none_is_found_where_it_is_named(
    tmp_path: Path, settings: str, line: int, column: int, message: str
) -> None:
    agent = "nothing = None\n\n\ndef answer(task):\n    return task\n\n\ndef build(config, model):\n    return answer\n"
    files = {"seatrial.yaml": settings + "\n", "my_agent.py": agent, "broken.py": "raise ValueError('no key')\n"}
    (problem,) = found(tmp_path, files)
    assert (problem.path, problem.line, problem.rule) == ("seatrial.yaml", line, "bad-agent"), str(problem)
    assert problem.column == column
    assert message in problem.message


@pytest.mark.parametrize(
    ("files", "path", "message"),
    [
        ({"fixtures/f.py": "f = None\n"}, "fixtures/f.py", "it has no function 'f'"),
        ({"fixtures/f.py": "import nowhere\ndef f(e):\n    yield\n"}, "fixtures/f.py", "nowhere"),
        ({"fixtures/f.py": "def f(e):\n    pass\n"}, "fixtures/f.py", "has no `yield`"),
        (
            {"fixtures/f/fixture.yaml": "outcome: {x: {function: 'my_graders:polit'}}"},
            "fixtures/f/fixture.yaml",
            "did you mean 'polite'?",
        ),
        (
            {"fixtures/f/fixture.yaml": "watch: {globals: ['my_graders:constants']}"},
            "fixtures/f/fixture.yaml",
            "did you mean 'constant'?",
        ),
        (
            {"fixtures/f/fixture.yaml": "database: {sqlite: o.sql}", "fixtures/f/o.sql": "SELECT 1;\nSELEKT 2;\n"},
            "fixtures/f/o.sql",
            'near "SELEKT"',
        ),
    ],
)
def test_a_fixture_that_could_not_be_set_up_is_found(tmp_path: Path, files, path: str, message: str) -> None:
    (problem,) = found(tmp_path, files)
    assert problem.path == path
    assert message in problem.message


def test_every_bad_grader_of_a_case_is_named_and_what_many_cases_share_once(tmp_path: Path) -> None:
    cases = "".join(f"- {{id: c{number}, input: x}}\n" for number in range(4))
    files = {
        "seatrial.yaml": "agent: my_agent:answer\ndefaults: {graders: ['my_graders:polit', 'my_graders:constant']}\n",
        "cases/smoke/a.yaml": cases,
    }
    problems = found(tmp_path, files)
    assert [(problem.line, problem.rule) for problem in problems] == [(1, "bad-grader"), (1, "bad-grader")]
    assert all("and in 4 more cases" in problem.hint for problem in problems)


def test_whatever_else_keeps_a_run_from_beginning_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_TRIALS", "many")
    (problem,) = found(tmp_path, {})
    assert "SEATRIAL_TRIALS is 'many'" in problem.message
    monkeypatch.setenv("SEATRIAL_TRIALS", "1")
    text = HEAD + "thresholds: {trials: 3, required_successes: 2}\n"
    (problem,) = found(tmp_path, {"cases/smoke/a.yaml": text})
    assert (problem.path, problem.line) == ("cases/smoke/a.yaml", 1)
    assert "only 1 trial runs" in problem.message


def test_a_project_that_is_right_has_nothing_wrong(tmp_path: Path) -> None:
    files = {
        "seatrial.yaml": "agent: my_agent:answer\nbuilds: {late: my_agent:later}\n",
        "cases/smoke/a.yaml": HEAD
        + "graders: ['my_graders:toned', {use: 'my_graders:scored', with: {n: 1}, minimum: 0}]\nadvisory: [tone]\n"
        + "environment: {fixture: f}\n",
        "fixtures/f.py": "def f(environment):\n    yield\n",
        "fixtures/g/fixture.yaml": "database: {sqlite: o.sql}\noutcome: {x: {function: 'my_graders:polite'}}\n",
        "fixtures/g/o.sql": "CREATE TABLE a (x);\n",
    }
    assert found(tmp_path, files) == ()


def test_a_project_without_an_agent_or_without_cases_may_get_them_later(tmp_path: Path) -> None:
    assert found(tmp_path, {"seatrial.yaml": "version: 1\n"}) == ()
    (tmp_path / "cases/smoke/ok.yaml").unlink()
    assert found(tmp_path, {"cases/smoke/ok.yaml": "", "seatrial.yaml": "version: 1\n"})[0].rule == "no-cases"


@pytest.mark.slow
def test_what_modules_print_stays_off_standard_output(tmp_path: Path) -> None:
    project(tmp_path, {"my_agent.py": "print('loading')\ndef answer(task):\n    return f'you said {task}'\n"})
    done = seatrial("check", "--json", cwd=tmp_path)
    assert json.loads(done.stdout) == {"diagnostics": []}
    assert "loading" in done.stderr
    assert json.loads(seatrial("run", "--json", cwd=tmp_path).stdout)["cases"]


@pytest.mark.slow
@pytest.mark.parametrize("command", ["check", "run"])
def test_an_unknown_variable_is_a_warning_with_the_nearest(tmp_path: Path, command: str) -> None:
    done = seatrial(command, cwd=project(tmp_path, {}), SEATRIAL_TRAILS="3")
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout + done.stderr
    assert "SEATRIAL_TRAILS is not known" in printed
    assert "did you mean SEATRIAL_TRIALS?" in printed


@pytest.mark.slow
def test_run_names_file_and_line_of_what_check_finds(tmp_path: Path) -> None:
    project(tmp_path, {"cases/smoke/a.yaml": HEAD + "advisory: [anwser]\n"})
    checked, ran = seatrial("check", cwd=tmp_path), seatrial("run", cwd=tmp_path)
    assert (checked.returncode, ran.returncode) == (2, 2)
    assert "1 error, 0 warnings" in checked.stdout
    for text in (checked.stdout, ran.stderr):
        assert "cases/smoke/a.yaml:4:12" in text


@pytest.mark.slow
def test_config_shows_the_trials_of_the_environment(tmp_path: Path) -> None:
    done = seatrial("config", "--json", cwd=project(tmp_path, {}), SEATRIAL_TRIALS="5")
    rows = {row["key"]: row for row in json.loads(done.stdout)["settings"]}
    assert rows["defaults.thresholds.trials"] == {
        "key": "defaults.thresholds.trials",
        "value": 5,
        "origin": "environment variable SEATRIAL_TRIALS",
    }


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
@pytest.mark.parametrize(("kind", "message"), [("pipe", "a named pipe"), ("folder", "a folder")])
def test_a_baseline_that_is_no_file_is_refused_and_never_waited_for(tmp_path: Path, kind: str, message: str) -> None:
    approved = project(tmp_path, {}) / "baselines" / "approved.json"
    approved.parent.mkdir()
    if kind == "pipe":
        os.mkfifo(approved)
    else:
        approved.mkdir()
    done = seatrial("baseline", "show", cwd=tmp_path)
    assert (done.returncode, f"is no regular file but {message}" in done.stderr) == (2, True), done.stderr
