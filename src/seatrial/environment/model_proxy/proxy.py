"""The proxy: each request belongs to a trial, and is sent on and recorded, or answered from a cassette.

A recording run always asks the model; it replaces what was recorded of each of its attempts, once that has ended. A
replaying one has no way to the model at all: a request that was not recorded is status 400, which no client repeats,
and makes its trial invalid.
"""

from __future__ import annotations

import json
import secrets
import socket
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from seatrial.core.cassette import Part, RecordedRequest, RecordedResponse, Take
from seatrial.core.encoding import dumps
from seatrial.environment.loopback import Exchange, LoopbackServer
from seatrial.environment.model_proxy.address import Mode, ProxyAddress, TrialCalls
from seatrial.environment.model_proxy.content import (
    Mask,
    Masks,
    bytes_of,
    event_bytes,
    is_stream,
    kept_headers,
    recorded_response,
    request_of,
    told_length,
)
from seatrial.environment.model_proxy.takes import Library, OpenTake, Slot
from seatrial.environment.model_proxy.upstream import Incoming, sent
from seatrial.errors import StorageError

__all__ = ["ModelProxy"]

JSON = {"Content-Type": "application/json"}
_LOOK_S = 0.05
_OUTSIDE = "no trial is running: model calls outside trials are neither recorded nor replayed"


@dataclass(frozen=True)
class _Asked:
    """A request, read."""

    take: OpenTake
    upstream: str
    rest: str
    """Path and query below the upstream's address."""
    headers: Mapping[str, str]
    body: bytes
    mask: Mask
    request: RecordedRequest


class ModelProxy:
    """Records or replays the model calls of one run. It answers from the beginning, and refuses all before `open`."""

    def __init__(self, mode: Mode, upstreams: Mapping[str, str], variables: tuple[str, ...]) -> None:
        self.mode = mode
        self._http = LoopbackServer(self._respond)
        self._secret = secrets.token_urlsafe(9)
        self.address = ProxyAddress(f"{self._http.url}/{self._secret}", dict(upstreams), variables)
        self._library: Library | None = None
        self._masks: Masks | None = None
        self._open: dict[tuple[str, int, int, str], OpenTake] = {}
        self._counted: dict[tuple[str, int, str], int] = {}
        """Attempts at a trial so far that were not broken off: the position of the next one's recording."""
        self._lock = threading.RLock()
        self._http.start()

    def open(self, library: Library, masks: Masks) -> None:
        """The run begins."""
        self._library, self._masks = library, masks

    def close(self) -> None:
        """Answer no more."""
        for take in list(self._open.values()):
            take.over.set()
        self._http.close()

    # --- trials ----------------------------------------------------------------------------------------------------

    def _begin(self, library: Library, case_id: str, trial: int, attempt: int, part: Part) -> None:
        take = OpenTake(case_id, trial, attempt, part)
        with self._lock:
            position = self._counted.setdefault((case_id, trial, part), attempt - 1)
            self._open[case_id, trial, attempt, part] = take
        if self.mode == "replay":
            self._give_recording(library, take, position)

    def _give_recording(self, library: Library, take: OpenTake, position: int) -> None:
        try:
            cassette = library.read(take.case_id)
        except StorageError as error:
            take.fail(str(error))
            return
        takes = getattr(cassette.of(take.trial), take.part) if cassette.agent == library.agent else ()
        take.recorded = takes[position] if position < len(takes) else None

    def _finish(self, library: Library, keep: bool, **place: Any) -> TrialCalls:
        with self._lock:
            take = self._open.pop((place["case_id"], place["trial"], place["attempt"], place["part"]), None)
        if take is None:
            return TrialCalls()
        recorded = take.end()
        if keep:
            with self._lock:
                if self.mode == "record":
                    self._write(library, take, recorded)
                self._counted[take.case_id, take.trial, take.part] += 1
        return TrialCalls(take.replayed, len(recorded), take.problem)

    def _write(self, library: Library, take: OpenTake, recorded: Take) -> None:
        position = self._counted[take.case_id, take.trial, take.part]
        if take.part == "graders" and not recorded:
            return
        try:
            library.write(take.case_id, take.trial, take.part, position, recorded)
        except StorageError as error:
            take.fail(str(error))

    # --- requests ----------------------------------------------------------------------------------------------------

    def _respond(self, exchange: Exchange) -> None:
        body = exchange.read_body()
        parts = urlsplit(exchange.path).path.removeprefix("/").split("/")
        if parts[0] != self._secret or len(parts) < 2:
            _refuse(exchange, "this is no address of a run")
        elif self._library is None or self._masks is None:
            _refuse(exchange, _OUTSIDE)
        elif parts[1] in ("begin", "finish"):
            said = self._hear(parts[1], json.loads(body), self._library)
            exchange.answer(200, JSON, dumps(said).encode("utf-8"))
        else:
            self._asked(exchange, parts[1:], body, self._library, self._masks)

    def _hear(self, what: str, given: Mapping[str, Any], library: Library) -> dict[str, Any]:
        """What a trial says of itself."""
        if what == "finish":
            return asdict(self._finish(library, **given))
        self._begin(library, **given)
        return {}

    def _asked(self, exchange: Exchange, parts: list[str], body: bytes, library: Library, masks: Masks) -> None:
        shared = parts[0] == "any"
        take = self._only_one() if shared else self._take_of(parts)
        if isinstance(take, str):
            _refuse(exchange, take)
            return
        name, *below = (parts[1:] if shared else parts[5:]) or [""]
        headers = _named(dict(exchange.headers.items()))
        upstream, query = unquote(name), urlsplit(exchange.path).query
        if upstream not in self.address.upstreams:
            _refuse(exchange, f"there is no model named {upstream!r} here")
            return
        rest = self._below(upstream, "/".join(["", *below])) + (f"?{query}" if query else "")
        mask = masks.of(headers, rest)
        request = request_of(upstream, exchange.command, rest, headers, body, mask)
        asked = _Asked(take, upstream, rest, headers, body, mask, request)
        if self.mode == "replay":
            _replay(exchange, asked, library)
        else:
            self._record(exchange, asked)

    def _below(self, upstream: str, path: str) -> str:
        """The path without that of the upstream's own address."""
        return path.removeprefix(urlsplit(self.address.upstreams[upstream]).path.rstrip("/"))

    def _take_of(self, parts: list[str]) -> OpenTake | str:
        try:
            key = (unquote(parts[1]), int(parts[2]), int(parts[3]), parts[4])
        except (IndexError, ValueError):
            return "this is no address of a trial"
        with self._lock:
            return self._open.get(key, f"trial {key[0]}#{key[1]} is over: its model calls have ended")

    def _only_one(self) -> OpenTake | str:
        """The trial in flight, for a client that belongs to none; with several of them it is nobody's."""
        with self._lock:
            takes = list(self._open.values())
        if len(takes) == 1:
            return takes[0]
        if not takes:
            return _OUTSIDE
        said = (
            f"a request came to the address that all trials share while {len(takes)} were running, so whose it is "
            "cannot be told: make the client inside the trial (in the factory or the agent), give it "
            "environment.model_base_url, or run with --concurrency 1"
        )
        for take in takes:
            take.fail(said)
        return said

    # --- recording -------------------------------------------------------------------------------------------------

    def _record(self, exchange: Exchange, asked: _Asked) -> None:
        slot = asked.take.begin(asked.request)
        url = self.address.upstreams[asked.upstream].rstrip("/") + asked.rest
        try:
            with sent(exchange.command, url, asked.headers, asked.body) as incoming:
                _pass_on(exchange, asked, slot, incoming)
        except OSError as error:
            said = f"the model at {urlsplit(url).netloc.rpartition('@')[2]} cannot be reached: {_reason(error)}"
            if slot.response is None and not slot.answering:
                _say_unreachable(exchange, asked, slot, said)
        finally:
            asked.take.settle(slot, slot.response)


def _say_unreachable(exchange: Exchange, asked: _Asked, slot: Slot, said: str) -> None:
    data = _error(asked.mask(said), "upstream_unreachable")
    asked.take.settle(slot, recorded_response(502, _named(JSON), data, asked.mask, cut=False))
    exchange.answer(502, JSON, data)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _reason(error: OSError) -> str:
    reason = getattr(error, "reason", None) or error
    return str(getattr(reason, "strerror", None) or reason)


def _pass_on(exchange: Exchange, asked: _Asked, slot: Slot, incoming: Incoming) -> None:
    """Give the client what comes, and note it."""
    if incoming.headers.get("content-encoding", "identity") != "identity":
        raise ConnectionError(f"it answers in {incoming.headers['content-encoding']}, which was not asked for")
    method = exchange.command
    if is_stream(incoming.headers) and method != "HEAD":
        _pass_on_stream(exchange, asked, slot, incoming)
        return
    data = b"".join(incoming.pieces())
    if _has_left(exchange):
        exchange.hang_up()
        return
    status, headers, broken = incoming.status, incoming.headers, incoming.broken
    asked.take.settle(slot, recorded_response(status, headers, data, asked.mask, cut=broken, method=method))
    length = len(data) + 1 if broken else told_length(method, headers)
    exchange.answer(status, kept_headers(headers), data, length=length)
    if broken:
        exchange.hang_up()


def _pass_on_stream(exchange: Exchange, asked: _Asked, slot: Slot, incoming: Incoming) -> None:
    asked.take.answering(slot)
    got, whole = bytearray(), False
    try:
        exchange.begin_stream(incoming.status, kept_headers(incoming.headers))
        for piece in incoming.pieces():
            got += piece
            exchange.piece(piece)
        whole = not incoming.broken
    finally:
        response = recorded_response(incoming.status, incoming.headers, bytes(got), asked.mask, cut=not whole)
        asked.take.settle(slot, response)
    if whole:
        exchange.end_stream()
    else:
        exchange.hang_up()


def _has_left(exchange: Exchange) -> bool:
    """Whether the client has closed its connection."""
    connection = exchange.connection
    try:
        connection.setblocking(False)
        try:
            return not connection.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        finally:
            connection.setblocking(True)
    except OSError:
        return True


# --- replaying --------------------------------------------------------------------------------------------------------


def _replay(exchange: Exchange, asked: _Asked, library: Library) -> None:
    found = asked.take.problem or asked.take.answer_to(asked.request, library)
    if isinstance(found, str):
        _refuse(exchange, asked.take.fail(found))
    elif found.response is None:
        while not asked.take.over.wait(_LOOK_S) and not _has_left(exchange):
            pass
        exchange.hang_up()
    else:
        _say_again(exchange, found.response, asked.mask)


def _say_again(exchange: Exchange, response: RecordedResponse, mask: Mask) -> None:
    headers = {name: str(mask.unmask(value)) for name, value in kept_headers(response.headers).items()}
    if response.events is not None:
        exchange.begin_stream(response.status, headers)
        for event in response.events:
            exchange.piece(event_bytes({name: mask.unmask(value) for name, value in event.items()}))
        if not response.cut:
            exchange.end_stream()
    else:
        data = bytes_of(mask.unmask(response.body))
        length = len(data) + 1 if response.cut else told_length(exchange.command, response.headers)
        exchange.answer(response.status, headers, data, length=length)
    if response.cut:
        exchange.hang_up()


def _refuse(exchange: Exchange, why: str) -> None:
    """An error that no client repeats."""
    exchange.answer(400, {**JSON, "x-should-retry": "false"}, _error(f"cassettes: {why}", "cassette_miss"))


def _error(message: str, code: str) -> bytes:
    return dumps({"error": {"message": message, "type": code, "param": None, "code": code}}).encode("utf-8")
