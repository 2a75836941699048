"""HTTP servers that only this machine can reach: a thread a connection, ended with all of them.

For what stands between an agent and its model: tests' scripted models, and the recording of model calls.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["BadRequest", "Exchange", "LoopbackServer"]

_numbers = itertools.count(1)
LARGEST = 256 * 1024 * 1024
"""Bytes of a request."""
_PATIENCE_S = 1.0


_WITHOUT_BODY = (204, 304)
"""Statuses of answers that have no content."""
_REFUSED = {"Content-Type": "application/json", "Connection": "close", "x-should-retry": "false"}


class BadRequest(Exception):
    """A request that is none, in words without quotes; it is answered with status 400."""


def _number(text: str, base: int, what: str) -> int:
    digits = text.strip()
    if not digits.isascii() or not digits.isalnum():
        raise BadRequest(f"the {what} is no number")
    try:
        return int(digits, base)
    except ValueError:
        raise BadRequest(f"the {what} is no number") from None


class Exchange(BaseHTTPRequestHandler):
    """One request that can be answered whole or as a stream."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def read_body(self) -> bytes:
        """What the client sent. BadRequest when it does not say what belongs to it."""
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            return b"".join(self._chunks())
        return self._exactly(_number(self.headers.get("Content-Length") or "0", 10, "Content-Length"))

    def _chunks(self) -> Iterable[bytes]:
        left = LARGEST
        while size := _number(self.rfile.readline().split(b";")[0].decode("latin-1"), 16, "size of a chunk"):
            if size > left:
                raise BadRequest(f"the request is larger than {LARGEST:,} bytes")
            left -= size
            yield self._exactly(size)
            self.rfile.readline()
        while self.rfile.readline().strip():  # trailers
            pass

    def _exactly(self, size: int) -> bytes:
        if size > LARGEST:
            raise BadRequest(f"the request is larger than {LARGEST:,} bytes")
        data = self.rfile.read(size)
        if len(data) < size:
            raise BadRequest("the request broke off")
        return data

    def answer(self, status: int, headers: Mapping[str, str], body: bytes, *, length: int | None = None) -> None:
        """Send a whole answer. `length`: another than it has, for an answer that breaks off or one to HEAD."""
        self._head(status, headers)
        said = len(body) if length is None else length
        unknown = self.command == "HEAD" and not body and length is None
        if status not in _WITHOUT_BODY and not unknown:
            self.send_header("Content-Length", str(said))
        self.end_headers()
        if status not in _WITHOUT_BODY:
            self._send(body)

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)

    def _send(self, data: bytes) -> None:
        """HEAD is answered without any content."""
        if self.command != "HEAD":
            self.wfile.write(data)

    def begin_stream(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer in pieces; `piece` sends one, `end_stream` ends it as complete."""
        self._head(status, headers)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def piece(self, data: bytes) -> None:
        """One piece of a stream, at once."""
        if data:
            self._send(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self) -> None:
        """Say that nothing is missing."""
        self._send(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Close the connection without a word."""
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def version_string(self) -> str:
        """Nothing of this machine is told."""
        return "seatrial"

    def log_message(self, *_: Any) -> None:
        """Nothing is printed."""

    def __getattr__(self, name: str) -> Any:
        """`do_METHOD` is looked for by name: whatever the method is, the server's function decides."""
        if name.startswith("do_"):
            return self._respond
        raise AttributeError(name)

    def _respond(self) -> None:
        with contextlib.suppress(ConnectionError):  # the client has gone
            try:
                self.server.respond(self)
            except BadRequest as error:
                self.close_connection = True  # where its next request begins is unknown
                self.answer(400, _REFUSED, f'{{"error": {{"message": "{error}", "code": "bad_request"}}}}'.encode())


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = False

    def __init__(self, respond: Callable[[Exchange], None]) -> None:
        self.respond = respond
        self._open: dict[Any, threading.Thread] = {}
        self._lock = threading.Lock()
        super().__init__(("127.0.0.1", 0), Exchange)

    def server_bind(self) -> None:
        """Without looking up the machine's name, which may ask the network."""
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        name = f"seatrial-http-{next(_numbers)}"
        arguments = (request, client_address)
        thread = threading.Thread(target=self.process_request_thread, args=arguments, name=name, daemon=True)
        with self._lock:
            self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        with self._lock:
            self._open.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no error of ours."""

    def end(self) -> None:
        """Close every connection and wait for its thread, but not for long: it may wait for somebody else."""
        with self._lock:
            still_open = dict(self._open)
        for request in still_open:
            with contextlib.suppress(OSError):
                request.shutdown(socket.SHUT_RDWR)
        patience = time.monotonic() + _PATIENCE_S
        for thread in still_open.values():
            thread.join(timeout=max(patience - time.monotonic(), 0))


class LoopbackServer:
    """Answers HTTP requests on a free port of 127.0.0.1 in threads, from `start` to `close`.

    `respond` is called with each request, in its connection's thread. The port is bound from the beginning.
    """

    def __init__(self, respond: Callable[[Exchange], None]) -> None:
        self._server = _Server(respond)
        self._thread: threading.Thread | None = None
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        """Without a slash at its end."""

    def start(self) -> None:
        """Begin to answer."""
        serve = self._server.serve_forever
        self._thread = threading.Thread(target=serve, args=(0.02,), name="seatrial-http", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop answering, and close every connection."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()
        self._server.end()
