"""What of a request proves who sends it: which headers and query parameters, and the values in them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence

__all__ = ["credentials_in", "is_secret_name"]

_PARTS = ("key", "token", "secret", "password", "credential", "signature")
"""What the name of a secret holds; a word that goes on (`keyword`, `max_tokens`) is another."""
_PART = re.compile(rf"(?:{'|'.join(_PARTS)})(?![a-z])")
_WORDS = frozenset({"authorization", "cookie", "session", "sessionid", "sig", "auth", "passwd", "pwd"})
_NAMES = frozenset({"code", "auth_code", "authorization_code"})
_HARMLESS = frozenset({"idempotency-key", "sec-websocket-key"})
"""Drawn anew for each request, and good for nothing else."""


def is_secret_name(name: str) -> bool:
    """Whether a header or query parameter of this name holds a credential."""
    plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    if plain in _HARMLESS:
        return False
    return plain in _NAMES or _PART.search(plain) is not None or not _WORDS.isdisjoint(re.split(r"[^a-z]+", plain))


def credentials_in(headers: Mapping[str, str], query: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """The credentials of a request, each once: those of headers (names in lower case) by name, then of the query."""
    named = sorted((name, value) for name, value in headers.items() if is_secret_name(name))
    found = [each for name, value in named for each in _values(name, value)]
    found += [value for name, value in query if is_secret_name(name)]
    return tuple(dict.fromkeys(each for each in found if each))


def _values(name: str, value: str) -> Iterator[str]:
    if name == "cookie":
        yield from (part.partition("=")[2].strip().strip('"') for part in value.split(";"))
        return
    scheme, _, rest = value.strip().partition(" ")
    yield rest.strip() or scheme
    if scheme.lower() == "basic":
        yield _password(rest)


def _password(encoded: str) -> str:
    """The password of `Authorization: Basic`; empty when that is not what it should be."""
    try:
        return base64.b64decode(encoded, validate=True).decode("utf-8", "replace").partition(":")[2]
    except (binascii.Error, ValueError):
        return ""
