"""What runs in a process of its own: one trial, which tells the harness of everything as it happens.

What holds for the whole run (rate limits, the limit for judges) the harness keeps: the trial asks, and gets an answer.

Two ways to come to such a process. Where it is possible (Linux), one process loads the project once and forks a
process a trial: a trial costs milliseconds. Elsewhere, or when the project left threads running that no fork would
carry over, each trial gets a fresh interpreter.

Whoever starts it gives a JSON object on standard input (a fresh interpreter gets it as a message, and answers follow):
`{"bench": "module:object", "setup": {...}, "job": {...} or null}`. The object is called with the setup and gives the
Bench, which holds the project. A job is `{"case_id", "trial_index", "attempt", "digest"}`.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import io
import json
import os
import signal
import socket
import struct
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, Protocol

from seatrial.core.encoding import dumps, to_json
from seatrial.core.model_json import json_of
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord
from seatrial.environment.cancelling import Hold
from seatrial.environment.pace import Kind
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import SeatrialError
from seatrial.registry import load_object
from seatrial.runner.asking import AskedPlaces, AskedRates
from seatrial.runner.trial import TrialAttempt, TrialSettings
from seatrial.runner.watchdog import until_done

__all__ = ["LENGTH", "Bench", "serve", "single"]

LENGTH = struct.Struct(">Q")
"""Stands before each message: its length in bytes."""
_MORE_PROCESSES = 4096
"""How many processes and threads the user may have beyond those there were: a fork bomb ends there."""


class Bench(Protocol):
    """A project ready for trials."""

    agent: Agent[TrialEnvironment]
    settings: TrialSettings

    def planned(self, case_id: str, digest: str) -> PlannedCase:
        """The case of this id. Raises UsageError when it is another one here."""

    def surroundings(self) -> AbstractContextManager[object]:
        """What must be in force while a trial runs."""


class _Wire:
    """Sends messages to the harness, whole, from any thread of this process (a fork of it stays silent)."""

    def __init__(self, descriptor: int, answers: int) -> None:
        self._file: BinaryIO = open(descriptor, "wb", buffering=0)  # noqa: SIM115  for the process's life
        self._answers = answers
        self._lock, self._asking = threading.Lock(), threading.Lock()
        self._pid = os.getpid()

    def ask(self, message: dict[str, Any]) -> dict[str, Any] | None:
        """What the harness answers, once it does; None in a fork, which would take answers from this process."""
        if os.getpid() != self._pid:
            return None
        with self._asking:
            self.send(message)
            return _message(self._answers)

    def send(self, message: dict[str, Any]) -> None:
        if os.getpid() != self._pid:
            return
        data = _text(message).encode("utf-8")
        left = memoryview(LENGTH.pack(len(data)) + data)
        with self._lock:
            while left:
                left = left[self._file.write(left) :]


def _message(descriptor: int) -> dict[str, Any]:
    """The next one that comes through it."""
    (length,) = LENGTH.unpack(_bytes(descriptor, LENGTH.size))
    message: dict[str, Any] = json.loads(_bytes(descriptor, length))
    return message


def _bytes(descriptor: int, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = os.read(descriptor, count - len(data))
        if not more:
            raise EOFError("the harness has ended")
        data += more
    return data


def _text(message: dict[str, Any]) -> str:
    try:
        return dumps(message)
    except (TypeError, ValueError):  # an adapter recorded what is no JSON; that is told when the trial ends
        return dumps(to_json(message))


def _run(bench: Bench, job: dict[str, Any], wire: _Wire) -> None:
    with bench.surroundings():
        planned = bench.planned(job["case_id"], job["digest"])
        settings = _asking(bench.settings, wire)
        attempt = TrialAttempt(bench.agent, planned, job["trial_index"], settings, job["attempt"])
        attempt.environment.recorder.on_change = lambda change: wire.send({"change": change})
        attempt.on_wait = lambda seconds: wire.send({"waits": float(seconds)})
        attempt.on_agent = lambda begins: wire.send({"agent": begins})
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        record, trace = until_done(loop, loop.create_task(attempt.run(), context=Hold().context()))
        wire.send(_result(record, trace))


def _asking(own: TrialSettings, wire: _Wire) -> TrialSettings:
    """The settings, with the limits that hold for the whole run left to the harness."""

    def seconds(kind: Kind, name: str) -> float | None:
        answer = wire.ask({"turn": [kind, name]})
        return None if answer is None else float(answer["seconds"])

    rates = None if own.rates is None else AskedRates(own.rates.spec, seconds)
    judges = own.judges
    if judges is not None:
        take, give_back = partial(wire.ask, {"judge": True}), partial(wire.send, {"judge": False})
        judges = AskedPlaces(judges.places, take, give_back)
    return replace(own, rates=rates, judges=judges)


def _result(record: TrialRecord, trace: Trace) -> dict[str, Any]:
    return {"record": json_of(record), "trace": json_of(trace)}


def _leave_after(work: Callable[[], None], wire: _Wire) -> NoReturn:
    """Do the work and end the process, whatever the agent left running in it."""
    code = 0
    try:
        work()
    except BaseException as error:  # noqa: BLE001  the process top: the harness is told, then it ends
        traceback.print_exc()
        with contextlib.suppress(OSError):
            wire.send({"failed": _words(error)})
        code = 70
    with contextlib.suppress(OSError, ValueError, AttributeError):  # the agent may have put anything in their place
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, SeatrialError) else f"{type(error).__name__}: {error}"


def _print_to(descriptor: int) -> None:
    """What this process and its children print goes to the descriptor, at once; there is nothing to read."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    for name, number in (("stdout", 1), ("stderr", 2)):
        raw = io.FileIO(number, "w", closefd=False)  # nothing is held back: what was printed outlives a crash
        setattr(sys, name, io.TextIOWrapper(raw, "utf-8", "surrogatepass", write_through=True))


# --- a fresh interpreter a trial -------------------------------------------------------------------------------------


def single() -> NoReturn:
    """The trial that standard input names. Messages go to standard output, prints to standard error."""
    given = _message(0)
    wire = _Wire(os.dup(1), os.dup(0))
    _print_to(2)
    _limit_damage(_processes_of_user())

    def work() -> None:
        _run(load_object(given["bench"])(given["setup"]), given["job"], wire)

    _leave_after(work, wire)


# --- one process that forks a process a trial ------------------------------------------------------------------------


def serve(descriptor: int) -> None:
    """Load the bench that standard input names, then fork a process for every job that comes through the socket.

    A job comes with two descriptors: for messages in both directions, and for prints. Answers are `{"ready": true}` (or
    `{"failed": text}`, `{"threads": [names]}` when it cannot fork safely), `{"job", "pid"}` and `{"pid", "status"}`:
    exit code or negative number of the signal. When the socket closes everything that was started here is ended.
    """
    _Nursery(socket.socket(fileno=descriptor)).serve(json.load(sys.stdin))


class _Nursery:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._living: set[int] = set()

    def serve(self, given: dict[str, Any]) -> None:
        try:
            self._bench: Bench = load_object(given["bench"])(given["setup"])
        except BaseException as error:  # noqa: BLE001  loading a project may raise anything; the harness tells it
            self._answer({"failed": _words(error)[:20_000]})
            return
        threads = [thread.name for thread in threading.enumerate() if thread is not threading.main_thread()]
        self._answer({"threads": threads[:20]} if threads else {"ready": True})
        if not threads:
            self._processes = _processes_of_user()
            _adopt_orphans()
            gc.freeze()  # what is shared with the trials' processes stays shared
            self._wait_for_jobs()

    def _answer(self, message: dict[str, Any]) -> None:
        with contextlib.suppress(OSError):  # the harness has gone; so will this process
            self._control.send(dumps(message).encode("utf-8"))

    def _wait_for_jobs(self) -> None:
        import selectors

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        woken, wake = socket.socketpair()
        woken.setblocking(False)
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno())
        with selectors.DefaultSelector() as selector:
            selector.register(self._control, selectors.EVENT_READ)
            selector.register(woken, selectors.EVENT_READ)
            while True:
                ready = {key.fileobj for key, _ in selector.select()}
                if woken in ready:
                    woken.recv(4096)
                    self._bury()
                if self._control in ready and not self._take_job():
                    break
        self._end_all()

    def _take_job(self) -> bool:
        try:
            data, descriptors, _, _ = socket.recv_fds(self._control, 65536, 2)
        except OSError:
            return False
        if not data:
            return False
        job = json.loads(data)
        pid = os.fork()
        if pid == 0:
            self._become_trial(job, *descriptors)
        self._living.add(pid)
        self._answer({"job": job["number"], "pid": pid})
        for descriptor in descriptors:
            os.close(descriptor)
        return True

    def _become_trial(self, job: dict[str, Any], messages: int, prints: int) -> NoReturn:
        os.setsid()
        _adopt_orphans()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        self._control.close()
        os.set_inheritable(messages, False)
        wire = _Wire(messages, messages)
        _print_to(prints)
        os.close(prints)
        _limit_damage(self._processes)
        _leave_after(lambda: _run(self._bench, job["job"], wire), wire)

    def _bury(self) -> None:
        """Tell of every trial that has ended, after all that it left was ended too.

        That is its process group, and what left the group: each trial adopts its own orphans, so that a process which
        comes to be a child of this one has outlived its trial.
        """
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            if ended.si_pid in self._living:  # not reaped yet, so the number is still its own
                _kill_group(ended.si_pid)
            os.waitpid(ended.si_pid, 0)
            if ended.si_pid in self._living:
                self._living.remove(ended.si_pid)
                self._end_outlived()
                status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
                self._answer({"pid": ended.si_pid, "status": status})

    def _end_all(self) -> None:
        """End every trial with all that it started."""
        for pid in self._living:
            _kill_group(pid)
        self._living.clear()
        self._end_outlived()

    def _end_outlived(self) -> None:
        """End the children that are no living trial, and theirs, which thereby become this process's."""
        while outlived := set(_children()) - self._living:
            for pid in outlived:
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            for pid in outlived:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, 0)


def _adopt_orphans() -> None:
    """Processes whose parent ends become children of this one rather than of the system's first."""
    import ctypes

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def _children() -> list[int]:
    with contextlib.suppress(OSError):
        return [int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text("ascii").split()]
    return []


def _kill_group(pid: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)


def _limit_damage(processes: int) -> None:
    """No core dumps; and no more processes of this user than these and some thousands (root is exempt from that)."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        _, hard = resource.getrlimit(resource.RLIMIT_NPROC)
        wanted = processes + _MORE_PROCESSES
        resource.setrlimit(resource.RLIMIT_NPROC, (wanted if hard < 0 else min(wanted, hard), hard))


def _processes_of_user() -> int:
    """Processes and threads that count against the user's limit, where the system tells them."""
    count, user = 0, os.getuid() if hasattr(os, "getuid") else 0
    with contextlib.suppress(OSError):
        for entry in os.scandir("/proc"):
            with contextlib.suppress(OSError):  # it may end while it is counted
                if entry.name.isdigit() and entry.stat().st_uid == user:
                    count += len(os.listdir(f"/proc/{entry.name}/task"))  # noqa: PTH208  names only
    return count
