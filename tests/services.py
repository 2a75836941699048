"""Small services for tests of the http adapter: real HTTP on loopback, one function a request."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

__all__ = ["Asked", "Reply", "serving", "tell"]


@dataclass(frozen=True)
class Asked:
    """One request."""

    body: Any
    headers: dict[str, str]
    path: str = "/"


@dataclass(frozen=True)
class Reply:
    """An answer that is not just JSON with status 200."""

    content: bytes | str
    status: int = 200
    headers: dict[str, str] = field(default_factory=lambda: {"Content-Type": "application/json"})

    @classmethod
    def stream(cls, *events: Any, end: str = "data: [DONE]\n\n") -> Reply:
        """Server-sent events."""
        text = "".join(f"event: part\ndata: {json.dumps(event)}\n\n" for event in events) + end
        return cls(f": hello\n\n{text}", headers={"Content-Type": "text/event-stream; charset=utf-8"})


@contextmanager
def serving(answer: Callable[[Asked], Any], path: str = "/ask") -> Iterator[str]:
    """The URL of a service that answers POSTs by `answer(asked)`: JSON data, or a Reply."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            given = answer(Asked(json.loads(content), headers, self.path))
            reply = given if isinstance(given, Reply) else Reply(json.dumps(given))
            body = reply.content if isinstance(reply.content, bytes) else reply.content.encode()
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: a test's output is for its failures."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 64

        def handle_error(self, *_: Any) -> None:
            """A client that has gone is no matter."""

    server = Server(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}{path}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def tell(callback: str, **message: Any) -> Any:
    """Say a message to a trial's callback, as a service does; gives the reply."""
    request = urllib.request.Request(callback, json.dumps(message).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=20) as response:
        return json.loads(response.read())
