"""Where a value differs from what was expected: the rules of `seatrial.core.matching`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.matching.checking import problem_with_operators
from seatrial.core.matching.mismatch import Mismatch, Place
from seatrial.core.matching.pairing import maximum_matching
from seatrial.core.matching.values import (
    JSON_TYPES,
    MISSING,
    Unordered,
    as_decimal,
    as_matched,
    difference_between,
    is_encoded,
    is_number,
    is_operators,
    note_of_type,
    show,
    show_typed,
    type_name,
)
from seatrial.core.text import fold, holds_folded, whole_number

__all__ = ["OPERATORS", "compare"]


def compare(expected: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    """Every difference, as it is found. Raises ValueError where `expected` is no matcher."""
    if is_operators(expected):
        yield from _compare_operators(expected, actual, at)
        return
    wanted, got = as_matched(expected), as_matched(actual)
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        yield from _compare_mappings(wanted, got, at)
    elif isinstance(wanted, list) and isinstance(got, list):
        unordered = isinstance(got, Unordered) or isinstance(wanted, Unordered)
        yield from (_compare_unordered if unordered else _compare_lists)(wanted, got, at)
    elif not _same_scalar(wanted, got) and not _same_encoding(expected, actual):
        yield _scalar_mismatch(wanted, got, at)


def _same_scalar(wanted: Any, got: Any) -> bool:
    if is_number(wanted) and is_number(got):
        return difference_between(wanted, got) == 0
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, str) and isinstance(got, str):
        return str(wanted) == str(got)
    return wanted is None and got is None


def _same_encoding(expected: Any, actual: Any) -> bool:
    return is_encoded(expected) and expected == (actual if is_encoded(actual) else to_json(actual))


def _scalar_mismatch(wanted: Any, got: Any, at: Place) -> Mismatch:
    numbers = is_number(wanted) and is_number(got)
    if got is MISSING or numbers or type_name(wanted) == type_name(got):
        return at.differs(show(wanted), got)
    return at.differs(show_typed(wanted), got, note=note_of_type(got, fits=False))


def _compare_mappings(wanted: Mapping[Any, Any], got: Mapping[Any, Any], at: Place) -> Iterator[Mismatch]:
    for key, item in wanted.items():
        yield from compare(item, got.get(key, MISSING), at.key(key))
    if at.exact:
        for key in got:
            if key not in wanted:
                yield at.key(key).differs("no such key", got[key])


def _compare_lists(wanted: Sequence[Any], got: Sequence[Any], at: Place) -> Iterator[Mismatch]:
    if len(wanted) != len(got):
        yield at.differs(f"{_count(wanted)}: {show(list(wanted))}", list(got), note=f" ({_count(got)})")
        return
    for number, (item, there) in enumerate(zip(wanted, got, strict=True)):
        yield from compare(item, there, at.index(number))


def _count(items: Sequence[Any]) -> str:
    return f"{len(items)} element{'' if len(items) == 1 else 's'}"


def _compare_unordered(wanted: Sequence[Any], got: Sequence[Any], at: Place) -> Iterator[Mismatch]:
    if len(wanted) != len(got) or _unmatched(wanted, got, at):
        yield at.differs(f"{show(list(wanted))} in any order", list(got))


def _unmatched(wanted: Sequence[Any], got: Sequence[Any], at: Place) -> list[Any]:
    """The wanted elements that no element of their own matches."""
    edges = [[n for n, item in enumerate(got) if _holds(want, item, at)] for want in wanted]
    return [want for want, match in zip(wanted, maximum_matching(edges), strict=True) if match is None]


def _holds(expected: Any, actual: Any, at: Place) -> bool:
    return next(compare(expected, actual, at), None) is None


def _compare_operators(expected: Mapping[str, Any], actual: Any, at: Place) -> Iterator[Mismatch]:
    problem = problem_with_operators(expected)
    if problem:
        raise ValueError(problem)
    for name, operand in expected.items():
        yield from OPERATORS[name](operand, actual, at)


def _any(_: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    if actual is MISSING:
        yield at.differs("any value", actual)


def _absent(_: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    if actual is not MISSING:
        yield at.differs("nothing", actual)


def _not(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    if _holds(operand, actual, at):
        yield at.differs(f"anything but {show(operand)}", actual)


def _one_of(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    if not any(_holds(option, actual, at) for option in operand):
        yield at.differs("one of " + ", ".join(show(option) for option in operand), actual)


def _regex(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    text = as_matched(actual)
    if not (isinstance(text, str) and isinstance(operand, str) and re.search(operand, text)):
        yield at.differs(f"text matching {show(operand)}", actual, note=note_of_type(text, isinstance(text, str)))


def _contains(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    there = as_matched(actual)
    wanted = operand if isinstance(operand, list) else [operand]
    fits = isinstance(there, (str, list))
    if not fits or _lacking(wanted, there, at):
        words = " and ".join(map(show, wanted))
        yield at.differs(f"something containing {words}", actual, note=note_of_type(there, fits))


def _lacking(wanted: Sequence[Any], there: str | list[Any], at: Place) -> list[Any]:
    if isinstance(there, str):
        return [want for want in wanted if not (isinstance(want, str) and want in there)]
    return _unmatched(wanted, there, at)


def _unordered(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    there = as_matched(actual)
    if isinstance(there, list):
        yield from _compare_unordered(operand, there, at)
    else:
        yield at.differs(f"{show(operand)} in any order", actual, note=note_of_type(there, fits=False))


_ORDERS: dict[str, tuple[str, Callable[[Decimal], bool]]] = {
    "$gt": ("a number above", lambda difference: difference > 0),
    "$gte": ("a number of at least", lambda difference: difference >= 0),
    "$lt": ("a number below", lambda difference: difference < 0),
    "$lte": ("a number of at most", lambda difference: difference <= 0),
}


def _ordering(name: str) -> Callable[[Any, Any, Place], Iterator[Mismatch]]:
    words, holds = _ORDERS[name]

    def ordered(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
        number = as_matched(actual)
        limit = as_matched(operand)
        difference = difference_between(number, limit) if is_number(number) and is_number(limit) else None
        if difference is None or not holds(difference):
            yield at.differs(f"{words} {show(operand)}", actual, note=note_of_type(number, is_number(number)))

    return ordered


def _approx(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    number, value, tolerance = as_matched(actual), as_matched(operand["value"]), as_matched(operand["tolerance"])
    known = all(is_number(item) for item in (number, value, tolerance))
    difference = difference_between(number, value) if known else None
    if difference is None or not abs(difference) <= as_decimal(tolerance):
        yield at.differs(
            f"{show(value)} within {show(tolerance)}", actual, note=note_of_type(number, is_number(number))
        )


def _type(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    value = as_matched(actual)
    if value is MISSING or operand not in _types_of(value):
        yield at.differs(f"a value of type {operand}", actual, note=note_of_type(value, fits=False))


def _types_of(value: Any) -> set[str]:
    name = type_name(value)
    if not is_number(value):
        return {name if name in JSON_TYPES else "object"}
    whole = isinstance(value, int) or _whole(value)
    return {"number", "integer"} if whole else {"number"}


def _whole(value: Any) -> bool:
    number = as_decimal(value)
    return number.is_finite() and number == number.to_integral_value()


def _exact(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    yield from compare(operand, actual, replace(at, exact=True))


def _folded(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    text = as_matched(actual)
    part = operand.get("$contains") if isinstance(operand, Mapping) else None
    wanted = operand if part is None else part
    known = isinstance(text, str) and isinstance(wanted, str)
    if not known or (fold(wanted) != fold(text) if part is None else not holds_folded(text, wanted)):
        words = f"{show(wanted)} in any case" if part is None else f"text containing {show(wanted)} in any case"
        yield at.differs(words, actual, note=note_of_type(text, isinstance(text, str)))


def _number_text(operand: Any, actual: Any, at: Place) -> Iterator[Mismatch]:
    value = as_matched(actual)
    number = whole_number(value) if isinstance(value, str) else value
    if not is_number(number):
        yield at.differs(
            f"text that reads as a number ({show(operand)})", actual, note=note_of_type(value, is_number(value))
        )
    else:
        yield from compare(operand, number, at)


OPERATORS: dict[str, Callable[[Any, Any, Place], Iterator[Mismatch]]] = {
    "$any": _any,
    "$absent": _absent,
    "$not": _not,
    "$one_of": _one_of,
    "$regex": _regex,
    "$contains": _contains,
    "$unordered": _unordered,
    "$gt": _ordering("$gt"),
    "$gte": _ordering("$gte"),
    "$lt": _ordering("$lt"),
    "$lte": _ordering("$lte"),
    "$approx": _approx,
    "$type": _type,
    "$exact": _exact,
    "$folded": _folded,
    "$number_text": _number_text,
}
"""What each operator compares; `seatrial.core.matching.checking` says what it takes."""
