"""Files and folders that cannot be read, are of the wrong kind, or lie behind symbolic links: never left out, never
waited for."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.loading.cases import read_cases
from seatrial.loading.check import check
from seatrial.loading.config import load_project
from seatrial.loading.fixtures import fixture_names, load_fixture
from seatrial.loading.folders import files_below
from seatrial.loading.policies import load_exceptions, load_policy, load_rules
from seatrial.loading.selection import Selection, select

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links, pipes and permissions of POSIX")

CASE = "{id: a, query: x}"


def project(folder) -> Project:
    return Project(root=str(folder.root))


def told(problems: tuple[Diagnostic, ...]) -> list[tuple[str, str]]:
    return [(problem.path, problem.rule) for problem in problems]


# --- symbolic links ------------------------------------------------------------------------------------------------


def test_a_linked_folder_of_cases_is_followed_and_named_by_its_link(folder, tmp_path_factory) -> None:
    shared = tmp_path_factory.mktemp("shared")
    (shared / "a.yaml").write_text(CASE)
    folder.write({"cases/own/b.yaml": "{id: b, query: x}"})
    (folder.root / "cases" / "shared").symlink_to(shared)
    cases = folder.load().cases
    assert [(case.id, case.suite, case.path) for case in cases] == [
        ("b", "own", "cases/own/b.yaml"),
        ("a", "shared", "cases/shared/a.yaml"),
    ]
    for position, ids in (("cases", ["b", "a"]), ("cases/shared", ["a"]), (str(shared), ["a"])):
        chosen = select(cases, Selection(select=(position,)), folder.root)
        assert [case.id for case in chosen] == ids


def test_the_folder_of_cases_may_itself_be_a_link(folder, tmp_path_factory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "smoke").mkdir()
    (elsewhere / "smoke" / "a.yaml").write_text(CASE)
    (folder.root / "cases").symlink_to(elsewhere)
    assert [case.suite for case in folder.load().cases] == ["smoke"]


@pytest.mark.parametrize("target", [".", "..", "../.."])
def test_a_loop_of_links_is_named_once_and_the_rest_is_read(folder, target: str) -> None:
    folder.write({"cases/smoke/a.yaml": CASE})
    (folder.root / "cases" / "smoke" / "again").symlink_to(target)
    loaded, errors = read_cases(project(folder))
    assert [case.id for case in loaded.cases][:1] == ["a"]
    loops = [problem for problem in errors if problem.rule == "folder-loop"]
    assert loops, errors
    assert loops[0].path.startswith("cases/smoke/again")
    assert "a loop of links" in loops[0].message


@pytest.mark.parametrize(("target", "reason"), [("nowhere", "No such file"), ("link", "symbolic links")])
def test_a_link_that_leads_nowhere_is_an_error(folder, target: str, reason: str) -> None:
    folder.write({"cases/smoke/a.yaml": CASE})
    (folder.root / "cases" / "link").symlink_to(target)
    (problem,) = folder.problems()
    assert (problem.path, problem.rule) == ("cases/link", "broken-link")
    assert reason in problem.message


def test_two_links_to_one_folder_are_no_loop_but_their_ids_clash(folder, tmp_path_factory) -> None:
    shared = tmp_path_factory.mktemp("shared")
    (shared / "a.yaml").write_text(CASE)
    (folder.root / "cases").mkdir()
    for name in ("one", "two"):
        (folder.root / "cases" / name).symlink_to(shared)
    assert told(folder.problems()) == [("cases/two/a.yaml", "duplicate-id")]


def test_the_digest_of_a_fixture_covers_what_lies_behind_its_links(folder, tmp_path_factory) -> None:
    shared = tmp_path_factory.mktemp("shared")
    (shared / "note.txt").write_text("one")
    folder.write({"fixtures/f/fixture.yaml": "files: files/", "fixtures/f/files/x.txt": ""})
    (folder.root / "fixtures/f/files/shared").symlink_to(shared)
    before = load_fixture(project(folder), "f").content_digest
    (shared / "note.txt").write_text("two")
    assert load_fixture(project(folder), "f").content_digest != before
    (folder.root / "fixtures/f/files/loop").symlink_to(".")
    with pytest.raises(InputError, match="loop of links"):
        load_fixture(project(folder), "f")


# --- the wrong kind ------------------------------------------------------------------------------------------------


def make(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made, _working_in(path.parent):
            made.bind(path.name)


class _working_in:  # noqa: N801  a socket's path must be short
    def __init__(self, folder: Path) -> None:
        self._folder, self._before = folder, Path.cwd()

    def __enter__(self) -> None:
        os.chdir(self._folder)

    def __exit__(self, *_: object) -> None:
        os.chdir(self._before)


KINDS = {"pipe": "a named pipe", "socket": "a socket", "device": "a device", "folder": "a folder"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    [
        "seatrial.yaml",
        ".env",
        "cases/smoke/b.yaml",
        "cases/smoke/b.csv",
        "fixtures/f/fixture.yaml",
        "fixtures/g.py",
        "policies/release_policy.yaml",
        "policies/tool_permissions.yaml",
        "policies/exceptions.yaml",
    ],
)
def test_what_is_no_regular_file_is_refused_and_never_waited_for(folder, name: str, kind: str) -> None:
    if kind == "folder" and name.startswith("cases/"):
        pytest.skip("a folder below cases/ is a folder, whatever its name")
    folder.write({"cases/smoke/a.yaml": CASE})
    make(folder.root / name, kind)
    problems = check(folder.root)
    assert told(problems) == [(name, "no-regular-file")]
    assert problems[0].message == f"is no regular file but {KINDS[kind]}"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
def test_data_that_a_fixture_or_an_input_names_must_be_regular_files(folder, kind: str) -> None:
    folder.write(
        {
            "fixtures/db/fixture.yaml": "database: {sqlite: made}",
            "fixtures/st/fixture.yaml": "state: made",
            "fixtures/fi/fixture.yaml": "files: data/",
            "cases/smoke/a.yaml": "{id: a, input: {message: x, attachments: [made]}}",
        }
    )
    for name in ("fixtures/db/made", "fixtures/st/made", "fixtures/fi/data/made", "cases/smoke/made"):
        make(folder.root / name, kind)
    found = {problem.path: problem.message for problem in check(folder.root)}
    assert set(found) == {
        "cases/smoke/a.yaml",
        "fixtures/db/fixture.yaml",
        "fixtures/fi/data/made",
        "fixtures/st/made",
    } or (kind == "device" and "outside the project" in " ".join(found.values()))
    assert all("no regular file" in message or "outside" in message for message in found.values())


@pytest.mark.parametrize("name", ["cases", "fixtures"])
def test_a_file_where_a_folder_belongs_is_an_error(folder, name: str) -> None:
    folder.write({"seatrial.yaml": "", name: "x"})
    (problem,) = check(folder.root)
    assert (problem.path, problem.rule) == (name, "unreadable-file")
    assert "Not a directory" in problem.message


def test_a_fixtures_files_must_be_a_folder_and_its_database_a_file(folder) -> None:
    folder.write({"fixtures/f/fixture.yaml": "files: x.txt\ndatabase: {sqlite: d}\n", "fixtures/f/x.txt": ""})
    (folder.root / "fixtures/f/d").mkdir()
    problems = check(folder.write({"seatrial.yaml": ""}).root)
    assert [(problem.line, problem.message) for problem in problems] == [
        (1, "`files`: 'x.txt' is no folder"),
        (2, "`database.sqlite`: 'd' is no regular file but a folder"),
    ]


# --- what may not be read ------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_listed_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.txt").touch()
    problems: list[Diagnostic] = []
    deep = tmp_path.joinpath(*["d" * 200] * 2)
    deep.mkdir(parents=True)
    (deep / "y.txt").touch()
    assert len(list(files_below(tmp_path, tmp_path, problems))) == 2
    assert list(files_below(tmp_path / "x.txt", tmp_path, problems)) == []
    assert told(tuple(problems)) == [("x.txt", "unreadable-file")]


CHECK = """
import json, os, sys
from pathlib import Path
from seatrial.loading.check import check
root = Path(sys.argv[1])
assert check(root) == ()  # root may read it all, and every module is imported by now
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
print(json.dumps([[each.path, each.rule, each.message] for each in check(root)]))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A project that other users may look into."""
    root = Path(tempfile.mkdtemp())
    root.chmod(0o755)
    for name in ("cases/smoke", "fixtures/f/files", "policies"):
        (root / name).mkdir(parents=True)
    (root / "seatrial.yaml").write_text("version: 1\n")
    (root / ".env").write_text("A=1\n")
    (root / "cases/smoke/a.yaml").write_text("{id: a, query: x, environment: {fixture: f}}")
    (root / "fixtures/f/fixture.yaml").write_text("files: files/")
    (root / "policies/release_policy.yaml").write_text("gates: {smoke: {minimum_pass_rate: 1}}")
    yield root
    shutil.rmtree(root)


def as_another_user(root: Path) -> list[list[str]]:
    """What `check` tells a user who is not root, in a process of its own where we are root, who may read it all."""
    if os.getuid() != 0:
        return [[each.path, each.rule, each.message] for each in check(root)]
    command = [sys.executable, "-c", CHECK, str(root)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: list[list[str]] = json.loads(done.stdout)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("cases", ["cases"]),
        ("cases/smoke", ["cases/smoke"]),
        ("cases/smoke/a.yaml", ["cases/smoke/a.yaml"]),
        ("fixtures", ["fixtures"]),
        ("fixtures/f", ["fixtures/f"]),
        ("fixtures/f/files", ["fixtures/f/files"]),
        ("fixtures/f/fixture.yaml", ["fixtures/f/fixture.yaml"]),
        ("policies/release_policy.yaml", ["policies/release_policy.yaml"]),
        ("seatrial.yaml", ["seatrial.yaml"]),
        (".env", [".env"]),
    ],
)
def test_whatever_may_not_be_read_is_named(open_folder: Path, name: str, named: list[str]) -> None:
    (open_folder / name).chmod(0)
    found = as_another_user(open_folder)
    (open_folder / name).chmod(0o755)
    assert [[path, rule] for path, rule, _ in found] == [[each, "unreadable-file"] for each in named]
    assert all("Permission denied" in message for _, _, message in found)


@pytest.mark.slow
def test_a_folder_of_policies_that_may_not_be_looked_into_is_named_with_each_file_in_it(open_folder: Path) -> None:
    (open_folder / "policies").chmod(0)
    found = as_another_user(open_folder)
    (open_folder / "policies").chmod(0o755)
    assert {path for path, _, _ in found} == {
        "policies/exceptions.yaml",
        "policies/release_policy.yaml",
        "policies/tool_permissions.yaml",
    }


@pytest.mark.slow
def test_a_readable_project_has_nothing_wrong_for_anybody(open_folder: Path) -> None:
    assert as_another_user(open_folder) == []


def test_what_is_there_but_cannot_be_used_is_never_taken_for_absent(folder) -> None:
    for name in ("seatrial.yaml", "policies/release_policy.yaml", "policies/exceptions.yaml"):
        (folder.root / name).mkdir(parents=True)
    (folder.root / "policies" / "tool_permissions.yaml").symlink_to("nowhere")
    for load in (load_policy, load_exceptions, load_rules):
        with pytest.raises(InputError):
            load(project(folder))
    with pytest.raises(InputError, match="no regular file but a folder"):
        load_project(folder=folder.root, environ={})
    with pytest.raises(UsageError, match="there is no release policy"):
        load_policy(project(folder), folder.root / "other.yaml")
    assert fixture_names(project(folder)) == []
