"""The address at which a service reaches its trial while it answers: one on loopback for each trial.

It takes what a command says on a line (`seatrial.agents.remote`), one message a POST, and answers with the reply: the
service has its tools answered, asks for approval and reports what it does as it does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from typing import Any

from seatrial.agents.http.client import ServiceError
from seatrial.agents.messages import read_json
from seatrial.agents.remote import RemoteEvents
from seatrial.core.encoding import dumps
from seatrial.environment.failure import TrialOver
from seatrial.environment.recorder import StepLimitReached
from seatrial.environment.spending import CostLimitReached
from seatrial.environment.trial import TrialEnvironment

__all__ = ["Callback"]

_LONGEST = 16 * 1024 * 1024
"""Bytes of one message that are read."""
_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 409: "Conflict", 411: "Length Required"}


class Callback:
    """One trial's address. Belongs to the loop that runs the trial."""

    def __init__(self, trial: TrialEnvironment) -> None:
        self._events = RemoteEvents(trial, self._reply)
        self._path = f"/{secrets.token_urlsafe(16)}"
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._server: asyncio.Server | None = None
        self._serving: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._closed = False
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Carries why the trial has to end, as soon as a message says so."""

    async def open(self) -> str:
        """Listen on loopback; gives the address."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", 0, limit=_LONGEST)
        host, port = self._server.sockets[0].getsockname()[:2]
        return f"http://{host}:{port}{self._path}"

    async def close(self) -> None:
        """Listen no more; whoever still waits for a reply is cut off."""
        self._events.close()
        for waiting in self._waiting.values():
            waiting.cancel()
        self._closed = True
        if self._server is not None:
            await _accept_no_more(self._server)
        for serving, writer in self._serving.items():
            writer.transport.abort()
            serving.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        if not self.failed.cancel():
            self.failed.exception()  # has been looked at: it may have come too late to matter

    def _reply(self, message: dict[str, Any]) -> None:
        waiting = self._waiting.pop(message["id"], None)
        if waiting is not None and not waiting.done():
            waiting.set_result(message)

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection; one that came too late is dropped."""
        if self._closed:
            writer.transport.abort()
            return
        serving = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving[serving] = writer
        serving.add_done_callback(self._serving.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request, then the connection ends."""
        try:
            status, reply = await self._answered(reader)
            body = dumps(reply).encode("utf-8")
            head = f"HTTP/1.1 {status} {_REASONS[status]}\r\nContent-Type: application/json\r\nConnection: close\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body)
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError):
            return  # the service has gone, or the trial is over: nobody reads a reply
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _answered(self, reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        path = head[0].split(" ")[1:2]
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        length = headers.get("content-length", "")
        if path != [self._path]:
            return 404, {"error": "this address is of no running trial"}
        if not length.isdecimal() or int(length) > _LONGEST:
            return 411, {"error": f"send a Content-Length of at most {_LONGEST}"}
        return await self._taken(await reader.readexactly(int(length)))

    async def _taken(self, body: bytes) -> tuple[int, dict[str, Any]]:
        waiting: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        try:
            message = read_json(body)
            key = message.get("id") if isinstance(message, dict) else None
            if isinstance(key, str):
                self._waiting[key] = waiting
            if self._events.take(message):
                return 200, await waiting
        except ValueError as error:  # no JSON, or no message
            self._fail(ServiceError(f"the service told the trial something unreadable: {error}"))
            return 400, {"error": str(error)}
        except (StepLimitReached, CostLimitReached, TrialOver) as error:
            self._fail(error)
            return 409, {"error": str(error)}
        return 200, {}

    def _fail(self, error: BaseException) -> None:
        if not self.failed.done():
            self.failed.set_exception(error)


async def _accept_no_more(server: asyncio.Server) -> None:
    """Close a server. A connection that is being accepted while that happens would be left open (CPython 3.11), so
    accepting ends first."""
    with contextlib.suppress(NotImplementedError):  # Windows accepts in another way
        for listening in server.sockets:
            asyncio.get_running_loop().remove_reader(listening.fileno())
    for _ in range(2):
        await asyncio.sleep(0)
    server.close()
