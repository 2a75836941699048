"""Requests and answers as a cassette holds them: what is compared, what is left out, what is masked."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from seatrial.core.cassette import RecordedRequest, RecordedResponse
from seatrial.core.encoding import dumps, from_json, to_json
from seatrial.environment.model_proxy.credentials import credentials_in, is_secret_name
from seatrial.environment.secrets import Redactor

__all__ = [
    "Mask",
    "Masks",
    "bytes_of",
    "event_bytes",
    "is_stream",
    "kept_headers",
    "recorded_response",
    "request_of",
    "split",
]

_COMPARED = ("anthropic-version", "anthropic-beta", "openai-beta")
"""Headers of a request that change what the endpoint does. All others may differ from call to call."""
_ANSWERED = ("content-type", "retry-after", "retry-after-ms", "x-should-retry", "x-request-id", "request-id")
"""Headers of an answer that clients act on or show."""
_SAID = frozenset({"content", "delta", "arguments", "text", "refusal", "partial_json", "reasoning_content", "thinking"})
"""Keys whose texts go on from event to event."""
_PLACED = ("type", "index", "output_index", "content_index", "item_id")
"""Keys that say which of several texts an event goes on with."""
_MASKS_KEPT = 256


class Mask:
    """Masks one request's own credentials, beside what is known to be secret, and puts the values back."""

    def __init__(self, own: Redactor, known: Redactor) -> None:
        self._own, self._known = own, known

    def __call__(self, value: Any) -> Any:
        """The value with marks for what must not get out."""
        return self._own.value(self._known.value(value))

    def unmask(self, value: Any) -> Any:
        """Marks replaced by the request's own credentials, and by values that are known here."""
        return self._own.unmask(self._known.unmask(value))


class Masks:
    """The mask of each request: its credentials are `credential-1`, `credential-2` and so on."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._of: dict[tuple[str, ...], Mask] = {}

    def of(self, headers: Mapping[str, str], path: str = "") -> Mask:
        """The mask for a request with these headers (names in lower case) and this path, and for its answer."""
        given = credentials_in(headers, parse_qsl(path.partition("?")[2]))
        mask = self._of.get(given)
        if mask is None:
            own = {f"credential-{at}": value for at, value in enumerate(given, 1)}
            if len(self._of) >= _MASKS_KEPT:  # a client that signs each request anew
                self._of.clear()
            mask = self._of[given] = Mask(Redactor(own), self._redactor)
        return mask


def _read(data: bytes) -> Any:
    """JSON data where it is some, else text, else marked bytes."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return to_json(data)
    if not text:
        return None
    try:
        read = json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError):
        return {"$text": text}
    return {"$text": text} if read is None or _is_marked(read) else read


def _is_marked(read: Any) -> bool:
    """Whether data looks like text or bytes that were kept as such."""
    return isinstance(read, Mapping) and (set(read) == {"$text"} or read.get("$type") == "bytes")


def _finite(text: str) -> float:
    """A number that JSON can hold. ValueError for any other: its body is kept as text."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


def bytes_of(body: Any) -> bytes:
    """What `_read` read, as it is sent again."""
    if body is None:
        return b""
    if not _is_marked(body):
        return dumps(body).encode("utf-8")
    if "$text" in body:
        return str(body["$text"]).encode("utf-8", "surrogatepass")
    known = from_json(body)
    return known if isinstance(known, bytes) else dumps(body).encode("utf-8")


def request_of(
    upstream: str, method: str, path: str, headers: Mapping[str, str], body: bytes, mask: Callable[[Any], Any]
) -> RecordedRequest:
    """A request as it is compared. `path` is the one below the upstream, with its query."""
    place, _, query = path.partition("?")
    pairs = [(name, value) for name, value in parse_qsl(query, keep_blank_values=True) if not is_secret_name(name)]
    return RecordedRequest(
        upstream=upstream,
        method=method,
        path=mask(place + (f"?{urlencode(pairs)}" if pairs else "")),
        headers={name: mask(headers[name]) for name in _COMPARED if name in headers},
        body=mask(_read(body)),
    )


def is_stream(headers: Mapping[str, str]) -> bool:
    """Whether an answer is a stream of events."""
    return headers.get("content-type", "").lower().startswith("text/event-stream")


def kept_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers of an answer that are passed on and recorded."""
    return {name: headers[name] for name in _ANSWERED if name in headers}


def recorded_response(
    status: int, headers: Mapping[str, str], data: bytes, mask: Callable[[Any], Any], *, cut: bool
) -> RecordedResponse:
    """An answer as it is recorded."""
    kept = {name: mask(value) for name, value in kept_headers(headers).items()}
    if is_stream(headers):
        blocks, rest = split(data)
        events = [*(_event(block, b"\n\n") for block in blocks), *([_event(rest, b"")] if rest else [])]
        return RecordedResponse(status=status, headers=kept, events=tuple(_masked(events, mask)), cut=cut)
    return RecordedResponse(status=status, headers=kept, body=mask(_read(data)), cut=cut)


# --- streams ----------------------------------------------------------------------------------------------------------


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole events of a stream (without the empty line that ends each), and what comes after them."""
    *blocks, rest = data.replace(b"\r\n", b"\n").split(b"\n\n")
    return [block for block in blocks if block], rest


def _event(block: bytes, end: bytes) -> dict[str, Any]:
    """What is no more than an event and its data by these, else the text with its end."""
    text = block.decode("utf-8", "replace")
    fields: dict[str, Any] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if not colon or name not in ("event", "data") or name in fields:
            return {"text": text + end.decode()}
        fields[name] = value.removeprefix(" ")
    if "data" in fields:
        fields["data"] = _read(fields["data"].encode("utf-8"))
    return fields


def event_bytes(event: Mapping[str, Any]) -> bytes:
    """A recorded event as it is sent again."""
    if "text" in event:
        return str(event["text"]).encode("utf-8")
    lines = [f"event: {event['event']}".encode()] if "event" in event else []
    return b"\n".join([*lines, *([b"data: " + bytes_of(event["data"])] if "data" in event else [])]) + b"\n\n"


def _masked(events: Sequence[dict[str, Any]], mask: Callable[[Any], Any]) -> Iterator[dict[str, Any]]:
    """Events masked one by one, and where a secret stands across several, their text as a whole in the first."""
    spoken: dict[tuple[Any, ...], list[tuple[dict[str, Any], str]]] = {}
    for event in events:
        for key, holder, name in _texts(event.get("data"), ()):
            spoken.setdefault(key, []).append((holder, name))
    for places in spoken.values():
        _mask_across(places, mask)
    for event in events:
        yield mask(event)


def _mask_across(places: Sequence[tuple[dict[str, Any], str]], mask: Callable[[Any], Any]) -> None:
    whole = "".join(holder[name] for holder, name in places)
    masked = mask(whole)
    if masked == whole or masked == "".join(mask(holder[name]) for holder, name in places):
        return
    for holder, name in places:
        holder[name] = ""
    first, name = places[0]
    first[name] = masked


def _texts(data: Any, place: tuple[Any, ...]) -> Iterable[tuple[tuple[Any, ...], dict[str, Any], str]]:
    """The texts in an event that may go on in the next one: (which text, the mapping that holds it, its key)."""
    if isinstance(data, dict):
        here = (*place, *((name, data[name]) for name in _PLACED if isinstance(data.get(name), (str, int))))
        for name, value in data.items():
            if isinstance(value, str) and name in _SAID:
                yield (*here, name), data, name
            else:
                yield from _texts(value, (*here, name))
    elif isinstance(data, list):
        for item in data:
            yield from _texts(item, place)
