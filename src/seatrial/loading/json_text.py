"""JSON and JSON lines with positions: strict JSON, with duplicate keys and numbers that are not finite refused.

A number or word that is none of JSON's leaves the rest readable: a text stands in for it, and reading goes on.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_right
from typing import Any, NoReturn

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.located import Map, Seq, Spot, problem_at

__all__ = ["read_json", "read_json_lines"]

DEEPEST = 100
_scan_string = json.decoder.scanstring  # type: ignore[attr-defined]  # undocumented, but its very own scanner
_SPACE = re.compile(r"[ \t\n\r]*")
_NUMBER = re.compile(r"(-?(?:0|[1-9][0-9]*))(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_CONSTANTS = {"true": True, "false": False, "null": None}
_WORD = re.compile(r"-?[A-Za-z]+|.", re.DOTALL)
_NUMERIC = re.compile(r"[-+0-9.eE]+")


def read_json(text: str, path: str = "", problems: list[Diagnostic] | None = None, *, first_line: int = 1) -> Any:
    """The value in `text` as located data; None when the text is blank.

    Raises InputError with every problem found. With a list of `problems`, those that leave the rest readable are added
    to it instead, and the value has stand-ins (`located.without_echoes`).
    """
    reader = _Reader(text, path, first_line)
    start = reader.skip(0)
    if start == len(text):
        return None
    value, _, end = reader.value(start, 0)
    end = reader.skip(end)
    if end < len(text):
        reader.refuse(end, f"nothing may follow the value, but {reader.word(end)} does")
    if problems is None and reader.problems:
        raise InputError(reader.problems)
    if problems is not None:
        problems.extend(reader.problems)
    return value


def read_json_lines(text: str, path: str = "", problems: list[Diagnostic] | None = None) -> Seq:
    """One value a line as a located list; blank lines are passed over.

    Raises InputError with every line's problem; with a list of `problems` they are added to it, and the lines that can
    be read are given.
    """
    values = Seq(Spot(path, 1, 1))
    found: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values.put(read_json(line, path, found, first_line=number), Spot(path, number, 1))
        except InputError as error:
            found.extend(error.diagnostics)
    if problems is None and found:
        raise InputError(found)
    if problems is not None:
        problems.extend(found)
    return values


class _Reader:
    """Reads values out of one text; every method takes and gives positions in it."""

    def __init__(self, text: str, path: str, first_line: int) -> None:
        self.problems: list[Diagnostic] = []
        self._text = text
        self._path = path
        self._first_line = first_line
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]

    def skip(self, position: int) -> int:
        match = _SPACE.match(self._text, position)
        return match.end() if match else position

    def word(self, position: int) -> str:
        match = _WORD.match(self._text, position)
        return repr(readable(match.group()[:20])) if match else "the end of the file"

    def spot(self, position: int, written: str | None = None) -> Spot:
        row = bisect_right(self._starts, position) - 1
        return Spot(self._path, row + self._first_line, position - self._starts[row] + 1, written)

    def refuse(self, position: int, message: str, hint: str = "", rule: str = "json-syntax") -> NoReturn:
        raise InputError([*self.problems, problem_at(self.spot(position), rule, message, hint)])

    def note(self, position: int, message: str, hint: str = "", rule: str = "json-syntax") -> None:
        """A problem after which reading goes on."""
        self.problems.append(problem_at(self.spot(position), rule, message, hint))

    def value(self, position: int, depth: int) -> tuple[Any, Spot, int]:
        """(value, its spot, position after it)."""
        first = self._text[position : position + 1]
        if first == '"':
            text, end = self._string(position)
            return text, self.spot(position), end
        if first in ("{", "["):
            if depth >= DEEPEST:
                self.refuse(position, f"nested deeper than {DEEPEST} levels", rule="too-deep")
            value, end = (self._object if first == "{" else self._array)(position, depth + 1)
            return value, value.at, end
        return self._plain(position)

    def _string(self, position: int) -> tuple[str, int]:
        try:
            text, end = _scan_string(self._text, position + 1, True)
        except json.JSONDecodeError as error:
            self.refuse(error.pos, error.msg.lower())
        return text, end

    def _plain(self, position: int) -> tuple[Any, Spot, int]:
        number = _NUMBER.match(self._text, position)
        if number is not None:
            return self._number(number, any(number.groups()[1:]), position)
        match = _WORD.match(self._text, position)
        word = match.group() if match else ""
        if match is not None and word in _CONSTANTS:
            return _CONSTANTS[word], *self._after(match)
        hint = "JSON knows neither comments, single quotes, trailing commas nor NaN"
        message = f"expected a value, found {self.word(position)}"
        if match is None or not word[-1].isalpha():
            self.refuse(position, message, hint)
        self.note(position, message, hint)
        return word, *self._after(match)

    def _after(self, match: re.Match[str]) -> tuple[Spot, int]:
        return self.spot(match.start(), match.group()), match.end()

    def _number(self, match: re.Match[str], is_float: bool, position: int) -> tuple[Any, Spot, int]:
        text = match.group()
        whole = _NUMERIC.match(self._text, position)
        if whole is not None and self._text[match.end() : match.end() + 1].isdigit():
            self.note(position, "a number has no leading zero", "put it in quotes", "leading-zero")
            return whole.group(), *self._after(whole)
        try:
            value = float(text) if is_float else int(text)
        except ValueError:  # Python's own limit on digits
            self.note(position, f"a number of {len(text)} digits is too long", rule="number-too-long")
            return text, *self._after(match)
        if math.isinf(value):
            self.note(position, f"{text} is too large for a number", rule="not-finite")
            return text, *self._after(match)
        return value, *self._after(match)

    def _object(self, position: int, depth: int) -> tuple[Map, int]:
        mapping, at = Map(self.spot(position)), self.skip(position + 1)
        while self._text[at : at + 1] != "}" or mapping:
            if self._text[at : at + 1] != '"':
                self.refuse(at, f"expected a key in double quotes, found {self.word(at)}")
            (key, end), key_at = self._string(at), self.spot(at)
            if key in mapping:
                lines = f"on lines {mapping.keys_at[key].line} and {key_at.line}"
                message = f"the key {readable(key)!r} is given twice, {lines}"
                self.problems.append(problem_at(key_at, "duplicate-key", message, "keep one of them"))
            at = self.skip(end)
            if self._text[at : at + 1] != ":":
                self.refuse(at, f"expected ':' after the key, found {self.word(at)}")
            value, spot, end = self.value(self.skip(at + 1), depth)
            mapping.put(key, value, key_at, spot)
            at = self._next(end, "}")
            if at < 0:
                return mapping, -at
        return mapping, at + 1

    def _array(self, position: int, depth: int) -> tuple[Seq, int]:
        sequence, at = Seq(self.spot(position)), self.skip(position + 1)
        while self._text[at : at + 1] != "]" or sequence:
            value, spot, end = self.value(at, depth)
            sequence.put(value, spot)
            at = self._next(end, "]")
            if at < 0:
                return sequence, -at
        return sequence, at + 1

    def _next(self, position: int, closing: str) -> int:
        """The position after a comma, or minus the position after the closing bracket."""
        at = self.skip(position)
        here = self._text[at : at + 1]
        if here == closing:
            return -(at + 1)
        if here != ",":
            self.refuse(at, f"expected ',' or '{closing}', found {self.word(at)}")
        return self.skip(at + 1)
