"""Requests and answers as a cassette holds them: what is compared, what is left out, what is masked.

JSON is kept as data where writing that gives the very bytes that came. A request is data in any case, since it is
compared by its meaning; any other answer is kept as its text.
"""

from __future__ import annotations

import json
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlencode

from seatrial.core.cassette import RecordedRequest, RecordedResponse
from seatrial.core.encoding import dumps, from_json, to_json
from seatrial.environment.model_proxy.credentials import credentials_in, is_secret_name
from seatrial.environment.model_proxy.literal import is_json, with_values
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
    "told_length",
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
        """Data with marks for what must not get out."""
        return self._own.value(self._known.value(value))

    def unmask(self, value: Any) -> Any:
        """Marks replaced by the request's own credentials, and by values that are known here."""
        return _in_kept(value, lambda each: self._own.unmask(self._known.unmask(each)))


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


def _kept(data: bytes, mask: Callable[[Any], Any]) -> Any:
    """An answer's content as it is recorded: by its values where these say it all, else as its text."""
    read = _read(data)
    if bytes_of(read) == data:
        return _in_kept(read, mask)
    return _in_kept({"$text": data.decode("utf-8")}, mask)


def _in_kept(value: Any, change: Callable[[Any], Any]) -> Any:
    """Data changed; a JSON text that is kept as text value by value, so that it is one afterwards."""
    text = value["$text"] if isinstance(value, Mapping) and set(value) == {"$text"} else None
    if isinstance(text, str) and is_json(text):
        return {"$text": with_values(text, change)}
    return change(value)


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


def told_length(method: str, headers: Mapping[str, str]) -> int | None:
    """What the answer to a HEAD says that its content would be long."""
    said = headers.get("content-length", "")
    return int(said) if method == "HEAD" and re.fullmatch(r"[0-9]{1,18}", said) else None


def recorded_response(
    status: int, headers: Mapping[str, str], data: bytes, mask: Callable[[Any], Any], *, cut: bool, method: str = ""
) -> RecordedResponse:
    """An answer as it is recorded."""
    kept = {name: mask(value) for name, value in kept_headers(headers).items()}
    length = told_length(method, headers)
    if length is not None:
        kept["content-length"] = str(length)
    if is_stream(headers) and method != "HEAD":
        blocks, rest = split(data)
        events = [*(_event(block, b"\n\n") for block in blocks), *([_event(rest, b"")] if rest else [])]
        return RecordedResponse(status=status, headers=kept, events=tuple(_masked(events, mask)), cut=cut)
    return RecordedResponse(status=status, headers=kept, body=_kept(data, mask), cut=cut)


# --- streams ----------------------------------------------------------------------------------------------------------


def split(data: bytes) -> tuple[list[bytes], bytes]:
    """The whole events of a stream (without the empty line that ends each), and what comes after them."""
    *blocks, rest = data.replace(b"\r\n", b"\n").split(b"\n\n")
    return [block for block in blocks if block], rest


def _event(block: bytes, end: bytes) -> dict[str, Any]:
    """What is no more than an event and its data by these (the data as text), else the text with its end."""
    text = block.decode("utf-8", "replace")
    fields: dict[str, Any] = {}
    for line in text.split("\n"):
        name, colon, value = line.partition(":")
        if not colon or name not in ("event", "data") or name in fields:
            return {"text": text + end.decode()}
        fields[name] = value.removeprefix(" ")
    return fields


def event_bytes(event: Mapping[str, Any]) -> bytes:
    """A recorded event as it is sent again."""
    if "text" in event:
        return str(event["text"]).encode("utf-8")
    lines = [f"event: {event['event']}".encode()] if "event" in event else []
    return b"\n".join([*lines, *([b"data: " + bytes_of(event["data"])] if "data" in event else [])]) + b"\n\n"


def _masked(events: Sequence[dict[str, Any]], mask: Callable[[Any], Any]) -> Iterator[dict[str, Any]]:
    """Events masked one by one, and where a secret stands across several, their text as a whole in the first."""
    read = [_read(event["data"].encode("utf-8")) if "data" in event else None for event in events]
    spoken: dict[tuple[Any, ...], list[_Place]] = defaultdict(list)
    for at, data in enumerate(read):
        for key, holder, name in _texts(data, ()):
            spoken[key].append(_Place(at, holder, name))
    moved = {place.event for places in spoken.values() if _mask_across(places, mask) for place in places}
    for at, event in enumerate(events):
        masked = mask({name: value for name, value in event.items() if name != "data"})
        if "data" in event:
            masked["data"] = mask(read[at]) if at in moved else _kept(event["data"].encode("utf-8"), mask)
        yield masked


class _Place(NamedTuple):
    """Where a piece of a text stands that goes on from event to event."""

    event: int
    holder: dict[str, Any]
    name: str


def _mask_across(places: Sequence[_Place], mask: Callable[[Any], Any]) -> bool:
    """Whether a secret stood across them: then the first holds the whole text, masked."""
    whole = "".join(place.holder[place.name] for place in places)
    masked = mask(whole)
    if masked == whole or masked == "".join(mask(place.holder[place.name]) for place in places):
        return False
    for place in places:
        place.holder[place.name] = ""
    places[0].holder[places[0].name] = masked
    return True


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
