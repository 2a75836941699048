"""A program that is run for one trial: started in a process group of its own, heard line by line, and always ended.

What it prints to standard error is printed here, where it belongs to the trial's log.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

__all__ = ["CommandError", "Program"]

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of one line that are read."""
_TAIL = 2_000
"""Characters of standard error that an error message shows."""
_GOODBYE_S = 1.0
"""How long a program may take to end once its input has ended."""
_POLITE_S = 0.5
"""Between asking the process group to end and ending it."""
_PASSES = 3
"""Passes of the event loop in which what lies in a pipe gets here."""
_CHUNK = 1 << 16


class CommandError(Exception):
    """The program did not do what a trial needs: it could not be started, broke off, or said something unreadable."""


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """Streams of a process, and its end: `Process.wait` waits for the pipes too, which its children may hold."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=LONGEST_LINE, loop=loop)
        self.ended: asyncio.Future[None] = loop.create_future()

    def process_exited(self) -> None:
        self.ended.set_result(None)
        super().process_exited()


class Program:
    """One running program. Belongs to the loop that started it."""

    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        loop = asyncio.get_running_loop()
        process = asyncio.subprocess.Process(transport, streams, loop)
        if process.stdin is None or process.stdout is None or process.stderr is None:
            raise RuntimeError("a process was started without its pipes")
        self._transport = transport
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout
        self._tail = ""
        self._heard = loop.create_task(self._copy(process.stderr))
        self._ended = loop.create_task(self._until_end(streams.ended))
        self._rest: asyncio.Task[None] | None = None
        self.lines = 0
        """Lines read so far."""

    @classmethod
    async def start(cls, command: Sequence[str], *, folder: Path, environment: Mapping[str, str]) -> Program:
        """Start it in `folder`. CommandError when that cannot be done."""
        pipe, loop = asyncio.subprocess.PIPE, asyncio.get_running_loop()
        try:
            transport, streams = await loop.subprocess_exec(
                lambda: _Streams(loop),
                *command,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                cwd=folder,
                env=dict(environment),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"cannot start {command[0]!r}: {error}") from error
        return cls(transport, streams)

    async def _until_end(self, ended: asyncio.Future[None]) -> None:
        """What it leaves in its process group ends with it, and lets go of its pipes."""
        await ended
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))

    async def _copy(self, stream: asyncio.StreamReader) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while data := await stream.read(_CHUNK):
            text = decoder.decode(data)
            self._tail = (self._tail + text)[-_TAIL:]
            sys.stderr.write(text)

    def write(self, line: str) -> None:
        """Give it a line. One that no longer reads is noticed by its end."""
        if not self._stdin.is_closing():
            self._stdin.write(line.encode("utf-8", "surrogatepass") + b"\n")

    async def read(self) -> bytes | None:
        """Its next line without the line's end; None when there are no more. CommandError for one that is too long."""
        line = await self._next()
        if not line:
            return None
        self.lines += 1
        return line.rstrip(b"\r\n")

    async def read_said(self) -> bytes | None:
        """The same of what it has said already: None instead of waiting for more."""
        reading = asyncio.ensure_future(self._stdout.readuntil(b"\n"))
        for _ in range(_PASSES):
            await asyncio.sleep(0)
        if not reading.done():
            reading.cancel()
            return None
        error = reading.exception()
        line = error.partial if isinstance(error, asyncio.IncompleteReadError) else b"" if error else reading.result()
        self.lines += bool(line)
        return line.rstrip(b"\r\n") if line else None

    async def _next(self) -> bytes:
        reading = asyncio.ensure_future(self._stdout.readuntil(b"\n"))
        try:
            await asyncio.wait((reading, self._ended), return_when=asyncio.FIRST_COMPLETED)
            return await asyncio.wait_for(reading, _POLITE_S)
        except asyncio.IncompleteReadError as error:
            return error.partial
        except TimeoutError:  # it has ended, and a process that left its group holds the pipe open
            return b""
        except asyncio.LimitOverrunError as error:
            size = LONGEST_LINE // 2**20
            raise CommandError(f"line {self.lines + 1} of its standard output is longer than {size} MiB") from error
        finally:
            reading.cancel()

    async def ending(self) -> str:
        """How it ended, in words, with the tail of its standard error; ends it where it only stopped talking."""
        if not await self._ends_by_itself():
            await self.kill()
            return f"closed its standard output without an answer{self._told()}"
        await asyncio.wait((self._heard,), timeout=_POLITE_S)
        return _how(self._process.returncode) + self._told()

    async def _ends_by_itself(self) -> bool:
        await asyncio.wait((self._ended,), timeout=_GOODBYE_S)
        return self._ended.done()

    def _told(self) -> str:
        tail = self._tail.strip()
        return f"; its standard error ends:\n{tail}" if tail else ""

    async def dismiss(self, hear: Callable[[bytes], None]) -> None:
        """End its input and let it end by itself; what does not is killed. `hear` gets the lines that it still says.

        Raises what `hear` raises, else CommandError when it ends by itself with an exit code that is not 0.
        """
        self._stdin.close()
        self._rest = asyncio.get_running_loop().create_task(self._hear_out(hear))
        by_itself = False
        try:
            by_itself = await self._ends_by_itself()
        finally:  # also where the waiting itself is cancelled
            await self.kill()
        if self._rest.done() and not self._rest.cancelled():
            self._rest.result()
        if by_itself and self._process.returncode:
            raise CommandError(f"the command {_how(self._process.returncode)}{self._told()}")

    async def _hear_out(self, hear: Callable[[bytes], None]) -> None:
        while (line := await self.read()) is not None:
            hear(line)

    async def kill(self) -> None:
        """End whatever is left of its process group, politely at first, and hear the last of it."""
        try:
            if not self._ended.done():
                self._signal(signal.SIGTERM)
                await asyncio.wait((self._ended,), timeout=_POLITE_S)
        finally:  # also where the waiting itself is cancelled
            if not self._ended.done():
                self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        await self._ended
        streams = [self._heard, *([] if self._rest is None else [self._rest])]
        await asyncio.wait(streams, timeout=_POLITE_S)
        for stream in streams:
            stream.cancel()
        self._transport.close()

    def _signal(self, number: int) -> None:
        """To the whole group."""
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, number)
            else:
                self._process.send_signal(number)


def _how(code: int | None) -> str:
    if code is not None and code < 0:
        try:
            return f"was ended by signal {signal.Signals(-code).name}"
        except ValueError:
            return f"was ended by signal {-code}"
    return f"ended with exit code {code}"
