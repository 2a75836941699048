"""Programs inside bubblewrap: what they are kept from, seen from inside."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import seatrial
from graphs import Drive
from programs import agent_of
from projects import write_project
from seatrial.agents.command import sandbox
from seatrial.agents.detect import agent_for
from seatrial.core.project import AgentSpec
from seatrial.errors import UsageError


def why_not() -> str:
    """Why bubblewrap cannot be used here; empty where it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed"
    try:
        sandbox.enforced()
    except UsageError as error:
        return str(error)
    return ""


needs_bubblewrap = pytest.mark.skipif(bool(why_not()), reason=why_not() or "it works")

TRIES = """
import socket
hear()

def tried(what):
    try:
        what()
    except OSError as error:
        return type(error).__name__ + ": " + error.strerror
    return "done"

def connect():
    socket.create_connection(("192.0.2.1", 80), timeout=2).close()

say(type="answer", output={
    "root": tried(lambda: open("/etc/written-by-a-test", "w").close()),
    "project": tried(lambda: open(os.path.join(os.path.dirname(__file__), "x"), "w").close()),
    "tmp": tried(lambda: open("/tmp/private", "w").close()),
    "workdir": tried(lambda: open("kept.txt", "w").close()),
    "database": tried(lambda: open(hello["database"], "a").close()),
    "network": tried(connect),
    "secrets": [name for name in os.environ if "TOKEN" in name],
    "plain": os.environ.get("PLAIN"),
    "processes": [name for name in os.listdir("/proc") if name.isdigit()].__len__() < 6,
})
"""


@needs_bubblewrap
def test_a_sandboxed_program_reaches_nothing_but_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TOKEN", "value")
    monkeypatch.setenv("PLAIN", "seen")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.sql").write_text("CREATE TABLE t (x);", encoding="utf-8")
    fixture: dict[str, Any] = {"database": {"sqlite": str(tmp_path / "data.sql")}, "folder": str(tmp_path)}
    driven = Drive(agent_of(tmp_path, TRIES, sandbox="bubblewrap")).run("go", **fixture)
    assert driven.output == {
        "root": "OSError: Read-only file system",
        "project": "OSError: Read-only file system",
        "tmp": "done",
        "workdir": "done",
        "database": "done",
        "network": "OSError: Network is unreachable",
        "secrets": [],
        "plain": "seen",
        "processes": True,
    }
    assert not Path("/tmp/private").exists()


@needs_bubblewrap
@pytest.mark.slow
def test_the_run_says_what_was_enforced(tmp_path: Path) -> None:
    home = write_project(
        tmp_path / "home",
        {
            "seatrial.yaml": f"""
                version: 1
                agent: {{command: [{sys.executable}, -S, agent.py], sandbox: bubblewrap}}
            """,
            "cases/smoke/a.yaml": "{id: a, query: hi, expected: {answer: hi}}",
        },
    )
    agent_of(home, 'say(type="answer", output=hear()["message"])')
    run = seatrial.run(project=home)
    assert run.exit_code == 0
    assert run.info.sandbox["by"] == "bubblewrap"
    assert "no network" in run.info.sandbox["enforced"]


def test_without_bubblewrap_the_run_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.enforced.cache_clear()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="needs Linux and the command bwrap"):
        agent_for(AgentSpec(command=(sys.executable,), sandbox="bubblewrap"))
    sandbox.enforced.cache_clear()


def test_a_bubblewrap_that_does_not_work_is_refused_with_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.enforced.cache_clear()
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n", encoding="utf-8")
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UsageError, match="does not work here: setting up uid map: Permission denied"):
        agent_for(AgentSpec(command=(sys.executable,), sandbox="bubblewrap"))
    sandbox.enforced.cache_clear()
