"""What a scripted model says, one line a request."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from seatrial.core.encoding import dumps, shortened
from seatrial.core.trace import Usage

__all__ = ["Call", "CutOff", "Held", "HttpError", "Line", "NotJson", "Reply", "Request", "Script", "checked"]


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


def checked(line: Any) -> Line:
    """The line, if a model can say it. TypeError or ValueError that says what is wrong with it."""
    if isinstance(line, Held):
        checked(line.line)
        return line
    if isinstance(line, CutOff):
        _reply(line.reply, "reply of a CutOff")
        return line
    if isinstance(line, HttpError):
        return _http_error(line)
    if isinstance(line, NotJson):
        _is(line.text, str, "text of a NotJson")
        return line
    return _reply(line, "line of a script")


def _reply(reply: Any, what: str) -> Reply:
    if not isinstance(reply, Reply):
        hint = f"; for a text say Reply({shortened(repr(reply), 40)})" if isinstance(reply, str) else ""
        raise TypeError(f"a {what} is a {'Reply' if 'reply' in what else _LINES}, not {_shown(reply)}{hint}")
    _is(reply.text, (str, type(None)), "text of a Reply")
    _is(reply.usage, (Usage, type(None)), "usage of a Reply")
    for call in _list(reply.calls, "calls of a Reply"):
        _is(call, Call, "call of a Reply")
        _is(call.name, str, "name of a Call")
        _is(call.arguments, (str, Mapping), f"arguments of the call of {call.name}")
        try:
            dumps(call.text)
        except (TypeError, ValueError) as error:
            raise ValueError(f"the arguments of the call of {call.name} are no JSON data: {error}") from error
    return reply


def _http_error(line: HttpError) -> HttpError:
    if isinstance(line.status, bool) or not isinstance(line.status, int) or not 200 <= line.status <= 599:
        raise ValueError(f"the status of an HttpError is a number from 200 to 599, not {line.status!r}")
    if line.retry_after is not None:
        _is(line.retry_after, (int, float), "retry_after of an HttpError")
    _is(line.message, str, "message of an HttpError")
    return line


def _list(value: Any, what: str) -> Sequence[Any]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise TypeError(f"the {what} is a list, not {_shown(value)}")
    return value


def _is(value: Any, kinds: type | tuple[type, ...], what: str) -> None:
    if not isinstance(value, kinds):
        names = [kind.__name__ for kind in (kinds if isinstance(kinds, tuple) else (kinds,)) if kind is not type(None)]
        raise TypeError(f"the {what} is a {' or a '.join(names)}, not {_shown(value)}")


def _shown(value: Any) -> str:
    return f"{shortened(repr(value), 80)} ({type(value).__name__})"


_LINES = "Reply, HttpError, Held, CutOff or NotJson"


class Script:
    """Lines in their order, or a function of the request that gives each; belongs to one key."""

    def __init__(self, lines: Sequence[Line] | Callable[[Request], Line]) -> None:
        """Raises TypeError or ValueError for a line that no model can say, naming it."""
        self._lines = lines if callable(lines) else self._whole(lines)
        self._played = 0

    @staticmethod
    def _whole(lines: Any) -> Sequence[Line]:
        if isinstance(lines, str) or not isinstance(lines, Iterable):
            raise TypeError(f"a script is a list of lines or a function that gives one, not {_shown(lines)}")
        whole = []
        for number, line in enumerate(lines, 1):
            try:
                whole.append(checked(line))
            except (TypeError, ValueError) as error:
                raise type(error)(f"line {number} of the script: {error}") from error
        return whole

    @property
    def ends(self) -> bool:
        """Whether it has an end; a function has none."""
        return not callable(self._lines)

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
