"""Identifiers: which texts may be an id, and which file name stands for one."""

from __future__ import annotations

import hashlib
import re
import unicodedata

__all__ = ["CASE_ID", "file_name", "normalised_id", "problem_with_id", "readable"]

CASE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,127}")
"""What the id of a case that a person writes looks like (expansions of a matrix add `[key=value]`)."""

_PLAIN = re.compile(r"[a-z0-9_.-]")
_LONGEST_NAME = 180
_BEGINNING_KEPT = 80
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)")


def normalised_id(text: str) -> str:
    """Ids are compared after NFKC and trimming, so that look-alikes are one id."""
    return unicodedata.normalize("NFKC", text).strip()


def readable(text: str) -> str:
    """`text` on one line with control and non-printable characters escaped; for messages and terminals."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode() for c in text)


def problem_with_id(case_id: str) -> str | None:
    """Why `case_id` cannot be an id, or None when it can."""
    if not CASE_ID.fullmatch(case_id):
        return "an id starts with a letter or digit, then up to 127 of A-Z a-z 0-9 . _ / -"
    if any(segment in ("", ".", "..") for segment in case_id.split("/")):
        return "an id has no empty, '.' or '..' part between its slashes"
    return None


def file_name(identifier: str) -> str:
    """A file name for `identifier`: different identifiers never share one, not even on a disk that ignores case.

    Lower-case letters, digits and `_.-` stand for themselves; anything else is `%xx` of its UTF-8 bytes. A name
    that would be too long, is reserved by an operating system, or begins or ends with a dot is its beginning and a
    digest between `%%`, which no other name holds.
    """
    encoded = "".join(
        c if _PLAIN.fullmatch(c) else "".join(f"%{byte:02x}" for byte in c.encode("utf-8", "surrogatepass"))
        for c in identifier
    )
    risky = encoded.startswith(".") or encoded.endswith(".") or _RESERVED.match(encoded) is not None
    if len(encoded) <= _LONGEST_NAME and encoded and not risky:
        return encoded
    digest = hashlib.sha256(identifier.encode("utf-8", "surrogatepass")).hexdigest()
    return f"%%{encoded[:_BEGINNING_KEPT]}%%{digest}"
