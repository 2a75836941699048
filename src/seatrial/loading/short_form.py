"""The short form of a case, turned into the long one before anything is merged.

`query` is `input`; `expected_answer`, `expected_tools`, `forbidden_tools`, `max_steps` go below `expected`; `trials`
goes below `thresholds` and `timeout_s` below `limits`. The short keys work in cases, file defaults, suites and the
project's defaults alike. A thing written in both forms is an error.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.errors import Diagnostic
from seatrial.loading.located import Map, problem_at
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
        _move(result, case, key, problems)
    return result


def _move(result: Map, case: Map, key: str, problems: list[Diagnostic]) -> None:
    """Put the value of a short key of `case` where it belongs in `result`."""
    *parents, last = SHORT_KEYS[key]
    key_at, value_at = case.keys_at[key], case.values_at[key]
    owner = result
    if key == "query" and not isinstance(case[key], str):
        problems.append(text_problem(key, case[key], value_at))
        return
    for parent in parents:
        below = owner.get(parent, Map(key_at))
        if not isinstance(below, Map):  # validation says so
            return
        below = below.without()
        owner.put(parent, below, owner.keys_at.get(parent, key_at), owner.values_at.get(parent, key_at))
        owner = below
    if last in owner:
        long = ".".join(SHORT_KEYS[key])
        message = f"`{key}` is the short form of `{long}`, which stands at {owner.keys_at[last].place} already"
        problems.append(problem_at(key_at, "given-twice", message, "keep one of them"))
    else:
        owner.put(last, case[key], key_at, value_at)
