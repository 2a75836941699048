"""Requests of one trial to a service: JSON there, JSON or a stream of events back.

Nothing surprising is reached: proxies and certificates named in the environment are not used, redirects not followed.
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx

from seatrial.agents.messages import read_json
from seatrial.core.encoding import dumps

__all__ = ["Client", "Response", "ServiceError", "ServiceUnreachable"]

LONGEST = 64 * 1024 * 1024
"""Bytes of a response that are read."""
_CONNECT_S = 10.0
_SHOWN = 500
"""Characters of a response that an error message shows."""


class ServiceError(Exception):
    """The service did not answer as a service should."""


class ServiceUnreachable(ServiceError):
    """There was no connection, or it broke off."""


@dataclass(frozen=True)
class Response:
    """What a service answered."""

    parts: Sequence[Any]
    """One JSON value, or those of a stream's events, in order."""
    streamed: bool = False
    done: bool = True
    """Whether it is whole as far as can be told: a stream says so by `[DONE]`."""


class Client:
    """Sends the requests of one trial. Belongs to the loop that runs it."""

    def __init__(self, url: str) -> None:
        self._url = httpx.URL(url)
        self._shown = str(self._url.copy_with(userinfo=b"", query=None, fragment=None))
        secure = self._url.scheme == "https"  # a plain connection is spared the loading of certificates
        timeout = httpx.Timeout(None, connect=_CONNECT_S)  # the trial has its own limit
        self._http = httpx.AsyncClient(trust_env=False, follow_redirects=False, verify=secure, timeout=timeout)

    async def close(self) -> None:
        """Let go of the connection."""
        await self._http.aclose()

    async def post(self, body: Any, headers: Mapping[str, str]) -> Response:
        """What the service answers.

        Raises ServiceError for a status that is not 2xx, for what is no JSON and for an event named `error`,
        ServiceUnreachable for no connection.
        """
        content = dumps(body).encode("utf-8")
        asked = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
        try:
            async with self._http.stream("POST", self._url, content=content, headers=asked) as response:
                return await self._read(response)
        except httpx.TimeoutException as error:
            raise ServiceUnreachable(f"{self._shown}: no connection within {_CONNECT_S:g} s") from error
        except httpx.TransportError as error:
            raise ServiceUnreachable(f"{self._shown}: {error or type(error).__name__}") from error

    async def _read(self, response: httpx.Response) -> Response:
        if not response.is_success:
            raise ServiceError(self._refusal(response, await self._text(response, "replace")))
        if response.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
            return Response([self._json(await self._text(response), "its response")])
        parts: list[Any] = []
        async for name, data in _events(self._lines(response)):
            if name == "error":
                raise ServiceError(f"{self._shown}: its stream says that an error happened: {_excerpt(data)}")
            if data.strip() == "[DONE]":
                return Response(parts, streamed=True)
            parts.append(self._json(data, "an event of its stream"))
        if not parts:
            raise ServiceError(f"{self._shown}: its stream ended without an event")
        return Response(parts, streamed=True, done=False)

    def _refusal(self, response: httpx.Response, text: str) -> str:
        where = response.headers.get("location")
        if response.is_redirect:
            return f"{self._shown} answered {response.status_code} and leads to {where}; redirects are not followed"
        said = f": {_excerpt(text)}" if text.strip() else ""
        return f"{self._shown} answered {response.status_code} {response.reason_phrase}{said}"

    async def _text(self, response: httpx.Response, errors: str = "strict") -> str:
        return "".join([part async for part in self._parts(response, errors)])

    async def _parts(self, response: httpx.Response, errors: str = "strict") -> AsyncIterator[str]:
        """The text as it comes, in the encoding that the service names, else UTF-8."""
        encoding, read = _encoding(response), 0
        decoder = codecs.getincrementaldecoder(encoding)(errors)
        try:
            async for content in response.aiter_bytes():
                read += len(content)
                if read > LONGEST:
                    raise ServiceError(f"{self._shown} answered with more than {LONGEST // 2**20} MiB")
                yield decoder.decode(content)
            yield decoder.decode(b"", final=True)
        except UnicodeDecodeError as error:
            raise ServiceError(f"{self._shown}: its response is no {encoding}: {error}") from error

    async def _lines(self, response: httpx.Response) -> AsyncIterator[str]:
        rest = ""
        async for part in self._parts(response):
            *lines, rest = (rest + part).replace("\r\n", "\n").split("\n")
            for line in lines:
                yield line
        yield rest
        yield ""

    def _json(self, text: str, what: str) -> Any:
        try:
            return read_json(text)
        except ValueError as error:
            raise ServiceError(f"{self._shown}: {what} is no JSON ({error}): {_excerpt(text)}") from error


def _encoding(response: httpx.Response) -> str:
    try:
        return codecs.lookup(response.charset_encoding or "utf-8").name
    except LookupError:
        return "utf-8"


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[tuple[str, str]]:
    """Name and data of server-sent events."""
    data: list[str] = []
    name = ""
    async for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif line.startswith("event:"):
            name = line.removeprefix("event:").strip()
        elif not line.strip():
            if data or name == "error":
                yield name, "\n".join(data)
            name, data = "", []


def _excerpt(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
