"""What went wrong in a case, trial by trial, from the rows of `results.json`; every report tells it alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

__all__ = ["case_reasons", "first_failed_trial", "trial_list", "verdict_word"]

Row = Mapping[str, Any]


def case_reasons(case: Row) -> dict[tuple[str, str], list[int]]:
    """What went wrong in the case's trials as (what, why), each with the trials that say so."""
    found: dict[tuple[str, str], list[int]] = {}
    for trial in case["trials_detail"]:
        for pair in _trial_reasons(trial):
            found.setdefault(pair, []).append(trial["trial"])
    return found


def _trial_reasons(trial: Row) -> Iterable[tuple[str, str]]:
    if trial["status"] in ("passed", "ungraded"):
        return
    if trial["stop_reason"] != "answered":
        # the crash comes first: what else failed may be its consequence
        what = "agent" if trial["error"] else trial["stop_reason"]
        yield what, trial["error"] or trial["reason"].removeprefix(f"{what}: ")
    told = [grade for grade in trial["grades"] if grade["required"] and grade["verdict"] != "pass"]
    for grade in told:
        yield grade["name"], grade["reason"] or grade["verdict"]
    broken = [failure for failure in trial["grader_failures"] if failure["required"]]
    for failure in broken:
        yield failure["name"], f"the grader {failure['reason']}"
    if trial["stop_reason"] == "answered" and not told and not broken:
        yield trial["invalid_reason"] or "trial", trial["reason"]


def trial_list(trials: Sequence[int]) -> str:
    """`trial 2`, `trials 1-3`, `trials 1, 3`."""
    if len(trials) == 1:
        return f"trial {trials[0]}"
    if len(trials) > 2 and trials[-1] - trials[0] == len(trials) - 1:
        return f"trials {trials[0]}-{trials[-1]}"
    return "trials " + ", ".join(str(trial) for trial in trials)


def first_failed_trial(case: Row) -> int | None:
    """Number of the first trial that did not pass; None when all did or none ran."""
    return next((trial["trial"] for trial in case["trials_detail"] if trial["status"] != "passed"), None)


def verdict_word(verdict: str) -> str:
    """A case's verdict as people read it."""
    return verdict.replace("_", " ")
