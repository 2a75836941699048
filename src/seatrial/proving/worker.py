"""The process behind `bench`: reads one request, then one job a line, and runs each job in a process of its own.

The project's cases are read once and nothing of its code is imported here, so that a fork is as good as a fresh process
and costs a hundredth of one; frameworks that its jobs import are imported here, too, once they are known. Where there
is no fork, the process ends after its first job and the bench starts another. The agent's own output goes nowhere; what
happened is written to the job's file, a line each, so that a crash loses nothing that came before it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import json
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from seatrial.errors import SeatrialError
from seatrial.harness.plan import plan
from seatrial.harness.request import Request
from seatrial.harness.selecting import Selected, selected
from seatrial.harness.worker import request_of
from seatrial.proving.arrangement import Arrangement, play
from seatrial.proving.census import NOT_PROJECT

__all__ = ["main"]

Job = Mapping[str, Any]
"""`{cases, concurrency, suspects, out, copy, limit_s}`: the file to write to, the folder for a copy or null."""


def main() -> None:
    """Serve until standard input ends."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    jobs = os.fdopen(os.dup(0), encoding="utf-8")
    _silence()
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    given = json.loads(jobs.readline())
    sys.path[:] = given["path"]
    request = request_of(given["request"])
    found = selected(request)
    for line in jobs:
        job = json.loads(line)
        status = _forked(job, request, found) if hasattr(os, "fork") else _here(job, request, found)
        _preload(Path(job["out"]))
        print(json.dumps({"exit": status}), file=replies, flush=True)
        if not hasattr(os, "fork"):
            return


def _silence() -> None:
    """Agents neither read what is meant for this process nor write over its replies."""
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)


def _forked(job: Job, request: Request, found: Selected) -> int:
    """The job's exit code; negative: ended by that signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setsid()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            status = _here(job, request, found)
        finally:
            os._exit(status)
    try:
        return _ended(child, job["limit_s"])
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what the agent started and left, or (interrupted) the job itself


_FRAMEWORKS = ("anthropic", "httpx", "langchain", "langchain_core", "langgraph", "llama_index", "numpy", "openai")
"""Installed packages that take long to import, and have no state after it but what `_reseeded` renews."""


def _frameworks() -> list[str]:
    """What the job's process has loaded of them; nothing when an import started a thread, which no fork would copy."""
    if threading.active_count() > 1:
        return []
    return [name for name in sys.modules if name.partition(".")[0] in _FRAMEWORKS]


def _preload(out: Path) -> None:
    with contextlib.suppress(OSError):
        first = out.read_text(encoding="utf-8").partition("\n")[0]
        for name in json.loads(first or "{}").get("loaded", ()):
            with contextlib.suppress(ImportError):
                importlib.import_module(name)


def _reseeded() -> None:
    """Python renews its own generator of random numbers in a fork, numpy does not."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()


def _ended(child: int, limit_s: float) -> int:
    """Wait for the child, at most so long."""
    until, pause = time.monotonic() + limit_s, 0.001
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > until:
            os.kill(child, signal.SIGKILL)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def _here(job: Job, request: Request, found: Selected) -> int:
    with Path(job["out"]).open("w", encoding="utf-8") as out:
        try:
            _run(job, request, found, out)
        except SeatrialError as error:
            _tell(out, {"error": str(error)})
            return 2
        except BaseException as error:  # noqa: BLE001  the process top: the bench must hear of it
            _tell(out, {"error": f"{type(error).__name__}: {error}"})
            return 70
    return 0


def _run(job: Job, request: Request, found: Selected, out: TextIO) -> None:
    wanted = set(job["cases"])
    found = dataclasses.replace(found, cases=tuple(case for case in found.cases if case.id in wanted))
    if job["copy"] is not None:
        found = _in_copy(found, Path(job["copy"]))
    arrangement = Arrangement(tuple(job["cases"]), job["concurrency"], job["suspects"])
    _reseeded()
    planned = plan(request, found)
    _tell(out, {"loaded": _frameworks()})
    play(planned, arrangement, lambda data: _tell(out, data))


def _in_copy(found: Selected, folder: Path) -> Selected:
    """The same in a copy of the project, with this process's working folder moved along."""
    root = Path(found.project.root)
    copy = folder / root.name
    shutil.copytree(root, copy, symlinks=True, ignore=shutil.ignore_patterns(*NOT_PROJECT))
    here = Path.cwd()
    if here.is_relative_to(root):
        there = copy / here.relative_to(root)
        os.chdir(there if there.is_dir() else copy)
    return dataclasses.replace(found, project=found.project.model_copy(update={"root": str(copy)}))


def _tell(out: TextIO, data: Mapping[str, Any]) -> None:
    out.write(json.dumps(data) + "\n")
    out.flush()


if __name__ == "__main__":
    main()
