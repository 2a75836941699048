"""Masking values that must not get out, before anything is written.

A value is recognised as it is, escaped as in JSON or as Python shows it or its bytes (one of these in another, up to
four deep), URL-encoded, inside base64, and, where it is all digits, with spaces or dashes between them or as a whole
number. Its mark is `[secret:NAME]`, that of a `redact` pattern
`[secret:redact]`. Where values overlap in a text, the whole of the overlap is replaced by the marks of those that no
other one covers, so a value inside a longer one leaves no mark of its own.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

from seatrial.core.text import problem_with_pattern, unmask
from seatrial.errors import UsageError

__all__ = ["Redactor"]

_SHORTEST = 6
_SHORTEST_BASE64 = 12
_ESCAPES = 4
"""How many may lie one in another: three of the agent's own, or a set in a dataclass, which is JSON in JSON; and a
reason shows that as Python does."""
_DIGITS = re.compile(r"\d[\d -]*\d")
_NEVER_ESCAPED = re.compile(r"[ !#-&(-\[\]-~]+")
_PATTERN_MARK = "[secret:redact]"


class _Span(NamedTuple):
    start: int
    end: int
    name: str


class _Digits(NamedTuple):
    """The digits of a secret, with or without spaces or dashes between them."""

    name: str
    whole: re.Pattern[str]
    """Where no other digit stands beside them."""
    part: re.Pattern[str]
    """Anywhere: found sixty times as fast, since its first digit is looked for before anything else."""

    @classmethod
    def of(cls, name: str, digits: str) -> _Digits:
        spaced = "[ -]?".join(digits)
        return cls(name, re.compile(rf"(?<!\d){spaced}(?!\d)"), re.compile(spaced))

    def spans(self, text: str) -> Iterator[_Span]:
        """Every place where they stand."""
        if self.part.search(text):
            yield from (_Span(*match.span(), self.name) for match in self.whole.finditer(text))


class _Search:
    """Finds the values of secrets in texts and numbers, in every form."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        self._forms: dict[str, dict[str, str]] = {}
        """Names by form, and these by a text that stands in all of them: where it is not, no form is looked for."""
        self._digits: list[_Digits] = []
        self._numbers: dict[str, str] = {}
        known = [(name, value) for name, value in secrets.items() if len(value.strip()) >= _SHORTEST]
        for name, value in sorted(known, key=lambda pair: (-len(pair[1]), pair[0])):
            self._add(name, value)

    def _add(self, name: str, value: str) -> None:
        core = max(_NEVER_ESCAPED.findall(value.strip()), key=len, default="")
        for form in _escaped(value) | _escaped(value.strip()):
            self._forms.setdefault(core, {}).setdefault(form, name)
        for form in _encoded(value):
            self._forms.setdefault(form, {}).setdefault(form, name)
        if _DIGITS.fullmatch(value.strip()):
            digits = re.sub(r"\D", "", value)
            self._numbers.setdefault(digits, name)
            self._digits.append(_Digits.of(name, digits))

    def spans(self, text: str) -> list[_Span]:
        """Every place where a secret stands, overlapping ones too."""
        found: list[_Span] = []
        for core, forms in self._forms.items():
            if core in text:
                for form, name in forms.items():
                    found += _occurrences(text, form, name)
        for digits in self._digits:
            found += digits.spans(text)
        return found

    @cached_property
    def _in_json(self) -> dict[str, set[str]]:
        """The same forms as they stand in JSON text, by what stands in all of them."""
        return {core: {text for form in forms for text in _in_json(form)} for core, forms in self._forms.items()}

    def anywhere(self, line: str) -> bool:
        """Whether a secret may stand in this JSON text; never wrong when it says no."""
        forms = (form for core, forms in self._in_json.items() if core in line for form in forms)
        return any(form in line for form in forms) or any(each.part.search(line) for each in self._digits)

    def number(self, value: float) -> str | None:
        """Name of the secret that the digits of a whole number are."""
        if not self._numbers or (isinstance(value, float) and not value.is_integer()):
            return None
        return self._numbers.get(str(abs(int(value))))


def _occurrences(text: str, form: str, name: str) -> Iterator[_Span]:
    at = text.find(form)
    while at >= 0:
        yield _Span(at, at + len(form), name)
        at = text.find(form, at + 1)


def _escaped(value: str) -> set[str]:
    """The value, and the texts that escaping it makes of it, up to so many times."""
    found = new = {value}
    for _ in range(_ESCAPES):
        new = {text for each in new for text in (*_in_json(each), *_in_python(each))} - found
        found = found | new
    return found


def _in_json(text: str) -> Iterator[str]:
    """As it stands between the quotes of JSON text."""
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]


def _in_python(text: str) -> Iterator[str]:
    """As it stands in what Python shows. Whether it escapes an apostrophe hangs on all that it shows."""
    parts = text.split("'")
    raw = [part.encode("utf-8", "surrogatepass") for part in parts]
    for shown in ([repr(part) for part in parts], [ascii(part) for part in parts], [repr(part)[1:] for part in raw]):
        yield "'".join(part[1:-1] for part in shown)
        yield "\\'".join(part[1:-1] for part in shown)


def _encoded(value: str) -> set[str]:
    """The value in URLs and inside base64: texts that nothing escapes."""
    raw = value.encode("utf-8", "surrogatepass")
    forms = set(_inside_base64(raw))
    for encoded in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        forms |= {encoded, re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), encoded)}
    return forms


def _inside_base64(raw: bytes) -> Iterator[str]:
    """What of base64 text depends on `raw` alone, for each place it can begin at in a group of three bytes."""
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode("ascii")
        core = encoded[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
        if len(core) >= _SHORTEST_BASE64:
            yield core
            yield core.replace("+", "-").replace("/", "_")


class Redactor:
    """Masks known values and patterns in whatever is about to be written.

    Values of fewer than six characters are left alone: they would mask half the text. Masking what is masked already
    changes nothing. Raises UsageError for a pattern that is no regular expression.
    """

    def __init__(self, secrets: Mapping[str, str] | None = None, patterns: Iterable[str] = ()) -> None:
        self._secrets = dict(secrets or {})
        self._search = _Search(self._secrets)
        self._patterns = tuple(_compiled(pattern) for pattern in patterns)
        names = "|".join(re.escape(name) for name in (*self._secrets, "redact"))
        self._marks = re.compile(rf"(\[secret:(?:{names})\])")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the known values."""
        return tuple(self._secrets)

    def text(self, text: str) -> str:
        """The text with marks for what must not get out; the same object when there is nothing."""
        spans = self._search.spans(text)
        if spans and "[secret:" in text:
            marks = [match.span() for match in self._marks.finditer(text)]
            spans = [s for s in spans if not any(s.start < end and start < s.end for start, end in marks)]
        if spans:
            text = _replaced(text, spans)
        return self._without_patterns(text) if self._patterns else text

    def _without_patterns(self, text: str) -> str:
        if not any(pattern.search(text) for pattern in self._patterns):
            return text
        parts = self._marks.split(text)
        return "".join(part if place % 2 else self._by_patterns(part) for place, part in enumerate(parts))

    def _by_patterns(self, text: str) -> str:
        for pattern in self._patterns:
            parts = self._marks.split(text)
            parts[::2] = [pattern.sub(lambda found: _PATTERN_MARK if found[0] else "", part) for part in parts[::2]]
            text = "".join(parts)
        return text

    def may_hold(self, line: bytes) -> bool:
        """Whether data with this JSON text may hold something to mask: a quick look that spares a walk through it."""
        return bool(self._patterns) or (bool(self._secrets) and self._search.anywhere(line.decode()))

    def value(self, value: Any) -> Any:
        """JSON data, masked in texts, keys and whole numbers; the same object when there is nothing to mask."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return self._mapping(value)
        if isinstance(value, (list, tuple)):
            masked = [self.value(item) for item in value]
            same = all(new is old for new, old in zip(masked, value, strict=True))
            return value if same else type(value)(masked)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return self._number(value)
        return value

    def _mapping(self, value: dict[str, Any]) -> dict[str, Any]:
        masked: dict[str, Any] = {}
        same = True
        for key, item in value.items():
            new_key, new_item = self.text(key), self.value(item)
            same = same and new_key is key and new_item is item
            masked[_free(new_key, masked)] = new_item
        return value if same else masked

    def _number(self, value: float) -> Any:
        name = self._search.number(value)
        if name is not None:
            return f"[secret:{name}]"
        hidden = self._patterns and any(pattern.fullmatch(str(value)) for pattern in self._patterns)
        return _PATTERN_MARK if hidden else value

    def unmask(self, value: Any) -> Any:
        """JSON data with the marks of known values replaced by these; marks of patterns stay."""
        return unmask(value, self._secrets)


def _compiled(pattern: str) -> re.Pattern[str]:
    problem = problem_with_pattern(pattern)
    if problem is not None:
        raise UsageError(f"redact: {problem}")
    return re.compile(pattern)


def _replaced(text: str, spans: list[_Span]) -> str:
    parts, at, covered = [], 0, 0
    for span in _outermost(spans):
        if span.start >= covered:
            parts += [text[at : span.start], f"[secret:{span.name}]"]
        elif not parts[-1].endswith(f"[secret:{span.name}]"):
            parts.append(f"[secret:{span.name}]")
        at = covered = span.end
    return "".join((*parts, text[at:]))


def _outermost(spans: list[_Span]) -> Iterator[_Span]:
    """Those that no other one covers, from left to right."""
    reached = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        if span.end > reached:
            reached = span.end
            yield span


def _free(key: str, taken: Mapping[str, Any]) -> str:
    """The key, numbered where another key was masked to the same text."""
    number, free = 1, key
    while free in taken:
        number += 1
        free = f"{key}#{number}"
    return free
