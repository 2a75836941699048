"""What a scripted model says, one line a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.encoding import dumps
from seatrial.core.trace import Usage

__all__ = ["Call", "CutOff", "Held", "HttpError", "Line", "NotJson", "Reply", "Request", "Script"]


@dataclass(frozen=True)
class Call:
    """A tool call that the model asks for."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    """A mapping, or text that is sent as it is: malformed arguments."""
    id: str | None = None
    """None = `call_N_M`, the M-th call of the script's line N."""

    @property
    def text(self) -> str:
        """The arguments as they are sent."""
        return self.arguments if isinstance(self.arguments, str) else dumps(dict(self.arguments))


TEN_AND_FIVE = Usage(input=10, output=5)


@dataclass(frozen=True)
class Reply:
    """The model answers: text, tool calls (several are parallel ones) or both."""

    text: str | None = None
    calls: Sequence[Call] = ()
    usage: Usage | None = TEN_AND_FIVE
    """`input` includes `cached`, `output` includes `reasoning`. None: the provider says nothing of usage."""
    model: str | None = None
    """The name that is reported; None = the one that was asked for."""
    finish: str | None = None
    """The finish reason of a chat completion; None = `tool_calls` or `stop`. `length` is an incomplete response."""


@dataclass(frozen=True)
class HttpError:
    """The request fails: 429 with `retry_after` seconds, 500, or whatever status."""

    status: int
    message: str = "scripted error"
    retry_after: float | None = None
    """Seconds in a Retry-After header; None: no such header."""
    code: str | None = None


@dataclass(frozen=True)
class Held:
    """Nothing is sent before `until` is set (or the server closes): a slow model, without sleeping."""

    until: threading.Event
    line: Reply | HttpError = field(default_factory=Reply)


@dataclass(frozen=True)
class CutOff:
    """The connection breaks: after `after` events of a stream, or half-way through a whole answer."""

    reply: Reply
    after: int = 1


@dataclass(frozen=True)
class NotJson:
    """The answer is no JSON, as a broken gateway sends it; in a stream its first event is not."""

    text: str = '{"id": "broken'


Line = Reply | HttpError | Held | CutOff | NotJson


@dataclass(frozen=True)
class Request:
    """One request that the server got."""

    key: str
    """Of the script that it belongs to."""
    path: str
    """`/v1/chat/completions` or another, without the key."""
    body: Any
    """JSON data; None where there was none."""
    headers: Mapping[str, str]
    """By name in lower case, without those that hold API keys."""
    number: int
    """The how-manieth of its key, from 1."""

    @property
    def stream(self) -> bool:
        """Whether it asks for a stream."""
        return isinstance(self.body, Mapping) and bool(self.body.get("stream"))


class Script:
    """Lines in their order, or a function of the request that gives each; belongs to one key."""

    def __init__(self, lines: Sequence[Line] | Callable[[Request], Line]) -> None:
        self._lines = lines
        self._played = 0

    @property
    def left(self) -> int:
        """Lines that were not played; 0 for a function."""
        return 0 if callable(self._lines) else len(self._lines) - self._played

    @property
    def length(self) -> int:
        """Lines in all; 0 for a function."""
        return 0 if callable(self._lines) else len(self._lines)

    def next(self, request: Request) -> Line | None:
        """The line for this request; None when there is none left."""
        if callable(self._lines):
            return self._lines(request)
        if not self.left:
            return None
        self._played += 1
        return self._lines[self._played - 1]
