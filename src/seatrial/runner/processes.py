"""Starting, following and ending the processes that trials run in (`seatrial.runner.trial_process`)."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import functools
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from seatrial.core.encoding import dumps
from seatrial.environment.log import Log
from seatrial.errors import UsageError
from seatrial.runner.threads import in_thread
from seatrial.runner.trial_process import LENGTH

__all__ = ["Launcher", "TrialProcess", "can_fork"]

_POLITE_S = 0.5
"""Between asking a process group to end and ending it."""
_CHUNK = 1 << 20


@functools.cache
def _surrogates_kept() -> str:
    """Name of the way to read lone surrogates as such, and what else is no UTF-8 as replacement characters."""

    def read(error: UnicodeError) -> tuple[str | bytes, int]:
        try:
            return codecs.lookup_error("surrogatepass")(error)
        except UnicodeError:
            return codecs.replace_errors(error)

    codecs.register_error("seatrial.surrogates_kept", read)
    return "seatrial.surrogates_kept"


class _Prints(asyncio.Protocol):
    """Keeps the beginning of what a process prints, and reads on."""

    def __init__(self) -> None:
        self.log = Log()
        self.ended = asyncio.get_running_loop().create_future()
        self._text = codecs.getincrementaldecoder("utf-8")(_surrogates_kept())

    def data_received(self, data: bytes) -> None:
        self.log.write(self._text.decode(data))

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


class _Messages(asyncio.Protocol):
    """Takes apart what a process tells; None stands at the end."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._data = bytearray()

    def data_received(self, data: bytes) -> None:
        self._data += data
        while len(self._data) >= LENGTH.size:
            end = LENGTH.size + LENGTH.unpack_from(self._data)[0]
            if len(self._data) < end:
                return
            self.queue.put_nowait(json.loads(self._data[LENGTH.size : end]))
            del self._data[:end]

    def connection_lost(self, exc: Exception | None) -> None:
        self.queue.put_nowait(None)


@dataclass(eq=False)
class TrialProcess:
    """One trial's process, seen from the harness."""

    pid: int
    status: asyncio.Future[int]
    """Exit code, or the negative number of the signal that ended it; resolves when it has ended."""
    messages: _Messages
    prints: _Prints
    write: Callable[[bytes], None]
    """Sends it bytes, without waiting."""
    transports: tuple[asyncio.BaseTransport, ...] = ()

    def __post_init__(self) -> None:
        self.status.add_done_callback(lambda _: self._hear_no_more())

    def _hear_no_more(self) -> None:
        """The end is the end, though a process that left the group may hold the pipe open."""
        asyncio.get_running_loop().call_later(_POLITE_S, self.messages.queue.put_nowait, None)

    @property
    def log(self) -> Log:
        """What it printed."""
        return self.prints.log

    async def told(self) -> AsyncIterator[dict[str, Any]]:
        """Its messages as they come, until it has ended and nothing is left to read."""
        while (message := await self.messages.queue.get()) is not None:
            yield message

    def answer(self, message: Mapping[str, Any]) -> None:
        """Tell it what it asked for."""
        self.write(_framed(dumps(message).encode("utf-8")))

    async def end(self) -> int:
        """End it with its whole process group, politely at first; gives its status. What it printed is read."""
        try:
            if not self.status.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait((self.status,), timeout=_POLITE_S)
            if not self.status.done():
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
            status = await asyncio.shield(self.status)
            await asyncio.wait((self.prints.ended,), timeout=_POLITE_S)
        finally:
            for transport in self.transports:
                transport.close()
        return status

    def _signal(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.pid, number) if hasattr(os, "killpg") else os.kill(self.pid, number)


def can_fork() -> bool:
    """Whether one process may load a project and fork others: not on macOS, whose libraries do not survive that."""
    return sys.platform == "linux"


@dataclass
class Launcher:
    """Starts a process a trial; a context manager that lasts as long as the run.

    Raises UsageError from `launch` when the project cannot be loaded in another process.
    """

    bench: str
    """`module:object`, called with the setup."""
    setup: Mapping[str, Any]
    fork: bool = field(default_factory=can_fork)
    _nursery: _Nursery | None = None

    def __enter__(self) -> Launcher:
        if self.fork:
            self._nursery = _Nursery(self._given(None))
        return self

    def __exit__(self, *_: object) -> None:
        if self._nursery is not None:
            self._nursery.close()

    async def launch(self, job: Mapping[str, Any]) -> TrialProcess:
        """A process that runs this job."""
        if self._nursery is not None and await self._nursery.ready():
            return await self._nursery.launch(job)
        return await _fresh(self._given(job))

    def _given(self, job: Mapping[str, Any] | None) -> bytes:
        return dumps({"bench": self.bench, "setup": dict(self.setup), "job": job}).encode("utf-8")


def _framed(data: bytes) -> bytes:
    return LENGTH.pack(len(data)) + data


def _command(call: str) -> list[str]:
    """A Python that imports what this one can import, and makes the call."""
    module = "seatrial.runner.trial_process"
    return [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}; import {module} as it; it.{call}"]


async def _fresh(given: bytes) -> TrialProcess:
    """A fresh interpreter for one trial."""
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *_command("single()"), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
    )
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise RuntimeError("a process was started without its pipes")
    messages, prints = _Messages(), _Prints()
    copying = [
        asyncio.ensure_future(_copy(process.stdout, messages)),
        asyncio.ensure_future(_copy(process.stderr, prints)),
    ]
    status = asyncio.ensure_future(_status(process, copying))
    with contextlib.suppress(ConnectionError):  # it may have died already: its status tells
        process.stdin.write(_framed(given))
        await process.stdin.drain()
    return TrialProcess(process.pid, status, messages, prints, process.stdin.write)


async def _status(process: asyncio.subprocess.Process, copying: Sequence[asyncio.Future[None]]) -> int:
    """How it ended; what it left in its process group is ended too."""
    status = await process.wait()
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    await asyncio.wait(copying, timeout=_POLITE_S)
    for copy in copying:
        copy.cancel()
    return status


async def _copy(stream: asyncio.StreamReader, protocol: asyncio.Protocol) -> None:
    while data := await stream.read(_CHUNK):
        protocol.data_received(data)
    protocol.connection_lost(None)


class _Nursery:
    """The process that has the project loaded and forks. Belongs to the loop that first asks for it."""

    def __init__(self, given: bytes) -> None:
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  this very interpreter
                _command(f"serve({theirs.fileno()})"),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        self._given = given
        self._loop: asyncio.AbstractEventLoop | None = None
        self._jobs: dict[int, asyncio.Future[tuple[int, asyncio.Future[int]]]] = {}
        self._status: dict[int, asyncio.Future[int]] = {}
        self._number = 0

    # --- its own messages ----------------------------------------------------------------------------------------

    async def ready(self) -> bool:
        """Whether it can fork; waits until it has loaded the project. Raises UsageError when it cannot."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._answer: asyncio.Future[dict[str, Any]] = self._loop.create_future()
            self._loop.add_reader(self._control.fileno(), self._hear)
            await in_thread(self._feed)
        answer = await asyncio.shield(self._answer)
        if "failed" in answer:
            raise UsageError(f"the project cannot be loaded in a process of its own: {answer['failed']}")
        return "ready" in answer

    def _feed(self) -> None:
        stdin: BinaryIO = self._process.stdin  # type: ignore[assignment]  # a pipe
        with contextlib.suppress(OSError), stdin:  # when it has died its silence tells
            stdin.write(self._given)

    def _hear(self) -> None:
        try:
            data = self._control.recv(65536, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._take(json.loads(data))
        else:
            self._take_end()

    def _take(self, message: dict[str, Any]) -> None:
        if "job" in message:
            pid = message["pid"]
            status = self._status[pid] = asyncio.get_running_loop().create_future()
            self._jobs.pop(message["job"]).set_result((pid, status))
        elif "status" in message:
            self._status.pop(message["pid"]).set_result(message["status"])
        elif not self._answer.done():
            self._answer.set_result(message)

    def _take_end(self) -> None:
        """It has ended, and nobody knows what became of its trials: as if each had been killed."""
        asyncio.get_running_loop().remove_reader(self._control.fileno())
        if not self._answer.done():
            self._answer.set_result({"failed": "it ended while it was loading"})
        for pid, status in self._status.items():
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
            status.set_result(-signal.SIGKILL)
        for waiting in self._jobs.values():
            waiting.set_exception(UsageError("the process that starts trials has ended"))
        self._status.clear()
        self._jobs.clear()

    # --- trials ----------------------------------------------------------------------------------------------------

    async def launch(self, job: Mapping[str, Any]) -> TrialProcess:
        """Fork a process for this job."""
        self._number += 1
        number, loop = self._number, asyncio.get_running_loop()
        begun = self._jobs[number] = loop.create_future()
        messages, theirs = socket.socketpair()
        prints, prints_in = os.pipe()
        try:
            order = dumps({"number": number, "job": dict(job)}).encode("utf-8")
            socket.send_fds(self._control, [order], [theirs.fileno(), prints_in])
        finally:
            theirs.close()
            os.close(prints_in)
        with contextlib.ExitStack() as opened:  # the run may be stopped before the process is anybody's
            heard, told = await loop.create_unix_connection(_Messages, sock=messages)
            opened.callback(heard.close)
            printed, log = await loop.connect_read_pipe(_Prints, _file(prints))
            opened.callback(printed.close)
            pid, status = await asyncio.shield(begun)
            opened.pop_all()
        return TrialProcess(pid, status, told, log, heard.write, (heard, printed))

    def close(self) -> None:
        """Let it go; it ends every trial that still runs."""
        self._control.close()
        self._feed_nothing()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _feed_nothing(self) -> None:
        if self._process.stdin is not None and not self._process.stdin.closed:
            with contextlib.suppress(OSError):
                self._process.stdin.close()


def _file(descriptor: int) -> BinaryIO:
    return open(descriptor, "rb", buffering=0)
