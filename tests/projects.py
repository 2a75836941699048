"""Small projects for tests, written to a folder, and the real command run on them."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

AGENT = """
import asyncio


def answer(task):
    message = task if isinstance(task, str) else task["message"]
    if message == "raise":
        raise RuntimeError("token expired")
    return f"you said {message}"


async def later(task):
    await asyncio.sleep(3600)
"""


def write_project(folder: Path, files: dict[str, str]) -> Path:
    """A project with an agent that answers `you said MESSAGE`; `files` adds to it or replaces its files."""
    defaults = {"seatrial.yaml": "version: 1\nagent: my_agent:answer\n", "my_agent.py": AGENT}
    for name, text in (defaults | files).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
    return folder


def case(identifier: str, message: str = "hello", answer: str = "hello", **more: str) -> str:
    """A case file that expects `answer` in the reply."""
    lines = [f"id: {identifier}", f"input: {message}", f"expected: {{answer: {answer}}}"]
    return "\n".join(lines + [f"{key}: {value}" for key, value in more.items()]) + "\n"


def seatrial(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The real command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "seatrial", *arguments],
        cwd=cwd,
        env={**os.environ, "NO_COLOR": "1", "PYTHONUTF8": "1", **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
