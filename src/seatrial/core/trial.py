"""The record of one trial: a line of `trials.jsonl`, from which every figure is computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from seatrial.core.figures import KnownFigure
from seatrial.core.frozen import Frozen, Word
from seatrial.core.grade import Grade, GraderFailure, Tally, Verdict
from seatrial.core.trace import AgentError, StopReason

__all__ = [
    "MOST_TRIALS",
    "InvalidReason",
    "Leftover",
    "LeftoverKind",
    "Tokens",
    "TrialKey",
    "TrialRecord",
    "TrialStatus",
    "status_of",
]

MOST_TRIALS = 10_000_000
"""Of a case on record: four hundred runs of as many can still be counted together."""
_Nth = Annotated[int, Field(ge=1, le=MOST_TRIALS)]


class TrialStatus(Word):
    """What one trial is worth as evidence."""

    PASSED = "passed"
    FAILED = "failed"
    UNGRADED = "ungraded"
    """Nothing required applied."""
    INVALID = "invalid"
    """Something needed is missing through no fault of the agent; see InvalidReason."""


class InvalidReason(Word):
    """Whose fault it is that a trial says nothing about the agent."""

    FIXTURE = "fixture"
    HARNESS = "harness"
    GRADER = "grader"
    JUDGE = "judge"
    UNOBSERVED = "unobserved"


class TrialKey(Frozen):
    """Which trial: the case and its 1-based trial number."""

    case_id: str
    trial_index: int = 1

    def __str__(self) -> str:
        return f"{self.case_id}#{self.trial_index}"


class Tokens(Frozen):
    """Sums over the model calls of a trial. None: at least one call did not say."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None


class LeftoverKind(Word):
    """What a trial can leave behind it, beside what belongs to it alone."""

    ENVIRONMENT = "environment"
    """An environment variable."""
    CWD = "cwd"
    """The process's working folder."""
    THREAD = "thread"
    STREAM = "stream"
    """`sys.stdout` or `sys.stderr`."""
    FILE = "file"
    """An entry in the working folder or the project's folder."""
    FIXTURE = "fixture"
    """A file that a fixture is made from."""
    DATABASE = "database"
    """The template that databases are copied from."""


class Leftover(Frozen):
    """Something shared that was otherwise after a trial than before it. It fails no trial."""

    kind: LeftoverKind
    what: str
    """In words, without values."""
    during: tuple[str, ...] = ()
    """`CASE#TRIAL` of all trials that may have done it, where several ran; empty: this one did."""


class TrialRecord(Frozen):
    """One finished attempt at one case."""

    run_id: str = ""
    case_id: str
    suite: str = ""
    trial_index: _Nth = 1
    attempt: _Nth = 1
    """From 1; with retries the last attempt of a trial counts."""
    broken_off: bool = False
    """The harness broke this attempt off and makes it again; it counts against no retry."""
    status: TrialStatus
    invalid_reason: InvalidReason | None = None
    broken: InvalidReason | None = None
    """What of the surroundings did not work, also where the trial failed anyway; None: all of it worked."""
    detail: str = ""
    """One line: what ended it before its time or made it invalid. A failed grade's reason stands with the grade."""
    stop_reason: StopReason
    error: AgentError | None = None
    grades: tuple[Grade, ...] = ()
    grader_failures: tuple[GraderFailure, ...] = ()
    output: Any = None
    """Final output as JSON data, possibly cut: see `output_file`."""
    output_file: str | None = None
    """Where the whole output stands, relative to the run folder, when it was too large for a record."""
    outcome: dict[str, Any] | None = None
    """What was observed of the environment afterwards; None: nothing was."""
    steps: int | None = None
    steps_are_tool_calls: bool = False
    tools: dict[str, int] = Field(default_factory=dict)
    """Calls per tool name."""
    handoffs: tuple[tuple[str, str], ...] = ()
    """(source, target) in order."""
    tallies: dict[str, Tally] = Field(default_factory=dict)
    """Of the trace itself, whatever the case expects; see `seatrial.core.trajectory`."""
    models: tuple[str, ...] = ()
    tokens: Tokens = Tokens()
    cost_usd: KnownFigure = None
    """Of the agent's model calls. None = unknown, never free."""
    judge_cost_usd: KnownFigure = 0.0
    """Of the models behind judges. None = unknown; 0: no judge was asked."""
    latency_ms: KnownFigure = None
    """The agent's own time: turns only, without reset, grading, waiting for a rate limit and back-off."""
    seed: int | None = None
    case_digest: str = ""
    """Of the case, its fixture, its graders and the permission rules."""
    fixture_digest: str = ""
    """Of its fixture with the case's overrides and every file that it reads; empty: on no record."""
    build_id: str = ""
    """Which build; `run.json` says how to run it again."""
    canaries_planted: bool = False
    """The Python fixture planted other canaries than its file names; their values are on no record."""
    observes: tuple[str, ...] = ()
    recorded: int = 0
    """Exchanges with models that went into a cassette."""
    replayed: int = 0
    """Answers of models that came from a cassette: such a trial is no evidence beyond the one that was recorded."""
    leftovers: tuple[Leftover, ...] = ()
    """What the trial left behind it, as far as the harness looks."""
    trace_at: int | None = None
    """Byte offset of this trial's trace in `traces.jsonl.zst`."""
    trace_size: int | None = None
    """Its bytes there, packed: a Zstandard frame."""
    trace_digest: str | None = None
    """sha256 of these bytes; None: written by a version that did not note it."""
    started: str | None = None
    """UTC, ISO 8601 with Z."""
    previous: str | None = None
    """sha256 of the line before: a chain over the file."""

    @property
    def key(self) -> TrialKey:
        return TrialKey(case_id=self.case_id, trial_index=self.trial_index)

    @property
    def whole(self) -> TrialRecord:
        """Itself; what a Ledger keeps of a record has less (`seatrial.core.ledger`)."""
        return self

    @property
    def valid(self) -> bool:
        """Whether it counts in rates: passed or failed."""
        return self.status in (TrialStatus.PASSED, TrialStatus.FAILED)

    def grade(self, name: str) -> Grade | None:
        """The grade called `name`, or None when that grader gave none."""
        return next((grade for grade in self.grades if grade.name == name), None)


def status_of(
    grades: Sequence[Grade],
    failures: Sequence[GraderFailure],
    stop_reason: StopReason,
    broken: InvalidReason | None = None,
    *,
    foreseen: bool = False,
) -> tuple[TrialStatus, InvalidReason | None]:
    """The status of a trial; `broken` says what of the surroundings did not work, `foreseen` that the case itself
    scripts how it ended (an approval that stays unanswered).

    Failed if a required grade failed or the agent did not end by answering; else invalid if the surroundings broke
    or a required grader broke or abstained; else ungraded if no required grader applied; else passed.
    """
    if stop_reason is _HARNESS_ERROR or broken is _HARNESS:
        return TrialStatus.INVALID, broken or _HARNESS
    verdicts = [grade.verdict for grade in grades if grade.required]
    ended_well = stop_reason is _ANSWERED or foreseen
    if not ended_well or _FAIL in verdicts:
        return TrialStatus.FAILED, None
    if broken is not None:
        return TrialStatus.INVALID, broken
    if failures and any(failure.required for failure in failures):
        return TrialStatus.INVALID, InvalidReason.GRADER
    if _ABSTAIN in verdicts:
        return TrialStatus.INVALID, InvalidReason.UNOBSERVED
    return (_PASSED if verdicts else TrialStatus.UNGRADED), None


_ANSWERED, _HARNESS_ERROR, _HARNESS = StopReason.ANSWERED, StopReason.HARNESS_ERROR, InvalidReason.HARNESS
_FAIL, _ABSTAIN, _PASSED = Verdict.FAIL, Verdict.ABSTAIN, TrialStatus.PASSED
