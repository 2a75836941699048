"""`matrix` of a case: one case a combination, with `${name}` in its texts replaced.

A mapping of lists gives their product, a list of mappings one case each. A text that is exactly `${name}` becomes the
value with its type, elsewhere the value's text takes its place; `$${name}` stands for the text `${name}` itself.
Keys are left alone. A case without a matrix is not touched: there `${name}` is text like any other.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, did_you_mean
from seatrial.loading.located import NOWHERE, Map, Seq, Spot, plain, problem_at, shown

__all__ = ["VARIABLE", "expansions", "mentions"]

VARIABLE = re.compile(r"\$(\$?)\{([^{}]*)\}")
"""`${name}`, or `$${name}` for the text itself."""
MOST_EXPANSIONS = 10_000
_LONGEST_LABEL = 60


def expansions(case: Map, problems: list[Diagnostic]) -> Iterator[tuple[str, Map]]:
    """Every (suffix of the id, case without `matrix`); one with an empty suffix when there is no matrix."""
    matrix = case.get("matrix")
    if matrix is None:
        yield "", case.without("matrix") if "matrix" in case else case
        return
    rest = case.without("matrix")
    for values in _combinations(matrix, case.values_at["matrix"], problems):
        suffix = "[" + ",".join(f"{name}={_label(value)}" for name, value in values.items()) + "]"
        yield suffix, _filled(rest, values, case.at, problems)


def mentions(value: Any, at: Spot = NOWHERE) -> Iterator[tuple[str, Spot]]:
    """Every `${name}` in the texts of `value` with the spot of its text."""
    if isinstance(value, Map):
        for _, item, _, spot in value.entries():
            yield from mentions(item, spot)
    elif isinstance(value, Seq):
        for item, spot in zip(value, value.values_at, strict=True):
            yield from mentions(item, spot)
    elif isinstance(value, str) and "${" in value:
        yield from ((name, at) for escaped, name in VARIABLE.findall(value) if not escaped)


# --- combinations --------------------------------------------------------------------------------------------------


def _combinations(matrix: Any, spot: Spot, problems: list[Diagnostic]) -> list[dict[str, Any]]:
    problem = _problem_with_matrix(matrix, spot)
    if problem is not None:
        problems.append(problem)
        return []
    if isinstance(matrix, Seq):
        return [dict(item) for item in matrix]
    return [dict(zip(matrix, values, strict=True)) for values in itertools.product(*matrix.values())]


def _problem_with_matrix(matrix: Any, spot: Spot) -> Diagnostic | None:
    if not isinstance(matrix, (Map, Seq)) or not matrix:
        message = f"`matrix` is a mapping of lists or a list of mappings, not {shown(matrix, spot)}"
        empty = isinstance(matrix, (Map, Seq))
        return problem_at(spot, "matrix", "`matrix` is empty, so the case would vanish" if empty else message)
    if isinstance(matrix, Seq):
        return next(filter(None, (_problem_with_row(row, at) for row, at in zip(matrix, matrix.values_at))), None)  # noqa: B905
    for name, values, key_at, value_at in matrix.entries():
        if not name or VARIABLE.fullmatch("${" + name + "}") is None:
            return problem_at(key_at, "matrix", f"{readable(name)!r} cannot be the name of a matrix value")
        if not isinstance(values, Seq) or not values:
            message = f"`matrix.{readable(name)}` is a list of one value or more, not {shown(values, value_at)}"
            return problem_at(value_at, "matrix", message, "write [ ] around the values")
    count = math.prod(len(values) for values in matrix.values())
    if count > MOST_EXPANSIONS:
        return problem_at(spot, "matrix", f"`matrix` makes {count:,} cases of one; the most is {MOST_EXPANSIONS:,}")
    return None


def _problem_with_row(row: Any, at: Spot) -> Diagnostic | None:
    if isinstance(row, Map) and row:
        return None
    return problem_at(at, "matrix", f"an entry of `matrix` is a mapping of names to values, not {shown(row, at)}")


def _label(value: Any) -> str:
    """A value in an id: readable, short, and different for different values."""
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    if len(text) <= _LONGEST_LABEL:
        return readable(text)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return readable(text[:40]) + "~" + digest


# --- filling in ----------------------------------------------------------------------------------------------------


def _filled(value: Any, values: dict[str, Any], at: Spot, problems: list[Diagnostic]) -> Any:
    if isinstance(value, str):
        return _filled_text(value, values, at, problems) if "${" in value else value
    if isinstance(value, Map):
        mapping = Map(value.at)
        for key, item, key_at, spot in value.entries():
            filled = _filled(item, values, spot, problems)
            mapping.put(key, filled, key_at, _spot_of(item, filled, spot))
        return mapping
    if isinstance(value, Seq):
        sequence = Seq(value.at)
        for item, spot in zip(value, value.values_at, strict=True):
            filled = _filled(item, values, spot, problems)
            sequence.put(filled, _spot_of(item, filled, spot))
        return sequence
    return value


def _spot_of(written: Any, filled: Any, spot: Spot) -> Spot:
    """The spot of a value that came out of a text: it shows the value, and names the variable."""
    if not isinstance(written, str) or isinstance(filled, (str, Map, Seq)):
        return spot
    return spot._replace(written=json.dumps(filled), variable=written)


def _filled_text(text: str, values: dict[str, Any], at: Spot, problems: list[Diagnostic]) -> Any:
    whole = VARIABLE.fullmatch(text)
    if whole is not None and not whole[1] and whole[2] in values:
        return values[whole[2]]

    def replaced(match: re.Match[str]) -> str:
        escaped, name = match.groups()
        if escaped:
            return match.group()[1:]
        if name not in values:
            problems.append(_unknown(name, values, at))
            return ""
        value = values[name]
        return value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)

    return VARIABLE.sub(replaced, text)


def _unknown(name: str, values: dict[str, Any], at: Spot) -> Diagnostic:
    message = f"`${{{readable(name)}}}` is no value of this case's matrix"
    hint = f"{did_you_mean(name, list(values))}; `$${{{readable(name)}}}` stands for the text itself"
    return problem_at(at, "unknown-variable", message, hint.removeprefix("; "))
