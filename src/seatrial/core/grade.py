"""What a grader says: a Grade. What is said when the grader broke: a GraderFailure."""

from __future__ import annotations

from pydantic import Field, model_validator

from seatrial.core.figures import MOST, KnownFigure
from seatrial.core.frozen import Frozen, Word

__all__ = ["Grade", "GraderFailure", "Tally", "Verdict"]


class Verdict(Word):
    """The three things a grade can say. A grader that does not apply gives no grade."""

    PASS = "pass"
    FAIL = "fail"
    ABSTAIN = "abstain"
    """The evidence it needs was not observed."""


class Tally(Frozen):
    """A named count for the summary: every ratio there is a sum of numerators over a sum of denominators."""

    hit: float = Field(ge=-MOST, le=MOST, allow_inf_nan=False)
    of: float = Field(ge=-MOST, le=MOST, allow_inf_nan=False)


class Grade(Frozen):
    """One verdict with its reason and evidence."""

    name: str = ""
    """Unique within a trial; own graders may leave it empty, the harness names the grade after the grader."""
    verdict: Verdict
    score: float | None = Field(default=None, ge=0, le=1, allow_inf_nan=False)
    """In [0, 1]. None: 1 for pass and 0 for fail, and stays None for abstain."""
    reason: str = ""
    """Why, naming what was expected and what was seen; never a duration, so that equal behaviour reads equal."""
    evidence: tuple[int, ...] = ()
    """Numbers of the events that it rests on."""
    required: bool = True
    """False: advisory, reported but never decisive."""
    cost_usd: KnownFigure = None
    """What the model behind a judge cost; None: unknown, or no model was asked (see `TrialRecord.judge_cost_usd`)."""
    tallies: dict[str, Tally] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _fill_score(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("score") is None:
            filled = {"pass": 1.0, "fail": 0.0}.get(str(data.get("verdict")))
            return {**data, "score": filled}
        return data


class GraderFailure(Frozen):
    """A grader that raised or returned something that is no grade. It is nobody's failure but its own."""

    name: str
    error: str
    """Class name of the exception."""
    message: str
    required: bool = True
