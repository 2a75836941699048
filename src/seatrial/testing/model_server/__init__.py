"""A model over HTTP that plays scripts, so that agents run with their real clients: offline, exact, on loopback.

    from seatrial.testing.model_server import Call, ModelServer, Reply

    with ModelServer() as server:
        server.script("trial-1", [Reply(calls=[Call("lookup_order", {"order_id": "O-100"})]), Reply("Delivered.")])
        client = OpenAI(base_url=server.base_url, api_key="trial-1")

The standard library alone; importing this loads no client and no framework.
"""

from __future__ import annotations

from seatrial.core.trace import Usage
from seatrial.testing.model_server.script import Call, CutOff, Held, HttpError, Line, NotJson, Reply, Request
from seatrial.testing.model_server.server import SCRIPT_HEADER, ModelServer

__all__ = [
    "SCRIPT_HEADER",
    "Call",
    "CutOff",
    "Held",
    "HttpError",
    "Line",
    "ModelServer",
    "NotJson",
    "Reply",
    "Request",
    "Usage",
]
