"""Runs arrangements of cases, each in a fresh process and in a fresh copy of the project."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from seatrial.core.case import Case
from seatrial.errors import ExitCode, UsageError
from seatrial.harness.request import Request
from seatrial.proving.arrangement import Arrangement
from seatrial.proving.census import NOT_PROJECT
from seatrial.verdict.isolation import Change, Seen

__all__ = ["Bench", "Played", "copyable"]

_MOST_FILES, _MOST_BYTES = 5_000, 200_000_000
_SPARE_S = 60.0
"""Beside the trials' own limits: imports, copies, cleaning up."""


@dataclass(frozen=True)
class Played:
    """What became of one arrangement."""

    trials: tuple[Seen | None, ...]
    """By position; None: not reached."""
    changes: tuple[Change, ...] = ()
    """What had changed before the last one ran, where that was asked for."""


def copyable(root: Path) -> bool:
    """Whether the project is small enough to be copied for every order."""
    size = 0
    for number, file in enumerate(_project_files(root), start=1):
        size += file.lstat().st_size
        if number > _MOST_FILES or size > _MOST_BYTES:
            return False
    return True


def _project_files(root: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in NOT_PROJECT]
        yield from (Path(parent, name) for name in names)


class Bench:
    """A context manager around a worker process and a temporary folder; counts what it runs.

    `limits` is what each case's trial may take, in seconds; a process that takes much longer is ended.
    """

    def __init__(self, request: Request, cases: Sequence[Case], *, in_place: bool) -> None:
        self.trials = 0
        self.processes = 0
        self._request = request
        self._limits = {case.id: _most_s(case, request.timeout_s or 0) for case in cases}
        self._in_place = in_place
        self._folder = Path(tempfile.mkdtemp(prefix="seatrial-isolate-"))
        self._worker: subprocess.Popen[str] | None = None

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, arrangement: Arrangement) -> Played:
        """Run one arrangement. Raises UsageError when the project does not load there."""
        self.processes += 1
        self.trials += len(arrangement.cases)
        home = Path(tempfile.mkdtemp(dir=self._folder))
        try:
            status = self._done(self._job(arrangement, home))
            return _played(arrangement, status, home / "out.jsonl")
        finally:
            shutil.rmtree(home, ignore_errors=True)

    def _job(self, arrangement: Arrangement, home: Path) -> dict[str, Any]:
        limit = sum(self._limits[name] for name in arrangement.cases) + _SPARE_S
        copy = None if self._in_place else str(home)
        out = str(home / "out.jsonl")
        return {**vars(arrangement), "copy": copy, "out": out, "limit_s": limit}

    def _done(self, job: dict[str, Any]) -> int:
        """Have the worker do the job; gives its exit code."""
        worker = self._started()
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("the worker has no pipes")
        with contextlib.suppress(BrokenPipeError):
            worker.stdin.write(json.dumps(job) + "\n")
            worker.stdin.flush()
        reply = worker.stdout.readline()
        if not reply:
            self._stop()
            raise UsageError(f"the process that runs the trials ended: {self._last_words()}")
        if not hasattr(os, "fork"):
            self._stop()
        return int(json.loads(reply)["exit"])

    def _started(self) -> subprocess.Popen[str]:
        if self._worker is None:
            with (self._folder / "errors.txt").open("w") as errors:
                self._worker = subprocess.Popen(
                    [sys.executable, "-m", "seatrial.proving.worker"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    text=True,
                    encoding="utf-8",
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,  # an interruption is ours to pass on
                )
            self._tell_request(self._worker)
        return self._worker

    def _tell_request(self, worker: subprocess.Popen[str]) -> None:
        request = {**vars(self._request), "ids": None}
        request = {name: str(value) if isinstance(value, Path) else value for name, value in request.items()}
        if worker.stdin is not None:
            worker.stdin.write(json.dumps({"path": sys.path, "request": request}) + "\n")

    def _stop(self) -> None:
        worker, self._worker = self._worker, None
        if worker is None:
            return
        with contextlib.suppress(OSError):
            if worker.stdin is not None:
                worker.stdin.close()
        worker.terminate()  # it ends its own job first
        try:
            worker.wait(timeout=5)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        if worker.stdout is not None:
            worker.stdout.close()

    def _last_words(self) -> str:
        text = (self._folder / "errors.txt").read_text(encoding="utf-8", errors="replace").strip()
        return text.splitlines()[-1] if text else "without a word"


def _most_s(case: Case, asked_s: float) -> float:
    """What one trial of the case may take with all its attempts, in seconds."""
    return max(case.limits.timeout_s, asked_s) * case.retries.attempts


def _played(arrangement: Arrangement, status: int, out: Path) -> Played:
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()] if out.exists() else []
    problem = next((line["error"] for line in lines if "error" in line), None)
    if problem is not None:
        raise UsageError(problem) if status == ExitCode.USAGE else RuntimeError(problem)
    trials: list[Seen | None] = [None] * len(arrangement.cases)
    for position, line in _placed(arrangement, [line for line in lines if "case" in line]):
        trials[position] = Seen(line["features"], line["reason"])
    if status != 0:
        _note_crash(trials, status, together=arrangement.concurrency > 1)
    changes = [Change(**change) for line in lines for change in line.get("changes", ())]
    return Played(tuple(trials), tuple(changes))


def _note_crash(trials: list[Seen | None], status: int, *, together: bool) -> None:
    """The process ended before its time: in the trial that ran, or (side by side) in one of those not ended."""
    ended = f"the process ended with exit code {status}" if status > 0 else f"signal {-status} ended the process"
    unfinished = [position for position, seen in enumerate(trials) if seen is None]
    for position in unfinished if together else unfinished[:1]:
        trials[position] = Seen({"status": "crashed"}, ended)


def _placed(arrangement: Arrangement, lines: Sequence[Any]) -> Iterator[tuple[int, Any]]:
    """Each trial with its position; side by side they end in any order, and none stands there twice."""
    if arrangement.concurrency == 1:
        yield from enumerate(lines)
    else:
        yield from ((arrangement.cases.index(line["case"]), line) for line in lines)
