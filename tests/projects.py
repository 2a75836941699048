"""Small projects for tests, written to a folder, and the real command run on them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

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


@contextlib.contextmanager
def small_disk(folder: Path, size: str = "160k") -> Iterator[Path]:
    """A disk of its own at `folder`, where the system lets this user mount one; else the test is skipped."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    if os.name == "nt" or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small disk cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def killed_at(size: int, watched: Path, *arguments: str, cwd: Path) -> bool:
    """Run the command until `watched` has that many bytes (0: until it exists), then SIGKILL; False if it ended before.

    The process is forked from one that has loaded the package, and watches itself: hundreds of times as fast as a
    process of its own watched from here.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["seatrial.cli.run", "seatrial.report.terminal"])
    process = context.Process(target=_watched, args=(size, watched, arguments, cwd))
    process.start()
    process.join()
    return process.exitcode == -signal.SIGKILL


def _watched(size: int, watched: Path, arguments: tuple[str, ...], cwd: Path) -> None:
    def watch() -> None:
        while not watched.exists() or watched.stat().st_size < size:
            pass
        os.kill(os.getpid(), signal.SIGKILL)

    os.chdir(cwd)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    from seatrial.cli import main

    threading.Thread(target=watch, daemon=True).start()
    main(arguments)
