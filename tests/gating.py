"""Candidates, baselines and policies from short texts, for tests of decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from made import broken, case, grade, record, run, tally
from seatrial.core.case import Case
from seatrial.core.decision import Decision
from seatrial.core.policy import Exceptions, Policy
from seatrial.core.run import PERMISSION_RULES
from seatrial.core.trial import InvalidReason, TrialRecord
from seatrial.verdict.comparison import compare
from seatrial.verdict.gate import decide
from seatrial.verdict.metrics import case_results
from seatrial.verdict.sides import side_of_run

TODAY = date(2026, 11, 30)
STATUS = {"p": "passed", "f": "failed", "i": "invalid", "u": "ungraded"}
Patterns = Mapping[str, str]


def bare(name: str) -> str:
    """A case's id: its name without the marks."""
    return name.rstrip("!=")


def cases_of(patterns: Patterns, edited: Sequence[str] = (), moved: Mapping[str, str] = {}) -> list[Case]:
    """`suite/id` -> a letter a trial (`-`: planned, not on record); `!` = critical, `=` = deterministic."""
    return [
        case(
            bare(name),
            len(pattern),
            suite=moved.get(bare(name), name.partition("/")[0]),
            risk="critical" if "!" in name else "medium",
            deterministic="=" in name,
            input="edited" if bare(name) in edited else "as it was",
        )
        for name, pattern in patterns.items()
    ]


def records_of(
    patterns: Patterns, grades: Mapping[str, Mapping[str, Any]] | None = None, **each: Any
) -> list[TrialRecord]:
    """A record a letter, with the grades and tallies given by case."""
    return [
        _record(bare(name), number, letter, (grades or {}).get(bare(name), {}), each)
        for name, pattern in patterns.items()
        for number, letter in enumerate(pattern, start=1)
        if letter != "-"
    ]


def _record(case_id: str, number: int, letter: str, grades: Mapping[str, Any], each: Mapping[str, Any]) -> TrialRecord:
    made, failures, traced = [], [], {}
    for name, said in grades.items():
        if said == "broke":
            failures.append(broken(name))
        elif said == "abstains":
            made.append(grade(name, "abstain"))
        elif name == "trace":
            traced = {key: tally(*value) for key, value in said.items()}
        else:
            made.append(grade(name, tallies={key: tally(*value) for key, value in said.items()}))
    return record(
        case_id,
        number,
        STATUS[letter],
        grades=tuple(made),
        grader_failures=tuple(failures),
        tallies=traced,
        invalid_reason=InvalidReason.FIXTURE if letter == "i" else None,
        **each,
    )


def decision_of(
    gates: Mapping[str, Any] | None,
    candidate: Patterns,
    baseline: Patterns | None = None,
    *,
    review: Mapping[str, float] | None = None,
    grades: Mapping[str, Mapping[str, Any]] | None = None,
    each: Mapping[str, Any] | None = None,
    edited: Sequence[str] = (),
    ungated: Sequence[str] = (),
    exceptions: Sequence[Mapping[str, Any]] = (),
    approval: bool = False,
    status: str = "finished",
    moved: Mapping[str, str] = {},
    rules: bool = False,
    problems: Sequence[str] = (),
) -> Decision:
    """What `decide` says of patterns, through case results and a comparison as a run makes them."""
    policy = Policy.model_validate({"gates": gates or {}, "review": {"require_human_review_when": review or {}}})
    deviations = [{"reason": "known", "approver": "someone", **rule} for rule in exceptions]
    policies = {PERMISSION_RULES: "sha256:2"} if rules else {}
    info = run(gating=dict.fromkeys(ungated, False), status=status, build_id="b2", policies=policies)
    cases, records = cases_of(candidate, edited, moved), records_of(candidate, grades, **(each or {}))
    comparison = None
    if baseline is not None:
        before = side_of_run(info, cases_of(baseline), records_of(baseline), "before")
        comparison = compare(before, side_of_run(info, cases, records, "after"))
    return decide(
        results=case_results(info, cases, records),
        infos=[info],
        policy=policy,
        comparison=comparison,
        baseline=None,
        exceptions=Exceptions.model_validate({"exceptions": deviations}),
        today=TODAY,
        digests={"policy": "sha256:1"},
        for_approval=approval,
        problems=problems,
    )
