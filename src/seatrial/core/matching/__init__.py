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

from typing import Any

from seatrial.core.matching.checking import problem_with_matcher
from seatrial.core.matching.comparing import compare
from seatrial.core.matching.mismatch import Mismatch, Place
from seatrial.core.matching.pairing import maximum_matching
from seatrial.core.matching.paths import lookup_path, missing_references, resolve_input
from seatrial.core.matching.values import MISSING, show, type_name

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


def mismatches(expected: Any, actual: Any, *, path: str = "", input: Any = None) -> list[Mismatch]:  # noqa: A002
    """Every difference, in order; an empty list when `actual` matches.

    `actual` is JSON data, any Python value or MISSING. Raises ValueError when `expected` is no matcher, see
    `problem_with_matcher`.
    """
    return list(compare(resolve_input(expected, input), actual, Place(path)))


def matches(expected: Any, actual: Any, *, input: Any = None) -> bool:  # noqa: A002
    """Whether `actual` is what was expected."""
    return next(compare(resolve_input(expected, input), actual, Place()), None) is None
