"""Failed cases as GitHub annotations: workflow commands that a step prints, shown beside the lines of the pull request.

`::error file=cases/smoke/orders.yaml,line=4,title=smoke_order_status failed::outcome: expected ...`

A failed case of a gating suite is an `error`; one that is invalid, ungraded or did not run is a `warning`, and so is
whatever did not pass in a suite that only reports. GitHub shows ten annotations of a level a step: where there are
more, the tenth line of the level tells how many are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Literal

from seatrial.core.case import Case
from seatrial.core.encoding import shortened
from seatrial.report.literal import lines, literal
from seatrial.report.reasons import case_reasons, trial_list, verdict_word

__all__ = ["annotation_lines"]

Row = Mapping[str, Any]
Level = Literal["error", "warning"]

SHOWN_PER_LEVEL = 10
"""Annotations of a level that GitHub shows of one step; it drops further ones without a word."""
REASONS_SHOWN = 4
TITLE = 120
MESSAGE = 1_000

_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = _DATA | {":": "%3A", ",": "%2C"}


def annotation_lines(summary: Row, *, cases: Sequence[Case] = (), folder: str = "") -> list[str]:
    """One workflow command a case that did not pass, errors first, in the order of the run.

    `summary` is the content of `results.json`. `cases` tell file and line; a case that is not among them, or does not
    know its file, is annotated without a place. `folder` is the project's folder relative to the repository's.
    """
    places = {case.id: _place(case, folder) for case in cases if case.path}
    wrong = [case for case in summary["cases"] if case["verdict"] != "passed"]
    found: dict[Level, list[str]] = {"error": [], "warning": []}
    for case in wrong:
        found[_level(case)].append(_annotation(case, places.get(case["id"], {})))
    return [line for level, annotations in found.items() for line in _capped(level, annotations)]


def _place(case: Case, folder: str) -> dict[str, str]:
    place = {"file": str(PurePosixPath(folder.replace("\\", "/"), case.path.replace("\\", "/")))}
    return place if case.line is None else {**place, "line": str(case.line)}


def _level(case: Row) -> Level:
    return "error" if case["gate"] and case["verdict"] == "failed" else "warning"


def _annotation(case: Row, place: Mapping[str, str]) -> str:
    apart = "" if case["gate"] else " (reported only)"
    title = f"{case['id']} {verdict_word(case['verdict'])}{apart}"
    return _command(_level(case), _message(case), {**place, "title": title})


def _message(case: Row) -> str:
    reasons = case_reasons(case)
    if not reasons:
        return str(case["reason"])
    told = [f"{what}: {why}{_which(case, trials)}" for (what, why), trials in reasons.items()]
    rest = len(told) - REASONS_SHOWN
    return "\n".join(told[:REASONS_SHOWN] + ([f"... and {rest} more reasons"] if rest > 0 else []))


def _which(case: Row, trials: list[int]) -> str:
    return f" ({trial_list(trials)})" if case["trials"] > 1 else ""


def _capped(level: Level, annotations: list[str]) -> list[str]:
    if len(annotations) <= SHOWN_PER_LEVEL:
        return annotations
    rest = len(annotations) - SHOWN_PER_LEVEL + 1
    said = f"{rest} more cases did not pass; GitHub shows {SHOWN_PER_LEVEL} annotations a step, the report has all"
    return [*annotations[: SHOWN_PER_LEVEL - 1], _command(level, said, {"title": f"and {rest} more"})]


def _command(level: Level, message: str, properties: Mapping[str, str]) -> str:
    """A workflow command on one line. Data is literal, then escaped as the runner unescapes it."""
    named = ",".join(
        f"{name}={_escaped(literal(shortened(value, TITLE) if name == 'title' else value), _PROPERTY)}"
        for name, value in properties.items()
    )
    return f"::{level} {named}::{_escaped(chr(10).join(lines(shortened(message, MESSAGE))), _DATA)}"


def _escaped(text: str, rules: Mapping[str, str]) -> str:
    return "".join(rules.get(character, character) for character in text)
