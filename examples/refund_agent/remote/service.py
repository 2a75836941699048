"""The refund desk as a service: `python remote/service.py PORT`, then `agent: "http://127.0.0.1:PORT/good"`.

The last part of the URL names the build. A conversation is served by one desk, on the trial's own database.
"""

from __future__ import annotations

import json
import sys
import threading
import urllib.request
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from desk import BUILDS, RemoteDesk

__all__ = ["main"]

_OBSERVES = ["tool_calls", "handoffs", "approvals", "model_calls", "usage"]


def _exchange(callback: str, **message: Any) -> dict[str, Any]:
    request = urllib.request.Request(callback, json.dumps(message).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        reply: dict[str, Any] = json.load(response)
    return reply


class Service(ThreadingHTTPServer):
    """Serves many conversations at once."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self._desks: dict[str, RemoteDesk] = {}
        self._lock = threading.Lock()

    def desk(self, build: str, asked: dict[str, Any]) -> RemoteDesk:
        """The desk of a conversation."""
        with self._lock:
            if asked["conversation"] not in self._desks:
                exchange = partial(_exchange, asked["trial"]["callback"])
                exchange(type="hello", observes=_OBSERVES)
                self._desks[asked["conversation"]] = RemoteDesk(build, asked["trial"], exchange)
            return self._desks[asked["conversation"]]


class Handler(BaseHTTPRequestHandler):
    """One turn a request."""

    server: Service

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        build = self.path.strip("/")
        if build not in BUILDS:
            self._send(404, {"error": f"there is no build {build!r}; builds: {', '.join(BUILDS)}"})
            return
        answer = self.server.desk(build, asked).answer(asked["message"])
        self._send(200, {"answer": answer.pop("output"), **answer})

    def _send(self, status: int, said: dict[str, Any]) -> None:
        content = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


def main(port: str = "0") -> None:
    with Service(int(port)) as service:
        print(service.server_address[1], flush=True)
        service.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
