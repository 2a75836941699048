"""The server of scripted models: which script a request belongs to, and how its line goes out."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from seatrial.core.encoding import dumps
from seatrial.environment.loopback import Exchange, LoopbackServer
from seatrial.errors import did_you_mean
from seatrial.testing.model_server import chat, responses
from seatrial.testing.model_server.chat import CREATED
from seatrial.testing.model_server.script import CutOff, Held, HttpError, Line, NotJson, Reply, Request, Script, checked

__all__ = ["SCRIPT_HEADER", "ModelServer"]

SCRIPT_HEADER = "X-Script"
"""Names the script where neither path nor API key can."""
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-cache"}
_METHODS = {"/v1/models": ("GET", "HEAD"), "/v1/chat/completions": ("POST",), "/v1/responses": ("POST",)}
_KEYS = frozenset({"authorization", "api-key", "x-api-key", "cookie"})
Said = dict[str, Any]


class ModelServer:
    """OpenAI-compatible chat completions and responses on loopback, played from scripts. A context manager.

    A request belongs to the script of its key: the path before `/v1` (`url_of`), else the header `X-Script`, else its
    API key. Keys share no script. `otherwise`, if given, is a function that answers requests whose key has no script.
    """

    def __init__(self, otherwise: Callable[[Request], Line] | None = None) -> None:
        self._http = LoopbackServer(self._respond)
        self._otherwise = otherwise
        self._scripts: dict[str, Script] = {}
        self._requests: list[Request] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self.base_url = f"{self._http.url}/v1"
        """For clients whose API key names their script."""

    def __enter__(self) -> ModelServer:
        self._http.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Stop; what is held goes out no more."""
        self._closing.set()
        self._http.close()

    def script(self, key: str, lines: Sequence[Line] | Callable[[Request], Line]) -> str:
        """Give a key its script (again: a fresh one); returns the base URL of that script alone.

        Raises TypeError or ValueError for a line that no model can say. A function's mistake (it raises, or gives no
        line) is answered with status 400 and the code `script_error`, which no client repeats.
        """
        script = Script(lines)
        with self._lock:
            self._scripts[key] = script
        return self.url_of(key)

    def url_of(self, key: str) -> str:
        """A base URL whose requests belong to this key, whatever their API key."""
        return f"{self._http.url}/{quote(key, safe='')}/v1"

    @property
    def requests(self) -> tuple[Request, ...]:
        """Every request so far, in the order in which they came."""
        with self._lock:
            return tuple(self._requests)

    def requests_of(self, key: str) -> tuple[Request, ...]:
        """Those of one key."""
        return tuple(request for request in self.requests if request.key == key)

    def left(self, key: str) -> int:
        """Lines of this key's script that were not played. KeyError when it has none."""
        return self._scripts[key].left

    # --- a request -----------------------------------------------------------------------------------------------

    def _respond(self, exchange: Exchange) -> None:
        data = exchange.read_body()
        before, path = _place(exchange.path)
        allowed = _METHODS.get(path)
        if allowed is not None and exchange.command not in allowed:
            _refuse_method(exchange, path, allowed)
            return
        try:
            body = json.loads(data) if data else None
        except (ValueError, RecursionError):
            _fail(exchange, HttpError(400, "the request is no JSON", code="invalid_json"))
            return
        if path == "/v1/models":
            exchange.answer(200, JSON, dumps(self._models()).encode())
            return
        request, line = self._next(_key(exchange, before), path, body, exchange)
        self._play(exchange, request, line)

    def _models(self) -> Said:
        asked = [request.body.get("model") for request in self.requests if isinstance(request.body, Mapping)]
        names = sorted({"scripted", *(name for name in asked if name and isinstance(name, str))})
        model = {"object": "model", "created": CREATED, "owned_by": "seatrial"}
        return {"object": "list", "data": [{"id": name, **model} for name in names]}

    def _next(self, key: str, path: str, body: Any, exchange: Exchange) -> tuple[Request, Line]:
        headers = {name.lower(): value for name, value in exchange.headers.items() if name.lower() not in _KEYS}
        with self._lock:
            number = 1 + sum(request.key == key for request in self._requests)
            request = Request(key, path, body, headers, number)
            self._requests.append(request)
            script = self._scripts.get(key)
            wrong = _problem(request)
            if wrong is not None:
                return request, wrong
            if script is not None:
                return request, _said(script.next, request, _exhausted(key, script) if script.ends else None)
        if self._otherwise is not None:
            return request, _said(self._otherwise, request)
        hint = did_you_mean(key, list(self._scripts))
        said = f"there is no script for key {key!r}" + (f"; {hint}" if hint else "")
        return request, HttpError(400, said, code="no_script")

    def _play(self, exchange: Exchange, request: Request, line: Line) -> None:
        if isinstance(line, Held):
            _wait(line.until, self._closing)
            if self._closing.is_set():
                exchange.hang_up()
                return
            line = line.line
        if isinstance(line, HttpError):
            _fail(exchange, line)
        elif request.stream:
            _stream(exchange, request, line)
        else:
            _whole(exchange, request, line)


def _place(target: str) -> tuple[str, str]:
    """What stands before `/v1` in a path, and the rest with it; all of a path without it."""
    path = _path_of(target)
    before, found, after = path.partition("/v1/")
    return (before, f"/v1/{after.rstrip('/')}") if found else ("", path)


def _path_of(target: str) -> str:
    try:
        return urlsplit(target).path
    except ValueError:  # such as `//[`
        return target


def _said(ask: Callable[[Request], Line | None], request: Request, otherwise: Line | None = None) -> Line:
    """What a script says; its mistake is an error that no client repeats. `otherwise`: for when it says nothing."""
    try:
        line = ask(request)
        return otherwise if line is None and otherwise is not None else checked(line)
    except Exception as error:  # noqa: BLE001  # the test's own code, in a thread where nobody sees it
        where = f"the script of {request.key!r}, asked for request {request.number}"
        return HttpError(400, f"{where}: {type(error).__name__}: {error}", code="script_error")


def _key(exchange: Exchange, before: str) -> str:
    prefix = unquote(before.strip("/"))
    given = exchange.headers.get("Authorization") or ""
    return prefix or exchange.headers.get(SCRIPT_HEADER) or given.removeprefix("Bearer ").strip()


def _problem(request: Request) -> HttpError | None:
    """Why no model would answer this."""
    needed = {"/v1/chat/completions": "messages", "/v1/responses": "input"}.get(request.path)
    if needed is None:
        said = f"there is no {request.path} here; chat/completions, responses and models are"
        return HttpError(404, said, code="not_found")
    if not isinstance(request.body, Mapping) or needed not in request.body:
        return HttpError(400, f"missing required parameter: {needed!r}", code="missing_required_parameter")
    return None


def _exhausted(key: str, script: Script) -> HttpError:
    said = f"the script of {key!r} is exhausted: it has {script.length} lines, and this is one request more"
    return HttpError(400, said, code="script_exhausted")


def _wait(until: threading.Event, closing: threading.Event) -> None:
    while not until.wait(0.01) and not closing.is_set():
        pass


def _refuse_method(exchange: Exchange, path: str, allowed: Sequence[str]) -> None:
    said = f"there is no {exchange.command} of {path} here; it takes {' and '.join(allowed)}"
    _fail(exchange, HttpError(405, said, code="method_not_allowed"), {"Allow": ", ".join(allowed)})


def _fail(exchange: Exchange, line: HttpError, also: Mapping[str, str] | None = None) -> None:
    kinds = {429: "rate_limit_error", 401: "authentication_error"}
    kind = kinds.get(line.status, "server_error" if line.status >= 500 else "invalid_request_error")
    error = {"message": line.message, "type": kind, "param": None, "code": line.code}
    after = {} if line.retry_after is None else {"Retry-After": _seconds(line.retry_after)}
    exchange.answer(line.status, {**JSON, **(also or {}), **after}, dumps({"error": error}).encode())


def _seconds(value: float) -> str:
    return str(int(value)) if math.isfinite(value) and value == int(value) else str(value)


# --- how a line goes out -----------------------------------------------------------------------------------------


def _identifier(request: Request) -> str:
    key = "".join(c if c.isalnum() else "-" for c in request.key)
    return f"{key}-{request.number}"


def _whole(exchange: Exchange, request: Request, line: Reply | CutOff | NotJson) -> None:
    if isinstance(line, NotJson):
        exchange.answer(200, JSON, line.text.encode())
        return
    make = chat.completion if request.path.endswith("/chat/completions") else responses.response
    reply = line.reply if isinstance(line, CutOff) else line
    text = dumps(make(reply, request.body, _identifier(request), request.number)).encode()
    if isinstance(line, CutOff):
        exchange.answer(200, JSON, text[: len(text) // 2], length=len(text))
        exchange.hang_up()
    else:
        exchange.answer(200, JSON, text)


def _stream(exchange: Exchange, request: Request, line: Reply | CutOff | NotJson) -> None:
    exchange.begin_stream(200, EVENTS)
    if isinstance(line, NotJson):
        exchange.piece(f"data: {line.text}\n\n".encode())
    else:
        cut = line.after if isinstance(line, CutOff) else None
        for at, text in enumerate(_events(request, line.reply if isinstance(line, CutOff) else line)):
            if at == cut:
                exchange.hang_up()
                return
            exchange.piece(text.encode())
    exchange.end_stream()


def _events(request: Request, reply: Reply) -> Iterator[str]:
    given = (reply, request.body, _identifier(request), request.number)
    if request.path.endswith("/chat/completions"):
        for chunk in chat.chunks(*given):
            yield f"data: {dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"
    else:
        for event in responses.events(*given):
            yield f"event: {event['type']}\ndata: {dumps(event)}\n\n"
