"""YAML with positions, under the core schema of YAML 1.2.

libyaml's events are composed into located data here: quicker than its nodes by far, and with our own answers where
YAML 1.1 and 1.2 differ or where people are surprised.

| written | read as |
| --- | --- |
| `no`, `on`, `yes`, `y`, `2026-03-01`, `12:30`, `1_000`, `0b1` | text, as in YAML 1.2 |
| `true`, `null`, `~`, nothing, `0o17`, `0x1F`, `1e3` | boolean, null, null, null, 15, 31, 1000.0, as in YAML 1.2 |
| `007`, `-01`, `00.5` | an error: 1.1 and 1.2 read them differently |
| `.inf`, `.nan`, `1e999` | an error: JSON has no such number |
| a key that is no text (`1:`, `[a]:`, `null:`) | an error |
| a key given twice, at any level | an error naming both lines; a merge key (`<<`) may bring what is given |
| two documents, custom tags, `%YAML 1.1`, tabs as indentation, U+0085/2028/2029 outside escapes | errors |
| anchors and aliases | shared data, up to a million values and a hundred levels; no cycles |
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, cast

import yaml
from yaml import events

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.loading.located import Map, Seq, Spot, problem_at, type_name

__all__ = ["plain_scalar", "read_yaml"]

MOST_VALUES = 1_000_000
"""Values that aliases may stand for in one file."""
DEEPEST = 100
"""Levels of nesting, those behind aliases included."""

_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DIGITS = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]")
_SEPARATOR = re.compile("[\x85\u2028\u2029]")
_CORE = "tag:yaml.org,2002:"
_MERGE = object()


class NumberProblem(ValueError):
    """A plain number that is refused; `rule` and `hint` say why and what to write."""

    def __init__(self, rule: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.rule = rule
        self.hint = hint


def plain_scalar(text: str) -> Any:
    """The value of a plain scalar. Raises NumberProblem for a leading zero and for numbers that are not finite."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] not in _DIGITS:
        return text
    if _NOT_FINITE.fullmatch(text):
        raise NumberProblem("not-finite", f"{text} is not a finite number", f'write "{text}" for the text')
    integer = _INTEGER.fullmatch(text)
    if not integer and not _FLOAT.fullmatch(text):
        return text
    if _LEADING_ZERO.match(text):
        hint = f'write "{text}" for the text, or the number without the zero'
        raise NumberProblem("leading-zero", f"{text} is a plain number with a leading zero", hint)
    return _integer(text) if integer else _finite(text)


def _integer(text: str) -> int:
    try:
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))
    except ValueError as error:  # Python's own limit on digits
        hint = "write it in quotes, as text"
        raise NumberProblem("number-too-long", f"a number of {len(text)} digits is too long", hint) from error


def _finite(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NumberProblem("not-finite", f"{text} is too large for a number", f'write "{text}" for the text')
    return value


def read_yaml(text: str, path: str = "", problems: list[Diagnostic] | None = None) -> Any:
    """The one document in `text` as located data; None when there is none.

    Raises InputError with every problem found (after a syntax error nothing further can be read). With a list of
    `problems`, those that leave the rest readable are added to it instead, and the document is given with a stand-in
    for each value that could not be read (`located.without_echoes`).
    """
    builder = _Builder(path)
    separators = list(_SEPARATOR.finditer(text))
    builder.problems.extend(_separator_problem(text, separator.start(), path) for separator in separators)
    try:
        for event in _events(_SEPARATOR.sub(" ", text) if separators else text):
            builder.take(event)
            if builder.ended:
                break
    except yaml.YAMLError as error:
        raise InputError([*builder.problems, _syntax_problem(error, text, path)]) from error
    if problems is None and builder.problems:
        raise InputError(builder.problems)
    if problems is not None:
        problems.extend(builder.problems)
    return builder.root


def _events(text: str) -> Iterator[events.Event]:
    if not yaml.__with_libyaml__:
        raise UsageError("PyYAML was built without libyaml, which Seatrial needs; install a binary wheel of PyYAML")
    from yaml._yaml import CParser  # the loader classes around it cost more than a small file

    parser = CParser(text)
    while True:
        event = cast(events.Event, parser.get_event())
        yield event
        if type(event) is events.StreamEndEvent:
            return


class _Open:
    """A mapping or list whose end has not been read yet."""

    __slots__ = ("anchor", "height", "key", "key_at", "merges", "size", "value")

    def __init__(self, value: Map | Seq, anchor: str | None) -> None:
        self.value = value
        self.anchor = anchor
        self.key: Any = None
        """Of a mapping, the key that waits for its value."""
        self.key_at = value.at
        self.merges: list[Map] = []
        self.size = 1
        """Values in it, those behind aliases included."""
        self.height = 1
        """Levels below it, its own included."""

    @property
    def mapping(self) -> Map:
        """The value, where it is known to be a mapping."""
        return cast(Map, self.value)


class _Builder:
    """Builds located data from events."""

    def __init__(self, path: str) -> None:
        self.root: Any = None
        self.problems: list[Diagnostic] = []
        self.ended = False
        """Whether what follows is another document, which is refused and not read."""
        self._path = path
        self._documents = 0
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, Spot, int, int]] = {}
        self._aliased = 0

    def take(self, event: events.Event) -> None:
        taker = _TAKERS.get(type(event))
        if taker is not None:
            taker(self, event)

    def _spot(self, mark: Any, written: str | None = None) -> Spot:
        return Spot(self._path, mark.line + 1, mark.column + 1, written)

    def _problem(self, spot: Spot, rule: str, message: str, hint: str = "") -> None:
        self.problems.append(problem_at(spot, rule, message, hint))

    def _fatal(self, spot: Spot, rule: str, message: str, hint: str = "") -> NoReturn:
        self._problem(spot, rule, message, hint)
        raise InputError(self.problems)

    def _document(self, event: Any) -> None:
        self._documents += 1
        spot = self._spot(event.start_mark)
        if self._documents > 1:
            hint = "write one list, or one file for each"
            self._problem(spot, "several-documents", "a second document begins here (`---`); a file holds one", hint)
            self.ended = True
        if event.version is not None and tuple(event.version) < (1, 2):
            self._problem(
                spot, "yaml-version", "the file asks for YAML 1.1, and is read as YAML 1.2", "remove the %YAML line"
            )

    # --- values ----------------------------------------------------------------------------------------------------

    def _scalar(self, event: Any) -> None:
        text, mark = event.value, event.start_mark
        is_plain = event.implicit[0]
        spot = Spot(self._path, mark.line + 1, mark.column + 1, text if is_plain else None)
        top = self._open[-1] if self._open else None
        if is_plain and text == "<<" and top is not None and top.key is None and type(top.value) is Map:
            self._set_key(top, _MERGE, spot)
            return
        value = text if event.tag is None and not is_plain else self._resolved(event, text, spot)
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, spot, 1, 0)
        self._add(value, spot, 1, 0)

    def _resolved(self, event: Any, text: str, spot: Spot) -> Any:
        tag = event.tag
        if tag in ("!", _CORE + "str"):
            return text
        try:
            value = plain_scalar(text)
        except NumberProblem as problem:
            self._problem(spot, problem.rule, str(problem), problem.hint)
            return text
        if tag is None:
            return value
        wanted = {"int": "a number", "float": "a number", "bool": "a boolean", "null": "null"}.get(_core_tag(tag))
        if wanted is None:
            self._unknown_tag(tag, spot)
        elif type_name(value) != wanted:
            self._problem(spot, "wrong-tag", f"{text!r} is not {wanted}, as its tag says")
        return float(value) if wanted and tag == _CORE + "float" and isinstance(value, int) else value

    def _unknown_tag(self, tag: str, spot: Spot) -> None:
        name = "!!" + _core_tag(tag) if tag.startswith(_CORE) else tag
        hint = "put a text that begins with ! in quotes"
        self._problem(spot, "custom-tag", f"the tag {readable(name)} is not known here", hint)

    def _alias(self, event: Any) -> None:
        spot = self._spot(event.start_mark)
        name = readable(event.anchor)
        if any(entry.anchor == event.anchor for entry in self._open):
            self._problem(spot, "alias-cycle", f"*{name} stands inside its own anchor &{name}")
            self._add(f"*{name}", spot, 1, 0)
            return
        if event.anchor not in self._anchors:
            hint = "put a text that begins with * in quotes"
            self._problem(spot, "unknown-alias", f"there is no anchor &{name} before *{name}", hint)
            self._add(f"*{name}", spot, 1, 0)
            return
        value, _, size, height = self._anchors[event.anchor]
        self._aliased += size
        if self._aliased > MOST_VALUES:
            self._fatal(spot, "too-many-aliases", f"aliases stand for more than {MOST_VALUES:,} values")
        self._add(value, spot, size, height)

    def _add(self, value: Any, spot: Spot, size: int, height: int) -> None:
        if not self._open:
            self.root = value
            return
        top = self._open[-1]
        top.size += size
        if height >= top.height:
            top.height = height + 1
        if len(self._open) + height > DEEPEST:
            self._fatal(spot, "too-deep", f"nested deeper than {DEEPEST} levels")
        if type(top.value) is Seq:
            top.value.append(value)
            top.value.values_at.append(spot)
        elif top.key is None:
            self._set_key(top, value, spot)
        else:
            self._set_value(top, value, spot)

    # --- mappings and lists ----------------------------------------------------------------------------------------

    def _set_key(self, top: _Open, key: Any, spot: Spot) -> None:
        if key is not _MERGE and not isinstance(key, str):
            what = "a key" if isinstance(key, (dict, list)) else f"the key {spot.written or 'null'}"
            self._problem(spot, "key-not-text", f"{what} is {type_name(key)}; keys are text", "put it in quotes")
            key = f"{spot.line}:{spot.column}"
        if key is _MERGE and top.merges:
            hint = "write <<: [*a, *b]"
            self._problem(spot, "duplicate-key", "the merge key << is given twice in one mapping", hint)
        elif key is not _MERGE and key in top.value:
            first = top.mapping.keys_at[key]
            message = f"the key {readable(key)!r} is given twice, on lines {first.line} and {spot.line}"
            self._problem(spot, "duplicate-key", message, "keep one of them")
        top.key, top.key_at = key, spot

    def _set_value(self, top: _Open, value: Any, spot: Spot) -> None:
        key, top.key = top.key, None
        if key is not _MERGE:
            top.mapping.put(key, value, top.key_at, spot)
            return
        sources = value if isinstance(value, Seq) else [value]
        if all(isinstance(source, Map) for source in sources):
            top.merges.extend(sources)
        else:
            self._problem(spot, "merge-key", f"<< takes a mapping or a list of mappings, not {type_name(value)}")

    def _start_mapping(self, event: Any) -> None:
        self._start(Map(self._spot(event.start_mark)), event, "map")

    def _start_sequence(self, event: Any) -> None:
        self._start(Seq(self._spot(event.start_mark)), event, "seq")

    def _start(self, value: Map | Seq, event: Any, core: str) -> None:
        if event.tag not in (None, "!", _CORE + core):
            self._unknown_tag(event.tag, value.at)
        if len(self._open) >= DEEPEST:
            self._fatal(value.at, "too-deep", f"nested deeper than {DEEPEST} levels")
        self._open.append(_Open(value, event.anchor))

    def _end(self, _event: Any) -> None:
        done = self._open.pop()
        for source in done.merges:
            for key, value, key_at, value_at in source.entries():
                if key not in done.mapping:
                    done.mapping.put(key, value, key_at, value_at)
        if done.anchor is not None:
            self._anchors[done.anchor] = (done.value, done.value.at, done.size, done.height)
        self._add(done.value, done.value.at, done.size, done.height)


_TAKERS: dict[type, Callable[[_Builder, Any], None]] = {
    events.ScalarEvent: _Builder._scalar,
    events.MappingStartEvent: _Builder._start_mapping,
    events.SequenceStartEvent: _Builder._start_sequence,
    events.MappingEndEvent: _Builder._end,
    events.SequenceEndEvent: _Builder._end,
    events.AliasEvent: _Builder._alias,
    events.DocumentStartEvent: _Builder._document,
}


def _core_tag(tag: str) -> str:
    return tag.removeprefix(_CORE)


# --- syntax errors -------------------------------------------------------------------------------------------------


def _separator_problem(text: str, position: int, path: str) -> Diagnostic:
    line, column = _line_and_column(text, position)
    code = f"{ord(text[position]):04X}"
    message = f"U+{code} is a line break in YAML 1.1 and none in YAML 1.2"
    hint = f'remove it, or write it as "\\u{code}" in double quotes'
    return Diagnostic("line-separator", message, path, line, column, hint)


def _line_and_column(text: str, position: int) -> tuple[int, int]:
    before = text[:position].replace("\r\n", "\n").replace("\r", "\n")
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _syntax_problem(error: yaml.YAMLError, text: str, path: str) -> Diagnostic:
    if isinstance(error, yaml.reader.ReaderError):
        position = error.position if isinstance(error.position, int) else 0
        line, column = _line_and_column(text, position)
        character = error.character if isinstance(error.character, int) else 0
        message = f"the control character U+{character:04X} is not allowed"
        return Diagnostic("yaml-syntax", message, path, line, column, "remove it, or escape it in double quotes")
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = readable(str(getattr(error, "problem", None) or error))
    if mark is None:
        return Diagnostic("yaml-syntax", problem, path)
    rest = "".join(text.splitlines(keepends=True)[mark.line : mark.line + 1])
    return Diagnostic(
        "yaml-syntax", problem, path, mark.line + 1, mark.column + 1, _syntax_hint(problem, rest, mark.column)
    )


def _syntax_hint(problem: str, line: str, column: int) -> str:
    here = line[column : column + 1]
    if here == "{" and line[:column].endswith("$"):
        name = line[column:].partition("}")[0].lstrip("{")
        return f'inside {{ }} and [ ] a variable needs quotes: "${{{readable(name)}}}"'
    if here == "\t" or "\t" in line[: column + 1]:
        return "indent with spaces, not tabs"
    if here in ("@", "`", "%"):
        return f"put a text that begins with {here} in quotes"
    if "mapping values are not allowed" in problem:
        return "put a text that holds ': ' in quotes, or check the indentation"
    if "maximum nesting depth" in problem:
        return f"at most {DEEPEST} levels"
    return ""
