"""Reading text the way a person does: phrases as whole words, numbers by value.

**Folding** makes two spellings of one text equal: NFKC, case, runs of white space, and the typographic apostrophe.

**Phrases** are found as folded whole words: `392` is not in `13920`, nor in `392.5`, `1,392` or `-392`. In scripts
written without spaces (Chinese, Japanese, Thai ...) any position is a word boundary. Marks of Markdown inside a
sentence (`refund **completed**`) do not hide a phrase.

**Numbers**: signs, currency signs, brackets, punctuation and Markdown marks around a number do not matter; letters
glued to it do (`5kg`, `O-100` and `v1.2.3` hold no number). U+2212 and other dashes before a digit are a minus unless
they follow a letter, digit or closing bracket. Groups of three digits after a comma, apostrophe, underscore, narrow or
no-break space are one number: `1,000` reads as 1000, and so does the pair in `[1,000]`; `1.000` is one. `20%` reads
as 20, and says that it was a percentage.

**Regular expressions** are searched for with Python's `re`. It cannot be interrupted, so a pattern with a repeat of
nothing but a repeat, such as `(a+)+`, which can take for ever on a text of thirty characters, is refused.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

__all__ = [
    "NumberInText",
    "contains_phrase",
    "fold",
    "holds_folded",
    "normalised",
    "numbers",
    "problem_with_pattern",
    "unfenced",
    "unmask",
    "whole_number",
]


def fold(text: str) -> str:
    """`text` without differences of case, Unicode form or white space."""
    if text.isascii():  # NFKC changes nothing
        return " ".join(text.lower().split())
    compatible = unicodedata.normalize("NFKC", text).replace("’", "'").casefold()
    return " ".join(unicodedata.normalize("NFKC", compatible).split())


def normalised(text: str) -> str:
    """NFC and trimmed, case kept: how whole texts are compared."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).strip()


def holds_folded(text: str, part: str) -> bool:
    """Whether `part` is in `text` after folding, at any position."""
    return fold(part) in fold(text)


# --- phrases ------------------------------------------------------------------------------------------------------

_MARKS = re.compile(r"\*+|`+|~~|(?<!\w)_+|_+(?!\w)")
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff]")
_DASHES = "-\u2010\u2011\u2012\u2013\u2014\u2212\ufe63\uff0d"


def contains_phrase(text: str, phrase: str) -> bool:
    """Whether `phrase` stands in `text` as folded whole words."""
    wanted = fold(phrase)
    if not wanted:
        return False
    if _stands_in(wanted, fold(text)):
        return True
    bare = _MARKS.sub("", text)
    return bare != text and _stands_in(wanted, fold(bare))


def _stands_in(phrase: str, text: str) -> bool:
    start = text.find(phrase)
    while start >= 0:
        if _is_whole(text, start, start + len(phrase)):
            return True
        start = text.find(phrase, start + 1)
    return False


def _is_whole(text: str, start: int, end: int) -> bool:
    glued = _glued(text, start) or _glued(text, end)
    return not glued and not _inside_number(text, start, end)


def _glued(text: str, at: int) -> bool:
    """Whether the characters before and after position `at` belong to one word."""
    if not 0 < at < len(text):
        return False
    before, after = text[at - 1], text[at]
    return _in_word(before) and _in_word(after) and not (_UNSPACED.match(before) or _UNSPACED.match(after))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_" or unicodedata.category(character).startswith("M")


def _inside_number(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] begins or ends within a longer number: 392 in 392.5, in 1,392 and in -392."""
    if text[start].isdigit():
        before = text[max(start - 2, 0) : start]
        if re.search(r"\d[.,]$", before) or (before and before[-1] in _DASHES and _is_sign(text, start - 1)):
            return True
    return text[end - 1].isdigit() and re.match(r"[.,]\d", text[end : end + 2]) is not None


# --- numbers ------------------------------------------------------------------------------------------------------

_NUMBER = re.compile(
    r"(?P<whole>\d{1,3}(?P<mark>[,'’_\u00a0\u2009\u202f])\d{3}(?:(?P=mark)\d{3})*(?!\d)|\d+|(?<![\w.])(?=\.\d))"
    r"(?P<fraction>\.\d+)?(?P<exponent>[eE][+-]?\d{1,3}(?!\d))?"
)
_PERCENT = re.compile(r"[ \u00a0\u202f]?%")
_CURRENCY = "$€£¥₹₽₩"


@dataclass(frozen=True)
class NumberInText:
    """A number as it was read."""

    value: Decimal
    text: str
    """As written, with its sign and percent mark."""
    percent: bool = False
    start: int = 0
    end: int = 0


def numbers(text: str) -> Iterator[NumberInText]:
    """The numbers in `text`, in order."""
    for match in _NUMBER.finditer(text):
        if not _touches_word(text, match.start(), match.end()):
            yield _read(text, match)


def _touches_word(text: str, start: int, end: int) -> bool:
    first, last = start, end
    while first > 0 and text[first - 1] == "_":
        first -= 1
    while last < len(text) and text[last] == "_":
        last += 1
    return _joined_before(text[max(first - 2, 0) : first]) or _joined_after(text[last : last + 2])


def _joined_before(two: str) -> bool:
    """Whether the two characters before a number make it part of a word, an identifier (O-100) or a version (1.2.3)."""
    if not two:
        return False
    if two[-1] in "-\u2010\u2011":
        return len(two) == 2 and two[0].isalpha()
    return _is_letter(two[-1]) or (len(two) == 2 and two[1] == "." and two[0].isdigit())


def _joined_after(two: str) -> bool:
    return bool(two) and (_is_letter(two[0]) or (len(two) == 2 and two[0] == "." and two[1].isdigit()))


def _is_letter(character: str) -> bool:
    return character.isalnum() and not _UNSPACED.match(character)


def _read(text: str, match: re.Match[str]) -> NumberInText:
    digits = "".join(c for c in match["whole"] if c.isdigit()) or "0"
    value = Decimal(digits + (match["fraction"] or "") + (match["exponent"] or ""))
    sign_at = _sign_before(text, match.start())
    percent = _PERCENT.match(text, match.end())
    start = match.start() if sign_at is None else sign_at
    end = percent.end() if percent else match.end()
    return NumberInText(value if sign_at is None else -value, text[start:end], percent is not None, start, end)


def _sign_before(text: str, start: int) -> int | None:
    """Where the minus of a number stands that begins at `start` (`-5`, `-$5`, `$-5`), or None."""
    at = start - 1
    if at >= 0 and text[at] in _CURRENCY:
        at -= 1
    return at if at >= 0 and text[at] in _DASHES and _is_sign(text, at) else None


def _is_sign(text: str, at: int) -> bool:
    """Whether the dash at `at` is a minus: not one that joins it to a word, a number or a bracket before."""
    return at == 0 or not (text[at - 1].isalnum() or text[at - 1] in ")]}%" or text[at - 1] in _DASHES)


def whole_number(text: str) -> Decimal | None:
    """The number that the whole of `text` is, or None; signs, a currency sign and a percent mark may go with it."""
    trimmed = text.strip().removeprefix("+")
    found = list(numbers(trimmed))
    if len(found) != 1:
        return None
    rest = trimmed[: found[0].start] + trimmed[found[0].end :]
    return found[0].value if rest.strip(_CURRENCY + " ") == "" else None


# --- patterns, fences, masks --------------------------------------------------------------------------------------

_NESTED_REPEAT = re.compile(r"\((?:\?:|\?P<\w+>)?(?:\\.|\[(?:\\.|[^\]\\])+\]|[^()\[\]\\|])[+*]\)[+*]")
_FENCE = re.compile(r"\A\s*(?P<fence>`{3,}|~{3,})[^\n`]*\n(?P<body>.*?)\n?[ \t]*(?P=fence)\s*\Z", re.DOTALL)
_MASK = re.compile(r"\[secret:([^\[\]]+)\]")


def problem_with_pattern(pattern: str) -> str | None:
    """Why `pattern` is no usable regular expression, or None."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"{pattern!r} is not a regular expression: {error}"
    nested = _NESTED_REPEAT.search(pattern)
    if nested:
        return f"{pattern!r} may never end: {nested[0]!r} repeats a repeat; one of the two is enough"
    return None


def unfenced(text: str) -> str:
    """`text` without one code fence around the whole of it."""
    fenced = _FENCE.match(text)
    return fenced["body"] if fenced else text


def unmask(value: Any, secrets: Mapping[str, str]) -> Any:
    """JSON data with each mark `[secret:NAME]` of a known secret replaced by its value.

    Regrading a stored trace puts the values back before graders look at it.
    """
    if isinstance(value, str):
        return _MASK.sub(lambda mark: secrets.get(mark[1], mark[0]), value) if "[secret:" in value else value
    if isinstance(value, Mapping):
        return {unmask(key, secrets): unmask(item, secrets) for key, item in value.items()}
    return [unmask(item, secrets) for item in value] if isinstance(value, (list, tuple)) else value
