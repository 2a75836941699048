"""Every offline example runs with the network blocked, and opens nothing but what the executor owns on loopback."""

from __future__ import annotations

import ipaddress
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFLINE = ["refund_agent", "data_question_function", "support_graph", "research_workflow"]

GUARD = """
import json, os, socket, sys

def guard(event, arguments):
    if event == "socket.connect" or event == "socket.sendto":
        where = arguments[1]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        where = [arguments[0], arguments[1] if len(arguments) > 1 else None]
    else:
        return
    if isinstance(where, (str, bytes)):  # a socket in the file system reaches no network
        return
    with open(os.environ["SOCKETS_LOG"], "a") as log:
        log.write(json.dumps([event, str(where[0]), where[1] if isinstance(where[1], int) else None]) + "\\n")
    if str(where[0]) not in ("127.0.0.1", "::1", "localhost"):
        raise OSError(f"blocked: {event} {where}")

sys.addaudithook(guard)
"""


def guarded(tmp_path: Path, *arguments: str, cwd: Path) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
    """A command with every Python process in it guarded; what it connected to or looked up."""
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    log = tmp_path / "sockets"
    path = os.pathsep.join([str(tmp_path / "guard"), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "SOCKETS_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def run_example(tmp_path: Path, example: str, *options: str) -> list[Any]:
    arguments = ("-m", "seatrial", "run", "-q", "--output", str(tmp_path / "run"), *options)
    done, connections = guarded(tmp_path, *arguments, cwd=EXAMPLES / example)
    assert done.returncode == (1 if example == "data_question_function" else 0), done.stdout + done.stderr
    return connections


@pytest.mark.parametrize("example", OFFLINE)
@pytest.mark.parametrize("isolation", ["thread", "process"])
def test_a_run_opens_no_connection_at_all(example: str, isolation: str, tmp_path: Path) -> None:
    assert run_example(tmp_path, example, "--isolation", isolation) == []


def test_on_a_local_cluster_only_loopback_is_used(tmp_path: Path) -> None:
    connections = run_example(tmp_path, "data_question_function", "--executor", "dask")
    assert connections, "the workers talk to their scheduler"
    assert [where for _, where, _ in connections if not is_loopback(where)] == []


def is_loopback(where: str) -> bool:
    return where == "localhost" or ipaddress.ip_address(where).is_loopback


def test_the_guard_sees_and_stops_a_connection(tmp_path: Path) -> None:
    program = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=5)"
    done, connections = guarded(tmp_path, "-c", program, cwd=tmp_path)
    assert done.returncode == 1
    assert "blocked" in done.stderr
    assert connections[-1][1] == "192.0.2.1"
