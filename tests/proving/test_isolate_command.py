"""`seatrial isolate` on agents that leak in the ways agents do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from projects import case, seatrial, write_project

pytestmark = pytest.mark.slow

START = """
import atexit, itertools, os, threading, time
from pathlib import Path
HERE = Path(__file__).parent
"""
LEAKS = {
    "global": (
        "SEEN = []",
        "SEEN.append(1)",
        "SEEN",
        ("global", "leaky:SEEN", "[] -> [1]"),
    ),
    "class attribute": (
        "class Store:\n    cache = {}",
        "Store.cache['user'] = 'u1'",
        "Store.cache",
        ("global", "leaky:Store", 'cache.user: + "u1"'),
    ),
    "environment variable": (
        "os.environ.pop('SHOP_MODE', None)",
        "os.environ['SHOP_MODE'] = 'hunter2'",
        "os.environ.get('SHOP_MODE')",
        ("environment", "SHOP_MODE", "new"),
    ),
    "working folder": (
        "START = os.getcwd()",
        "os.chdir(HERE / 'cases')",
        "os.getcwd() != START",
        ("cwd", "the working folder", None),
    ),
    "file": (
        "CACHE = HERE / 'data' / 'cache.txt'",
        "CACHE.parent.mkdir(exist_ok=True), CACHE.write_text('u1')",
        "CACHE.exists()",
        ("file", "data/cache.txt", "new"),
    ),
    "thread": (
        "",
        "threading.Thread(target=time.sleep, args=(60,), name='poller', daemon=True).start()",
        "any(thread.name == 'poller' for thread in threading.enumerate())",
        ("thread", "poller", "started"),
    ),
    "counter": (
        "NUMBERS = itertools.count(1)",
        "next(NUMBERS)",
        "next(NUMBERS) > 1",
        ("global", "leaky:NUMBERS", None),
    ),
    "database": (
        "import sqlite3\nORDERS = HERE / 'orders.db'\nwith sqlite3.connect(ORDERS) as made:\n"
        "    made.execute('CREATE TABLE IF NOT EXISTS t (n)')",
        "with sqlite3.connect(ORDERS) as db: db.execute('INSERT INTO t VALUES (1)')",
        "sqlite3.connect(ORDERS).execute('SELECT count(*) FROM t').fetchone()[0]",
        ("file", "orders.db", "changed"),
    ),
}


def agent(begin: str, leak: str, see: str) -> str:
    body = f"""
def answer(task):
    if task == "login":
        {leak}
    if task == "greet":
        return "hello again" if {see} else "first hello"
    return task
"""
    return f"{START}\n{begin}\n{body}"


def project(folder: Path, text: str, *, cases: int = 3) -> Path:
    files = {f"cases/smoke/{n}.yaml": case(f"plain-{n}", message=f"p{n}", answer=f"p{n}") for n in range(cases)}
    files["cases/smoke/greet.yaml"] = case("greet", message="greet", answer="first")
    files["cases/smoke/login.yaml"] = case("login", message="login", answer="login")
    return write_project(folder, files | {"seatrial.yaml": "version: 1\nagent: leaky:answer\n", "leaky.py": text})


def isolated(folder: Path, *more: str) -> tuple[int, Any]:
    done = seatrial("isolate", "--json", "--orders", "1", "--concurrency", "1", *more, cwd=folder)
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.parametrize("kind", LEAKS)
def test_a_leak_is_found_with_who_did_it_and_what_they_share(tmp_path: Path, kind: str) -> None:
    begin, leak, see, (suspect, what, how) = LEAKS[kind]
    before = project(tmp_path / "shop", agent(begin, leak, see))
    code, found = isolated(before)
    (dependent,) = (item for item in found["cases"] if item["finding"] != "independent")
    assert (code, found["verdict"], dependent["id"]) == (1, "dependent", "greet")
    if kind != "counter":
        assert dependent["company"] == ["login"]
    assert [name for name in dependent["differs"] if name != "status"] == ["grade answer"]
    shared = [(change["kind"], change["what"]) for change in dependent["shared"]]
    assert shared[0] == (suspect, what), dependent["shared"]
    assert how is None or dependent["shared"][0]["how"] == how
    assert "hunter2" not in json.dumps(found)
    assert not (before / "data").exists()  # orders run in copies


def test_an_honest_suite_is_independent_and_leaves_nothing_in_the_project(tmp_path: Path) -> None:
    folder = project(tmp_path, agent("", "pass", "False"))
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    done = seatrial("isolate", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("INDEPENDENT  5 cases · 40 trials in 11 processes · seed 0")
    assert sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts) == before


def test_a_flaky_agent_is_named_flaky_and_nobody_is_accused(tmp_path: Path) -> None:
    count = tmp_path / "count"
    text = f"""
import random
from pathlib import Path

def answer(task):
    if task != "greet":
        return task
    with Path({str(count)!r}).open("a") as file:
        file.write("x")
        number = file.tell()
    return "first" if random.Random(number).random() < 0.5 else "again"
"""
    code, found = isolated(project(tmp_path / "shop", text))
    assert (code, found["verdict"]) == (4, "undecided")
    assert {item["id"]: item["finding"] for item in found["cases"] if item["finding"] != "independent"} == {
        "greet": "flaky"
    }


def test_what_only_happens_side_by_side_is_found(tmp_path: Path) -> None:
    text = """
import asyncio
CURRENT = {"task": None}

async def answer(task):
    CURRENT["task"] = task
    for _ in range(3):
        await asyncio.sleep(0)
    return "first hello" if CURRENT["task"] == task == "greet" else task
"""
    done = seatrial("isolate", "--json", "--orders", "1", cwd=project(tmp_path, text))
    found = json.loads(done.stdout)
    (dependent,) = (item for item in found["cases"] if item["finding"] == "dependent")
    assert (dependent["id"], dependent["together"], len(dependent["company"])) == ("greet", True, 1)
    assert [change["what"] for change in dependent["shared"]] == ["leaky:CURRENT"]


def test_an_agent_that_ends_the_process_hides_no_result_in_silence(tmp_path: Path) -> None:
    text = agent("", "os._exit(3)", "False")
    code, found = isolated(project(tmp_path, text))
    alone = {item["id"]: item["alone"] for item in found["cases"]}
    assert alone["login"] == {"features": {"status": "crashed"}, "reason": "the process ended with exit code 3"}
    assert code in (0, 4)


def test_watched_globals_count_too(tmp_path: Path) -> None:
    begin, leak, see, _ = LEAKS["global"]
    folder = project(tmp_path, agent(begin, leak, see))
    (folder / "fixtures" / "memory").mkdir(parents=True)
    (folder / "fixtures" / "memory" / "fixture.yaml").write_text('watch: {globals: ["leaky:SEEN"]}\n')
    with (folder / "cases" / "smoke" / "login.yaml").open("a") as file:
        file.write("environment: {fixture: memory}\n")
    code, found = isolated(folder)
    login = next(item for item in found["cases"] if item["id"] == "login")
    assert (code, login["alone"]["features"]["status"]) == (1, "invalid fixture")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["gret"], 5, "did you mean"),
        (["--agent", "nowhere:answer"], 2, "there is no module named 'nowhere'"),
        (["--build", "slow"], 2, "there is no build 'slow'"),
    ],
)
def test_mistakes_are_told_as_by_run(tmp_path: Path, arguments: list[str], code: int, message: str) -> None:
    done = seatrial("isolate", *arguments, cwd=project(tmp_path, agent("", "pass", "False")))
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


def test_an_interruption_leaves_no_process_and_no_folder_behind(tmp_path: Path) -> None:
    folder = project(tmp_path / "shop", "import time\n\ndef answer(task):\n    time.sleep(600)\n")
    (tmp_path / "tmp").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "tmp")}
    started = subprocess.Popen(
        [sys.executable, "-m", "seatrial", "isolate"],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert started.stderr is not None
    assert "alone" in started.stderr.readline()
    started.send_signal(signal.SIGINT)
    _, errors = started.communicate(timeout=30)
    assert (started.returncode, "interrupted" in errors) == (130, True), errors
    assert list((tmp_path / "tmp").iterdir()) == []


def test_settings_that_do_not_fit_the_agent_are_exit_2_as_in_a_run(tmp_path: Path) -> None:
    factory = "def build(config):\n    return lambda task: task\n"
    files = {f"cases/c{n}.yaml": case(f"c{n}") for n in (1, 2)}
    project = "version: 1\nagent: {target: 'my_factory:build', input: {question: $message}}\n"
    write_project(tmp_path, {"seatrial.yaml": project, "my_factory.py": factory, **files})
    done = seatrial("isolate", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "a function takes no `input`: it gets the case's input as it is" in done.stderr
