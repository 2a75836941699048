"""Programs for tests of the command adapter: a few lines of Python that speak its protocol."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

from seatrial.core.project import AgentSpec

__all__ = ["agent_of", "program"]

_PRELUDE = """
import json, os, sys, time

def say(**message):
    sys.stdout.write(json.dumps(message) + "\\n")
    sys.stdout.flush()

def hear():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def ask(**message):
    say(**message)
    return hear()

hello = hear()
"""


def program(folder: Path, body: str) -> Path:
    """A program with `say`, `hear`, `ask` and `hello`, which has been heard."""
    path = folder / "agent.py"
    path.write_text(_PRELUDE + textwrap.dedent(body), encoding="utf-8")
    return path


def agent_of(folder: Path, body: str, **settings: object) -> AgentSpec:
    """An agent that is such a program."""
    command = (sys.executable, "-S", str(program(folder, body)))
    return AgentSpec.model_validate({"command": command, **settings})
