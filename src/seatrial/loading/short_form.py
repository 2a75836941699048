"""The short form of a case, turned into the long one before anything is merged.

`query` is `input`; `expected_answer`, `expected_tools`, `forbidden_tools`, `max_steps` go below `expected`; `trials`
goes below `thresholds` and `timeout_s` below `limits`. The short keys work in cases, file defaults, suites and the
project's defaults alike. A thing written in both forms is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.errors import Diagnostic
from seatrial.loading.located import Map, Spot, problem_at
from seatrial.loading.validation import text_problem

__all__ = ["SHORT_KEYS", "long_form"]

SHORT_KEYS: Mapping[str, tuple[str, ...]] = {
    "query": ("input",),
    "expected_answer": ("expected", "answer"),
    "expected_tools": ("expected", "required_tools"),
    "forbidden_tools": ("expected", "forbidden_tools"),
    "max_steps": ("expected", "max_steps"),
    "trials": ("thresholds", "trials"),
    "timeout_s": ("limits", "timeout_s"),
}
"""Short key to the place of its long form."""


def long_form(case: Map, problems: list[Diagnostic]) -> Map:
    """`case` in the long form. What is wrong is added to `problems`."""
    short = [key for key in SHORT_KEYS if key in case]
    if not short:
        return case
    result = case.without(*short)
    for key in short:
        result = _moved(result, case, key, problems)
    return result


def _moved(result: Map, case: Map, key: str, problems: list[Diagnostic]) -> Map:
    *parents, last = SHORT_KEYS[key]
    value, key_at, value_at = case[key], case.keys_at[key], case.values_at[key]
    if key == "query" and not isinstance(value, str):
        problems.append(text_problem(key, value, value_at))
        return result
    if not parents:
        return _set(result, last, value, key_at, value_at, key, problems)
    parent = parents[0]
    below = result.get(parent, Map(key_at))
    if not isinstance(below, Map):  # validation says so
        return result
    below = _set(below, last, value, key_at, value_at, key, problems)
    return result.having(parent, below, result.keys_at.get(parent, key_at), result.values_at.get(parent, key_at))


def _set(
    owner: Map, name: str, value: Any, key_at: Spot, value_at: Spot, short: str, problems: list[Diagnostic]
) -> Map:
    if name in owner:
        long = ".".join(SHORT_KEYS[short])
        message = f"`{short}` is the short form of `{long}`, which stands at {owner.keys_at[name].place} already"
        problems.append(problem_at(key_at, "given-twice", message, "keep one of them"))
        return owner
    return owner.having(name, value, key_at, value_at)
