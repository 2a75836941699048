"""The three things a grader can say, and the rule that what was not observed never passes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from seatrial.core.grade import Grade, Tally, Verdict
from seatrial.core.trace import Observable, Trace

__all__ = ["abstained", "count", "failed", "listed", "passed", "unobserved"]


_PASS = Verdict.PASS


def passed(reason: str, *, evidence: Iterable[int] = (), tallies: Mapping[str, Tally] | None = None) -> Grade:
    """A pass with score 1."""
    if not evidence and not tallies:
        return Grade.trusted({"verdict": _PASS, "score": 1.0, "reason": reason})
    return _grade(Verdict.PASS, None, reason, evidence, tallies)


def failed(
    reason: str,
    *,
    score: float = 0.0,
    evidence: Iterable[int] = (),
    tallies: Mapping[str, Tally] | None = None,
) -> Grade:
    """A fail; `score` in [0, 1] says how near it was."""
    return _grade(Verdict.FAIL, score, reason, evidence, tallies)


def abstained(reason: str, *, evidence: Iterable[int] = (), tallies: Mapping[str, Tally] | None = None) -> Grade:
    """No verdict: needed evidence was not observed, and the reason names it."""
    return _grade(Verdict.ABSTAIN, None, reason, evidence, tallies)


def _grade(
    verdict: Verdict, score: float | None, reason: str, evidence: Iterable[int], tallies: Mapping[str, Tally] | None
) -> Grade:
    numbers = tuple(sorted(set(evidence))) if evidence else ()
    return Grade(verdict=verdict, score=score, reason=reason, evidence=numbers, tallies=dict(tallies or {}))


def unobserved(trace: Trace, *needs: Observable) -> Grade | None:
    """An abstention naming each need that this trace could not observe; None when all were."""
    missing = [need for need in needs if not trace.saw(need)]
    if not missing:
        return None
    lacking = [need.value.replace("_", " ") for need in missing]
    verb = "was" if lacking in (["output"], ["outcome"], ["handoff context"], ["usage"]) else "were"
    reasons = list(dict.fromkeys(trace.unobserved[need] for need in missing if need in trace.unobserved))
    why = f": {'; '.join(reasons)}" if reasons else ""
    return abstained(f"{' and '.join(lacking)} {verb} not observed{why}")


def count(number: float, noun: str) -> str:
    """`1 call`, `2 calls`."""
    return f"{number:g} {noun}" if number == 1 else f"{number:g} {noun}s"


def listed(items: Iterable[str], *, most: int = 20) -> str:
    """Items with commas between, cut after `most`."""
    texts = list(items)
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {rest} more" if rest > 0 else "")
