"""Requests of one trial to a service: JSON there, JSON or a stream of events back.

Nothing surprising is reached: proxies and certificates named in the environment are not used, redirects not followed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import httpx

from seatrial.core.encoding import dumps

__all__ = ["Client", "ServiceError", "ServiceUnreachable"]

LONGEST = 64 * 1024 * 1024
"""Bytes of a response that are read."""
_CONNECT_S = 10.0
_SHOWN = 500
"""Characters of a response that an error message shows."""


class ServiceError(Exception):
    """The service did not answer as a service should."""


class ServiceUnreachable(ServiceError):
    """There was no connection, or it broke off."""


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

    async def post(self, body: Any, headers: Mapping[str, str]) -> list[Any]:
        """What the service answers: one JSON value, or those of a stream's events, in order.

        Raises ServiceError for a status that is not 2xx and for what is no JSON, ServiceUnreachable for no connection.
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

    async def _read(self, response: httpx.Response) -> list[Any]:
        if not response.is_success:
            raise ServiceError(self._refusal(response, await self._text(response)))
        if response.headers.get("content-type", "").partition(";")[0].strip() == "text/event-stream":
            return [self._json(data, "an event of its stream") async for data in _events(self._lines(response))]
        return [self._json(await self._text(response), "its response")]

    def _refusal(self, response: httpx.Response, text: str) -> str:
        where = response.headers.get("location")
        if response.is_redirect:
            return f"{self._shown} answered {response.status_code} and leads to {where}; redirects are not followed"
        said = f": {_excerpt(text)}" if text.strip() else ""
        return f"{self._shown} answered {response.status_code} {response.reason_phrase}{said}"

    async def _text(self, response: httpx.Response) -> str:
        return "".join([part async for part in self._parts(response)])

    async def _parts(self, response: httpx.Response) -> AsyncIterator[str]:
        read = 0
        async for text in response.aiter_text():
            read += len(text)
            if read > LONGEST:
                raise ServiceError(f"{self._shown} answered with more than {LONGEST // 2**20} MiB")
            yield text

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
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ServiceError(f"{self._shown}: {what} is no JSON: {_excerpt(text)}") from error


async def _events(lines: AsyncIterator[str]) -> AsyncIterator[str]:
    """The data of server-sent events; `[DONE]` is the end."""
    data: list[str] = []
    async for line in lines:
        if line.startswith("data:"):
            data.append(line.removeprefix("data:").removeprefix(" "))
        elif not line.strip() and data:
            event, data = "\n".join(data), []
            if event.strip() == "[DONE]":
                return
            yield event


def _excerpt(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
