"""A request sent on to the model, and what comes back piece by piece."""

from __future__ import annotations

import http.client
import ipaddress
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

__all__ = ["Incoming", "sent"]

_OWN = frozenset({"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "keep-alive"})
"""Headers of one connection alone; what comes back is asked for uncompressed."""
_LONGEST_S = 600.0


@dataclass
class Incoming:
    """An answer as it comes."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    _from: Any
    broken: bool = False
    """It broke off before its end."""

    def pieces(self) -> Iterator[bytes]:
        """What comes, as it comes."""
        try:
            while data := self._from.read1(65536):
                yield data
        except http.client.IncompleteRead as error:
            self.broken = True
            yield error.partial
        except OSError:
            self.broken = True
        else:
            self.broken = bool(self._from.length)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


@contextmanager
def sent(method: str, url: str, headers: Mapping[str, str], body: bytes) -> Iterator[Incoming]:
    """Send a request on. OSError when nobody answers."""
    kept = {name: value for name, value in headers.items() if name.lower() not in _OWN}
    data = body if body or method in ("POST", "PUT", "PATCH") else None
    request = urllib.request.Request(url, data, {**kept, "Accept-Encoding": "identity"}, method=method)  # noqa: S310
    proxies: dict[str, str] | None = {} if _is_loopback(url) else None
    opener = urllib.request.build_opener(_NoRedirect, urllib.request.ProxyHandler(proxies))
    try:
        answer = opener.open(request, timeout=_LONGEST_S)
    except urllib.error.HTTPError as error:
        answer = error
    except http.client.HTTPException as error:
        raise ConnectionError(f"{type(error).__name__}: {error}") from error
    with answer:
        read = getattr(answer, "fp", answer) if isinstance(answer, urllib.error.HTTPError) else answer
        yield Incoming(answer.status, {name.lower(): value for name, value in answer.headers.items()}, read)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
