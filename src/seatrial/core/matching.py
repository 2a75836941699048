"""Whether a value is what was expected, and if not, where and why.

The rules, in one place (stand-ins, permissions, observers and graders all use them):

- A mapping matches as a subset at any depth; `{$exact: ...}` allows no further keys at any depth below it.
- A list matches element by element and in full; `$unordered` drops the order, `$contains` the rest.
- Numbers match by value (750 is 750.0, a decimal counts like any number), but true is no number and "100" no 100.
- Text matches exactly, null matches only null, and an absent key matches neither null nor text.
- NaN matches nothing but itself written as `{$type: float, value: nan}`; it never raises.

Operators are mappings of `$` keys; several in one mapping must all hold:

    $any: true          there is a value, null too          $regex: text     a regular expression is found in the text
    $absent: true       there is no such key                $contains: x     text holds x; a list holds an element that
    $not: matcher       the matcher does not match                           matches x (each of x, when x is a list)
                        (an absent key does not either)     $unordered: []   the same elements in any order
    $one_of: [..]       one of these matchers matches       $type: name      integer (3.0 too), number, string, boolean,
    $gt $gte $lt $lte   compared with a number                               array, object, null
    $approx: {value, tolerance}                             $exact: matcher  no further keys
    $folded: text       equal after folding (case, NFKC, white space); {$contains: text} for a part of it
    $number_text: n     a number, or text that reads as one ("1,000", "750.00"), that matches n

Values that JSON lacks arrive encoded (`seatrial.core.encoding`): a decimal matches as a number, a set matches a list
in any order, a dataclass matches a mapping of its fields, a date or time matches its ISO text; anything else matches
its encoded form. `$input.path` stands for a value of the case's input; a path that is not there is null.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from typing import Any, Final

from seatrial.core.encoding import dumps, to_json
from seatrial.core.text import fold, holds_folded, problem_with_pattern, whole_number
from seatrial.errors import did_you_mean

__all__ = [
    "MISSING",
    "Mismatch",
    "lookup_path",
    "matches",
    "maximum_matching",
    "mismatches",
    "missing_references",
    "problem_with_matcher",
    "resolve_input",
    "show",
    "type_name",
]


class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()
"""What `lookup_path` gives where there is no value; it is not null."""


@dataclass(frozen=True)
class Mismatch:
    """One difference between what was expected and what is there."""

    path: str
    """Such as `arguments.items[0].id`; empty for the value itself."""
    expected: str
    actual: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}" if self.path else self.message


def mismatches(expected: Any, actual: Any, *, path: str = "", input: Any = None) -> list[Mismatch]:  # noqa: A002
    """Every difference, in order; an empty list when `actual` matches.

    `actual` is JSON data, any Python value or MISSING. Raises ValueError when `expected` is no matcher, see
    `problem_with_matcher`.
    """
    return list(_compare(resolve_input(expected, input), actual, _Place(path)))


def matches(expected: Any, actual: Any, *, input: Any = None) -> bool:  # noqa: A002
    """Whether `actual` is what was expected."""
    return next(_compare(resolve_input(expected, input), actual, _Place()), None) is None


# --- paths and references -----------------------------------------------------------------------------------------

_STEP = re.compile(r"\[(-?\d+)\]|([^.\[\]]+)")
_REFERENCE = re.compile(r"\$input(?=$|[.\[])")


def lookup_path(data: Any, path: str) -> Any:
    """The value at a dotted path such as `order.items[0].id`, or MISSING.

    A key that is itself spelt like the path wins; a number between dots also indexes a list; "" is `data` itself.
    """
    if isinstance(data, Mapping) and path in data:
        return data[path]
    value = data
    for index, key in _STEP.findall(path):
        value = _step(value, index or key)
        if value is MISSING:
            break
    return value


def _step(value: Any, key: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(key, MISSING)
    if isinstance(value, (list, tuple)) and key.lstrip("-").isdecimal():
        at = int(key)
        return value[at] if -len(value) <= at < len(value) else MISSING
    return MISSING


def resolve_input(expected: Any, input: Any) -> Any:  # noqa: A002
    """`expected` with every text that is exactly `$input` or `$input.path` replaced by that value of the case's input.

    A path that is not there becomes None. Without an input (None) texts stay as they are.
    """
    if input is None:
        return expected
    if isinstance(expected, str) and _REFERENCE.match(expected):
        value = _referred(expected, input)
        return None if value is MISSING else value
    if isinstance(expected, Mapping):
        return {key: resolve_input(item, input) for key, item in expected.items()}
    if isinstance(expected, (list, tuple)):
        return [resolve_input(item, input) for item in expected]
    return expected


def _referred(text: str, data: Any) -> Any:
    return lookup_path(data, text.removeprefix("$input").removeprefix("."))


def missing_references(expected: Any, input: Any) -> list[str]:  # noqa: A002
    """The `$input` references in `expected` that lead nowhere in this input: most likely spelling mistakes."""
    if isinstance(expected, str):
        lost = _REFERENCE.match(expected) and _referred(expected, input) is MISSING
        return [expected] if lost else []
    items = expected.values() if isinstance(expected, Mapping) else expected
    if not isinstance(expected, (Mapping, list, tuple)):
        return []
    return [text for item in items for text in missing_references(item, input)]


# --- values -------------------------------------------------------------------------------------------------------

_ENCODED = frozenset({"decimal", "bytes", "set", "datetime", "dataclass", "object", "float", "cycle", "mapping"})
_JSON_TYPES = ("integer", "number", "string", "boolean", "array", "object", "null")


class _Set(list[Any]):
    """Elements without an order."""


class _Moment(str):
    """A date or time as its ISO text."""

    __slots__ = ()


def _is_encoded(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"$type", "value"} and value["$type"] in _ENCODED


def _plain(value: Any) -> Any:
    """A value as the rules see it: encoded kinds that mean something read back, Python's own kinds made JSON."""
    if value is None or value is MISSING or isinstance(value, (str, bool, int, float, Decimal, list)):
        return value
    if not isinstance(value, Mapping):
        value = to_json(value)
    return _decoded(value) if _is_encoded(value) else value


def _decoded(marked: Mapping[str, Any]) -> Any:
    reader = _READERS.get(str(marked["$type"]))
    try:
        return marked if reader is None else reader(str(marked["value"]))
    except (ValueError, ArithmeticError):  # not written by `to_json`: then it is a mapping like any other
        return marked


_READERS: dict[str, Callable[[str], Any]] = {
    "float": float,
    "decimal": Decimal,
    "set": lambda text: _Set(json.loads(text)),
    "datetime": _Moment,
    "dataclass": lambda text: json.loads(text.partition(" ")[2]),
    "mapping": lambda text: dict(json.loads(text)),
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _decimal(number: Any) -> Decimal:
    """By the digits one reads: 0.1 is a tenth."""
    return Decimal(repr(float(number))) if isinstance(number, float) else Decimal(number)


def _difference(left: Any, right: Any) -> Decimal | None:
    """`left - right`; None when one of them is NaN (or both are the same infinity: then 0)."""
    a, b = _decimal(left), _decimal(right)
    if a.is_nan() or b.is_nan():
        return None
    if a == b:
        return Decimal(0)
    with localcontext() as context:
        context.prec = 60
        context.clear_traps()
        return a - b


def type_name(value: Any) -> str:
    """The JSON type of a value, as messages and `$type` name it."""
    value = _plain(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if _is_number(value):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else str(value["$type"]) if _is_encoded(value) else "object"


def show(value: Any) -> str:
    """A value as messages show it: text in quotes, JSON words for the rest, cut when it is long."""
    value = value if _is_operators(value) else _plain(value)
    if value is MISSING:
        return "nothing"
    text = repr(str(value)) if isinstance(value, str) else str(value) if isinstance(value, Decimal) else _json(value)
    return text if len(text) <= 200 else f"{text[:190]}... ({len(text)} characters)"


def _json(value: Any) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError):  # not yet JSON data
        return dumps(to_json(value))


def _note(value: Any, fits: bool) -> str:
    """The type of a value that is of the wrong kind, where it does not show."""
    return "" if fits or value is None or value is MISSING else f" ({type_name(value)})"


# --- comparing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    """Where in the value we are, and whether further keys are allowed."""

    path: str = ""
    exact: bool = False

    def key(self, key: str) -> _Place:
        return replace(self, path=f"{self.path}.{key}" if self.path else str(key))

    def index(self, at: int) -> _Place:
        return replace(self, path=f"{self.path}[{at}]")

    def differs(self, wanted: str, actual: Any, *, note: str = "") -> Mismatch:
        got = show(actual) + note
        return Mismatch(self.path, wanted, got, f"expected {wanted}, got {got}")


def _is_operators(expected: Any) -> bool:
    return (
        isinstance(expected, Mapping)
        and any(isinstance(key, str) and key.startswith("$") for key in expected)
        and not _is_encoded(expected)
    )


def _compare(expected: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    if _is_operators(expected):
        yield from _compare_operators(expected, actual, at)
        return
    wanted, got = _plain(expected), _plain(actual)
    if isinstance(wanted, Mapping) and isinstance(got, Mapping):
        yield from _compare_mappings(wanted, got, at)
    elif isinstance(wanted, list) and isinstance(got, list):
        unordered = isinstance(got, _Set) or isinstance(wanted, _Set)
        yield from (_compare_unordered if unordered else _compare_lists)(wanted, got, at)
    elif not _same_scalar(wanted, got) and not _same_encoding(expected, actual):
        yield _scalar_mismatch(wanted, got, at)


def _same_scalar(wanted: Any, got: Any) -> bool:
    if _is_number(wanted) and _is_number(got):
        return _difference(wanted, got) == 0
    if isinstance(wanted, bool) or isinstance(got, bool):
        return wanted is got
    if isinstance(wanted, str) and isinstance(got, str):
        return str(wanted) == str(got)
    return wanted is None and got is None


def _same_encoding(expected: Any, actual: Any) -> bool:
    return _is_encoded(expected) and expected == (actual if _is_encoded(actual) else to_json(actual))


def _scalar_mismatch(wanted: Any, got: Any, at: _Place) -> Mismatch:
    numbers = _is_number(wanted) and _is_number(got)
    if got is MISSING or numbers or type_name(wanted) == type_name(got):
        return at.differs(show(wanted), got)
    return at.differs(_typed(wanted), got, note=_note(got, fits=False))


def _typed(value: Any) -> str:
    return show(value) if value is None else f"{show(value)} ({type_name(value)})"


def _compare_mappings(wanted: Mapping[Any, Any], got: Mapping[Any, Any], at: _Place) -> Iterator[Mismatch]:
    for key, item in wanted.items():
        yield from _compare(item, got.get(key, MISSING), at.key(key))
    if at.exact:
        for key in got:
            if key not in wanted:
                yield at.key(key).differs("no such key", got[key])


def _compare_lists(wanted: Sequence[Any], got: Sequence[Any], at: _Place) -> Iterator[Mismatch]:
    if len(wanted) != len(got):
        yield at.differs(f"{_count(wanted)}: {show(list(wanted))}", list(got), note=f" ({_count(got)})")
        return
    for number, (item, there) in enumerate(zip(wanted, got, strict=True)):
        yield from _compare(item, there, at.index(number))


def _count(items: Sequence[Any]) -> str:
    return f"{len(items)} element{'' if len(items) == 1 else 's'}"


def _compare_unordered(wanted: Sequence[Any], got: Sequence[Any], at: _Place) -> Iterator[Mismatch]:
    if len(wanted) != len(got) or _unmatched(wanted, got, at):
        yield at.differs(f"{show(list(wanted))} in any order", list(got))


def _unmatched(wanted: Sequence[Any], got: Sequence[Any], at: _Place) -> list[Any]:
    """The wanted elements that no element of their own matches."""
    edges = [[n for n, item in enumerate(got) if _holds(want, item, at)] for want in wanted]
    return [want for want, match in zip(wanted, maximum_matching(edges), strict=True) if match is None]


def _holds(expected: Any, actual: Any, at: _Place) -> bool:
    return next(_compare(expected, actual, at), None) is None


# --- operators ----------------------------------------------------------------------------------------------------


def _compare_operators(expected: Mapping[str, Any], actual: Any, at: _Place) -> Iterator[Mismatch]:
    problem = _problem_with_keys(expected)
    if problem:
        raise ValueError(problem)
    for name, operand in expected.items():
        yield from _OPERATORS[name].compare(operand, actual, at)


def _any(_: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    if actual is MISSING:
        yield at.differs("any value", actual)


def _absent(_: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    if actual is not MISSING:
        yield at.differs("nothing", actual)


def _not(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    if _holds(operand, actual, at):
        yield at.differs(f"anything but {show(operand)}", actual)


def _one_of(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    if not any(_holds(option, actual, at) for option in operand):
        yield at.differs("one of " + ", ".join(show(option) for option in operand), actual)


def _regex(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    text = _plain(actual)
    if not (isinstance(text, str) and isinstance(operand, str) and re.search(operand, text)):
        yield at.differs(f"text matching {show(operand)}", actual, note=_note(text, isinstance(text, str)))


def _contains(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    there = _plain(actual)
    wanted = operand if isinstance(operand, list) else [operand]
    fits = isinstance(there, (str, list))
    if not fits or _lacking(wanted, there, at):
        words = " and ".join(map(show, wanted))
        yield at.differs(f"something containing {words}", actual, note=_note(there, fits))


def _lacking(wanted: Sequence[Any], there: str | list[Any], at: _Place) -> list[Any]:
    if isinstance(there, str):
        return [want for want in wanted if not (isinstance(want, str) and want in there)]
    return _unmatched(wanted, there, at)


def _unordered(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    there = _plain(actual)
    if isinstance(there, list):
        yield from _compare_unordered(operand, there, at)
    else:
        yield at.differs(f"{show(operand)} in any order", actual, note=_note(there, fits=False))


_ORDERS: dict[str, tuple[str, Callable[[Decimal], bool]]] = {
    "$gt": ("a number above", lambda difference: difference > 0),
    "$gte": ("a number of at least", lambda difference: difference >= 0),
    "$lt": ("a number below", lambda difference: difference < 0),
    "$lte": ("a number of at most", lambda difference: difference <= 0),
}


def _ordering(name: str) -> Callable[[Any, Any, _Place], Iterator[Mismatch]]:
    words, holds = _ORDERS[name]

    def compare(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
        number = _plain(actual)
        limit = _plain(operand)
        difference = _difference(number, limit) if _is_number(number) and _is_number(limit) else None
        if difference is None or not holds(difference):
            yield at.differs(f"{words} {show(operand)}", actual, note=_note(number, _is_number(number)))

    return compare


def _approx(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    number, value, tolerance = _plain(actual), _plain(operand["value"]), _plain(operand["tolerance"])
    known = all(_is_number(item) for item in (number, value, tolerance))
    difference = _difference(number, value) if known else None
    if difference is None or not abs(difference) <= _decimal(tolerance):
        yield at.differs(f"{show(value)} within {show(tolerance)}", actual, note=_note(number, _is_number(number)))


def _type(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    value = _plain(actual)
    if value is MISSING or operand not in _types_of(value):
        yield at.differs(f"a value of type {operand}", actual, note=_note(value, fits=False))


def _types_of(value: Any) -> set[str]:
    name = type_name(value)
    if not _is_number(value):
        return {name if name in _JSON_TYPES else "object"}
    whole = isinstance(value, int) or _whole(value)
    return {"number", "integer"} if whole else {"number"}


def _whole(value: Any) -> bool:
    number = _decimal(value)
    return number.is_finite() and number == number.to_integral_value()


def _exact(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    yield from _compare(operand, actual, replace(at, exact=True))


def _folded(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    text = _plain(actual)
    part = operand.get("$contains") if isinstance(operand, Mapping) else None
    wanted = operand if part is None else part
    known = isinstance(text, str) and isinstance(wanted, str)
    if not known or (fold(wanted) != fold(text) if part is None else not holds_folded(text, wanted)):
        words = f"{show(wanted)} in any case" if part is None else f"text containing {show(wanted)} in any case"
        yield at.differs(words, actual, note=_note(text, isinstance(text, str)))


def _number_text(operand: Any, actual: Any, at: _Place) -> Iterator[Mismatch]:
    value = _plain(actual)
    number = whole_number(value) if isinstance(value, str) else value
    if not _is_number(number):
        yield at.differs(f"text that reads as a number ({show(operand)})", actual, note=_note(value, _is_number(value)))
    else:
        yield from _compare(operand, number, at)


# --- are these matchers at all? -----------------------------------------------------------------------------------


def _is_reference(operand: Any) -> bool:
    return isinstance(operand, str) and _REFERENCE.match(operand) is not None


def _takes_true(operand: Any) -> str | None:
    return None if operand is True else f"takes true, not {_typed(operand)}"


def _takes_number(operand: Any) -> str | None:
    number = _is_number(operand) and _decimal(operand).is_finite()
    return None if number or _is_reference(operand) else f"takes a number, not {_typed(operand)}"


def _takes_list(operand: Any) -> str | None:
    if not isinstance(operand, (list, tuple)):
        return None if _is_reference(operand) else f"takes a list, not {_typed(operand)}"
    return _first_problem(operand)


def _takes_options(operand: Any) -> str | None:
    return (
        "takes a list of at least one" if isinstance(operand, (list, tuple)) and not operand else _takes_list(operand)
    )


def _takes_pattern(operand: Any) -> str | None:
    if not isinstance(operand, str):
        return f"takes a text, not {_typed(operand)}"
    return None if _is_reference(operand) else problem_with_pattern(operand)


def _takes_approx(operand: Any) -> str | None:
    if not isinstance(operand, Mapping) or operand.keys() != {"value", "tolerance"}:
        return f"takes {{value: number, tolerance: number}}, not {show(operand)}"
    problem = _takes_number(operand["value"]) or _takes_number(operand["tolerance"])
    if problem is None and _is_number(operand["tolerance"]) and operand["tolerance"] < 0:
        return f"takes a tolerance of 0 or more, not {show(operand['tolerance'])}"
    return problem


def _takes_type(operand: Any) -> str | None:
    if operand in _JSON_TYPES:
        return None
    hint = did_you_mean(str(operand), _JSON_TYPES)
    return f"takes one of {', '.join(_JSON_TYPES)}, not {_typed(operand)}" + (
        f"; {hint}" if hint.startswith("did") else ""
    )


def _takes_folded(operand: Any) -> str | None:
    inner = operand.get("$contains") if isinstance(operand, Mapping) and len(operand) == 1 else operand
    return None if isinstance(inner, str) else f"takes a text or {{$contains: text}}, not {show(operand)}"


def _takes_number_matcher(operand: Any) -> str | None:
    return problem_with_matcher(operand) if isinstance(operand, Mapping) else _takes_number(operand)


def problem_with_matcher(expected: Any) -> str | None:
    """Why `expected` cannot be matched against anything (unknown operator, wrong operand, bad pattern), or None."""
    if _is_operators(expected):
        return _problem_with_keys(expected)
    if isinstance(expected, Mapping) and not _is_encoded(expected):
        return _first_problem(expected.values())
    return _first_problem(expected) if isinstance(expected, (list, tuple)) else None


def _first_problem(items: Any) -> str | None:
    return next(filter(None, map(problem_with_matcher, items)), None)


def _problem_with_keys(expected: Mapping[str, Any]) -> str | None:
    plain = [str(key) for key in expected if not str(key).startswith("$")]
    if plain:
        return f"operators and plain keys cannot stand in one mapping: {', '.join(map(str, expected))}"
    for name, operand in expected.items():
        if name not in _OPERATORS:
            hint = did_you_mean(name, list(_OPERATORS))
            return f"unknown operator {name!r}" + (f"; {hint}" if hint else "")
        problem = _OPERATORS[name].check(operand)
        if problem:
            return f"{name} {problem}" if problem.startswith("takes") else problem
    return None


@dataclass(frozen=True)
class _Operator:
    compare: Callable[[Any, Any, _Place], Iterator[Mismatch]]
    check: Callable[[Any], str | None]


_OPERATORS: dict[str, _Operator] = {
    "$any": _Operator(_any, _takes_true),
    "$absent": _Operator(_absent, _takes_true),
    "$not": _Operator(_not, problem_with_matcher),
    "$one_of": _Operator(_one_of, _takes_options),
    "$regex": _Operator(_regex, _takes_pattern),
    "$contains": _Operator(_contains, problem_with_matcher),
    "$unordered": _Operator(_unordered, _takes_list),
    "$gt": _Operator(_ordering("$gt"), _takes_number),
    "$gte": _Operator(_ordering("$gte"), _takes_number),
    "$lt": _Operator(_ordering("$lt"), _takes_number),
    "$lte": _Operator(_ordering("$lte"), _takes_number),
    "$approx": _Operator(_approx, _takes_approx),
    "$type": _Operator(_type, _takes_type),
    "$exact": _Operator(_exact, problem_with_matcher),
    "$folded": _Operator(_folded, _takes_folded),
    "$number_text": _Operator(_number_text, _takes_number_matcher),
}


# --- one to one ---------------------------------------------------------------------------------------------------


def maximum_matching(edges: Sequence[Sequence[int]]) -> list[int | None]:
    """For each left node its own right node, or None; as many pairs as possible.

    `edges[left]` lists the right nodes that suit. Left nodes that come first are served first: a later one never
    takes a partner away without giving another (augmenting paths, Berge 1957).
    """
    partner: list[int | None] = [None] * len(edges)
    owner: dict[int, int] = {}
    for left in range(len(edges)):
        _augment(left, edges, partner, owner)
    return partner


def _augment(start: int, edges: Sequence[Sequence[int]], partner: list[int | None], owner: dict[int, int]) -> None:
    reached: dict[int, int] = {}
    queue = deque([start])
    while queue:
        left = queue.popleft()
        for right in edges[left]:
            if right in reached:
                continue
            reached[right] = left
            if right not in owner:
                _flip(right, reached, partner, owner)
                return
            queue.append(owner[right])


def _flip(right: int | None, reached: Mapping[int, int], partner: list[int | None], owner: dict[int, int]) -> None:
    while right is not None:
        left = reached[right]
        freed = partner[left]
        partner[left], owner[right] = right, left
        right = freed
