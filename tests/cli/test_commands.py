"""What each command prints, through the real command, as a user would type it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from projects import case, seatrial, write_project

pytestmark = pytest.mark.slow


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(
        tmp_path,
        {
            "cases/smoke/a.yaml": case("a", tags="[quick]"),
            "cases/smoke/b.yaml": case("b", answer="goodbye", risk="high"),
            "cases/regression/c.yaml": case("c"),
        },
    )


def ids(stdout: str) -> list[str]:
    return [item["id"] for item in json.loads(stdout)["cases"]]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ([], ["c", "a", "b"]),
        (["smoke"], ["a", "b"]),
        (["cases/smoke/a.yaml"], ["a"]),
        (["b", "c"], ["c", "b"]),
        (["--tag", "quick"], ["a"]),
        (["--risk", "high"], ["b"]),
        (["--suite", "regression"], ["c"]),
        (["-k", "a or c"], ["c", "a"]),
    ],
)
def test_run_lists_what_is_selected_and_runs_nothing(project: Path, selection: list[str], expected: list[str]) -> None:
    done = seatrial("run", "--list", "--json", *selection, cwd=project)
    assert ids(done.stdout) == expected
    assert not (project / "runs").exists()


def test_only_what_failed_before_runs_again(project: Path) -> None:
    assert seatrial("run", cwd=project).returncode == 1
    done = seatrial("run", "--failed-from", "latest", "--json", cwd=project)
    assert ids(done.stdout) == ["b"]


def test_json_is_the_text_of_results_and_progress_stays_off_stdout(project: Path) -> None:
    done = seatrial("run", "--json", "--output", "out", cwd=project)
    assert done.stdout == (project / "out" / "results.json").read_text(encoding="utf-8")


def test_a_project_is_found_upward_and_by_option(project: Path) -> None:
    assert seatrial("run", "a", cwd=project / "cases").returncode == 0
    assert seatrial("run", "a", "--project", str(project), cwd=Path("/")).returncode == 0


def test_show_prints_a_trace_with_its_grades(project: Path) -> None:
    seatrial("run", cwd=project)
    shown = seatrial("show", "latest", "b#1", cwd=project)
    assert shown.returncode == 0
    assert "you said hello" in shown.stdout
    assert "'goodbye' is not in the output" in shown.stdout
    as_json = json.loads(seatrial("show", "latest", "b", "--json", cwd=project).stdout)
    assert as_json["record"]["case_id"] == "b"
    assert as_json["trace"]["events"][0]["kind"] == "message"


@pytest.mark.parametrize(("trial", "message"), [("bb", "did you mean"), ("b#7", "no trial 7")])
def test_show_of_what_is_not_there_says_so(project: Path, trial: str, message: str) -> None:
    seatrial("run", cwd=project)
    done = seatrial("show", "latest", trial, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr


def test_list_names_runs_newest_first_and_latest_follows_output(project: Path) -> None:
    seatrial("run", "a", cwd=project)
    seatrial("run", "c", "--output", "elsewhere", cwd=project)
    runs = json.loads(seatrial("list", "--json", cwd=project).stdout)["runs"]
    assert len(runs) == 2
    assert seatrial("show", "latest", "c", cwd=project).returncode == 0


def test_config_prints_every_value_with_its_origin(project: Path) -> None:
    done = seatrial("config", "--set", "concurrency=3", "--json", cwd=project)
    settings = {item["key"]: item for item in json.loads(done.stdout)["settings"]}
    assert settings["concurrency"]["value"] == 3
    assert "--set" in settings["concurrency"]["origin"]
    assert settings["agent"]["origin"].startswith("seatrial.yaml:2")


@pytest.mark.parametrize("name", ["case", "fixture", "project", "permissions"])
def test_schemas_are_json_schemas(project: Path, name: str) -> None:
    done = seatrial("schema", name, cwd=project)
    assert json.loads(done.stdout)["$schema"].startswith("https://json-schema.org/")
    assert seatrial("schema", "cas", cwd=project).returncode == 2


def test_check_counts_errors_and_warnings(project: Path) -> None:
    assert "no errors" in seatrial("check", cwd=project).stdout
    (project / "cases" / "empty.yaml").write_text("")
    done = seatrial("check", cwd=project)
    assert (done.returncode, "0 errors, 1 warning" in done.stdout) == (0, True), done.stdout


def test_compare_names_what_broke_with_both_reasons(project: Path) -> None:
    seatrial("run", "--output", "one", cwd=project)
    (project / "my_agent.py").write_text("def answer(task):\n    return 'goodbye'\n")
    seatrial("run", "--output", "two", cwd=project)
    document = json.loads(seatrial("compare", "one", "two", "--json", cwd=project).stdout)
    assert {item["id"]: item["change"] for item in document["cases"]} == {"a": "broke", "b": "fixed", "c": "broke"}
    printed = seatrial("compare", "one", "two", cwd=project).stdout
    assert "'goodbye' is not in the output 'you said hello'" in printed
    assert "'hello' is not in the output 'goodbye'" in printed


@pytest.mark.parametrize("text", ["[/INST] x[0] [bold red]hi[/]", "\x1b[2J\x1b]0;t\x07"])
def test_bl_100_agent_text_is_shown_literally(tmp_path: Path, text: str) -> None:
    write_project(
        tmp_path,
        {
            "cases/a.yaml": case("a"),
            "cases/b.yaml": case("b", message="raise"),
            "my_agent.py": (
                f"def answer(task):\n    if task == 'raise':\n        raise ValueError({text!r})\n    return {text!r}\n"
            ),
        },
    )
    done = seatrial("run", cwd=tmp_path)
    shown = seatrial("show", "latest", "a", cwd=tmp_path)
    assert (done.returncode, shown.returncode) == (1, 0)
    assert "\x1b" not in done.stdout + shown.stdout + done.stderr
    assert text.replace("\x1b", "\\x1b").replace("\x07", "\\x07") in shown.stdout


def test_bl_100_a_case_id_with_control_characters_is_refused_and_shown_escaped(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": 'id: "\\x1b[2J"\ninput: x\n', "cases/b.yaml": 'id: "[bold]"\ninput: x\n'})
    done = seatrial("run", cwd=tmp_path)
    assert done.returncode == 2
    assert "cases/a.yaml:1" in done.stderr
    assert "cases/b.yaml:1" in done.stderr
    assert "\x1b" not in done.stderr
    assert "[bold]" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")
def test_debug_opens_the_debugger_where_the_agent_raised(tmp_path: Path) -> None:
    write_project(tmp_path, {"cases/a.yaml": case("a", message="raise")})
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "run", "--debug", "--trials", "3"],
        cwd=tmp_path,
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(leader, b"p message\nq\n")
    out, err = process.communicate(timeout=60)
    os.close(leader)
    os.close(follower)
    assert "(Pdb)" in out
    assert "'raise'" in out
    assert "0 of 1 case passed" in out, out + err


def test_output_without_utf8_and_with_a_closed_pipe_does_not_crash(project: Path) -> None:
    done = seatrial("run", cwd=project, PYTHONUTF8="0", PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 1, done.stderr
    piped = subprocess.run(
        f"{sys.executable} -m seatrial show latest b | true", shell=True, cwd=project, capture_output=True, check=False
    )
    assert b"Traceback" not in piped.stderr
    assert b"BrokenPipe" not in piped.stderr


@pytest.mark.parametrize("way", ["os.write(1, b'raw')", "subprocess.run(['echo', 'child'])", "print('plain')"])
def test_json_stays_one_document_whatever_the_agent_prints(tmp_path: Path, way: str) -> None:
    write_project(
        tmp_path,
        {
            "cases/a.yaml": case("a"),
            "my_agent.py": f"import os, subprocess\ndef answer(task):\n    {way}\n    return task\n",
        },
    )
    done = seatrial("run", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["version"] == 1
    assert done.returncode == 0


@pytest.mark.parametrize("to", ["'/'", "str(environment.workdir)"])
def test_an_agent_that_changes_the_folder_moves_no_file_of_the_run(tmp_path: Path, to: str) -> None:
    agent = f"""
        import os

        def answer(environment):
            def reply(task):
                os.chdir({to})
                return task
            return reply
        """
    write_project(tmp_path, {"cases/a.yaml": case("a"), "my_agent.py": agent})
    done = seatrial("run", "--output", "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out" / "run.json").read_text())["status"] == "finished"
    assert (tmp_path / "out" / "results.json").exists()


def test_show_of_a_run_folder_needs_no_project(project: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    seatrial("run", "--output", "out", cwd=project)
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert seatrial("show", str(project / "out"), "a", cwd=elsewhere).returncode == 0
    done = seatrial("compare", str(project / "out"), "missing.json", cwd=elsewhere)
    assert (done.returncode, "missing.json: there is no such run folder" in done.stderr) == (2, True)


def test_failed_from_a_run_where_all_passed_selects_nothing(project: Path) -> None:
    assert seatrial("run", "a", cwd=project).returncode == 0
    assert seatrial("run", "--failed-from", "latest", cwd=project).returncode == 5


def test_a_module_that_raises_anything_at_import_is_a_users_mistake(project: Path) -> None:
    (project / "my_agent.py").write_text("class Odd(BaseException): pass\nraise Odd('x')\n")
    done = seatrial("run", cwd=project)
    assert (done.returncode, "raised Odd: x" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
