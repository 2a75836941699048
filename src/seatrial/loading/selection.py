"""Which cases are meant: by position (path, suite or case id), suite, tag, risk, keyword, or a set of ids.

Positions add up; every other condition narrows. A case id selects all expansions of its matrix, an expanded id just
one. A path is taken relative to the working folder, else to the project, else to its `cases/`. `-k` looks for words
in id, suite and tags, whatever their case, and knows `and`, `or`, `not` and brackets.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.core.case import Case
from seatrial.core.ids import readable
from seatrial.errors import NothingSelected, UsageError, nearest

__all__ = ["Selection", "select"]

Test = Callable[[Case], bool]
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


@dataclass(frozen=True)
class Selection:
    """What the user asked for; empty means all."""

    select: tuple[str, ...] = ()
    suites: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """A case with any of them."""
    risks: tuple[str, ...] = ()
    keyword: str = ""
    ids: frozenset[str] | None = None
    """Expanded ids, such as those that failed; None = no condition."""


def select(cases: Sequence[Case], selection: Selection, root: Path) -> tuple[Case, ...]:
    """The selected cases in their order.

    Raises NothingSelected when nothing is left, or a position, suite or tag matches no case; the message names the
    nearest one. Raises UsageError for a keyword expression that cannot be read.
    """
    if not cases:
        raise NothingSelected(f"there are no cases in {root / 'cases'}")
    chosen = _by_position(cases, selection.select, root)
    for what, wanted, values in _conditions(selection):
        _check_known(what, wanted, {value for case in cases for value in values(case)})
        chosen = [case for case in chosen if not wanted or not set(wanted).isdisjoint(values(case))]
    if selection.ids is not None:
        chosen = [case for case in chosen if case.id in selection.ids]
    if selection.keyword.strip():
        test = _Keyword(selection.keyword).test()
        chosen = [case for case in chosen if test(case)]
    if not chosen:
        raise NothingSelected(f"no case fits {_described(selection)}")
    return tuple(chosen)


def _conditions(selection: Selection) -> list[tuple[str, tuple[str, ...], Callable[[Case], tuple[str, ...]]]]:
    return [
        ("suite", selection.suites, lambda case: (case.suite,)),
        ("tag", selection.tags, lambda case: case.tags),
        ("risk", selection.risks, lambda case: (case.risk,)),
    ]


def _check_known(what: str, wanted: Iterable[str], known: set[str]) -> None:
    for name in wanted:
        if name not in known:
            raise NothingSelected(f"no case has the {what} {readable(name)!r}{_nearest(name, known)}")


def _nearest(name: str, known: Iterable[str]) -> str:
    close = nearest(name, known)
    return f"; did you mean {close!r}?" if close else ""


def _described(selection: Selection) -> str:
    parts = [readable(repr(item)) for item in selection.select]
    for flag, values in (("--suite", selection.suites), ("--tag", selection.tags), ("--risk", selection.risks)):
        parts += [f"{flag} {readable(value)}" for value in values]
    if selection.keyword:
        parts.append(f"-k {readable(repr(selection.keyword))}")
    if selection.ids is not None:
        parts.append(f"the {len(selection.ids)} ids asked for")
    return " with ".join(parts) or "the selection"


# --- positions -----------------------------------------------------------------------------------------------------


def _by_position(cases: Sequence[Case], positions: Sequence[str], root: Path) -> list[Case]:
    if not positions:
        return list(cases)
    places = [_places(root / case.path) for case in cases]
    chosen: set[int] = set()
    for position in positions:
        found = _at(position, cases, places, root)
        if not found:
            known = {name for case in cases for name in (case.id, case.base_id, case.suite, case.path) if name}
            message = f"{readable(position)!r} is no path, suite or case id here"
            raise NothingSelected(message + _nearest(position, known))
        chosen |= found
    return [case for number, case in enumerate(cases) if number in chosen]


def _places(path: Path) -> frozenset[Path]:
    """Where a file lies, with every folder above it: as it is named, and behind symbolic links."""
    named, real = _named(path), path.resolve()
    return frozenset((named, *named.parents, real, *real.parents))


def _named(path: Path) -> Path:
    """`path` absolute and without `..`, its symbolic links left alone."""
    return Path(os.path.abspath(path))  # noqa: PTH100  resolve() would follow the links


def _at(position: str, cases: Sequence[Case], places: Sequence[frozenset[Path]], root: Path) -> set[int]:
    found = {n for n, case in enumerate(cases) if position in (case.id, case.base_id, case.suite)}
    if "\0" in position:
        return found
    for folder in (Path.cwd(), root, root / "cases"):
        meant = {_named(folder / position), (folder / position).resolve()}
        below = {n for n, place in enumerate(places) if not place.isdisjoint(meant)}
        if below:
            return found | below
    return found


# --- keywords ------------------------------------------------------------------------------------------------------


class _Keyword:
    """Reads `refund and not (slow or flaky)`; `or` binds least, `not` most."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = _TOKEN.findall(text)
        self._next = 0

    def test(self) -> Test:
        """The whole expression. Raises UsageError."""
        test = self._either()
        if self._next < len(self._tokens):
            raise self._error(f"unexpected {self._tokens[self._next]!r}")
        return test

    def _either(self) -> Test:
        tests = [self._both()]
        while self._take("or"):
            tests.append(self._both())
        return lambda case: any(test(case) for test in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._take("and"):
            tests.append(self._single())
        return lambda case: all(test(case) for test in tests)

    def _single(self) -> Test:
        if self._take("not"):
            test = self._single()
            return lambda case: not test(case)
        if self._take("("):
            test = self._either()
            if not self._take(")"):
                raise self._error("a bracket is not closed")
            return test
        return self._word()

    def _word(self) -> Test:
        token = self._tokens[self._next] if self._next < len(self._tokens) else None
        if token is None or token in ("and", "or", ")"):
            raise self._error("a word is missing" if token is None else f"a word is missing before {token!r}")
        self._next += 1
        word = token.casefold()
        return lambda case: any(word in name.casefold() for name in (case.id, case.suite, *case.tags))

    def _take(self, token: str) -> bool:
        found = self._next < len(self._tokens) and self._tokens[self._next] == token
        self._next += found
        return found

    def _error(self, problem: str) -> UsageError:
        hint = "write words joined by and, or, not and brackets"
        return UsageError(f"-k {readable(self._text)!r}: {problem}; {hint}")
