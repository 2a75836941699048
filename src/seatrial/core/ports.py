"""The seams: reading this page is reading the architecture.

    TrialSource --> which trials run            Sink      --> where finished trials go
    Agent       --> the thing under test        Executor  --> where trials run
    Fixture     --> its surroundings            Grader    --> what is true of what happened
    User        --> who answers the agent

The runner knows these and nothing of files, policies or reports. A double of any of them fits in a few lines.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

from seatrial.core.case import Case, Expected
from seatrial.core.grade import Grade
from seatrial.core.ledger import Counted
from seatrial.core.trace import Observable, StopReason, Trace
from seatrial.core.trial import TrialRecord

__all__ = [
    "NOTHING_BEFORE",
    "Agent",
    "Answer",
    "Earlier",
    "Environment",
    "Execution",
    "Executor",
    "Fixture",
    "Grader",
    "GradingContext",
    "PlannedCase",
    "Session",
    "Sink",
    "TrialSource",
    "TurnInput",
    "User",
]


@dataclass(frozen=True)
class TurnInput:
    """What the agent is given for one user turn. Never the expectations."""

    case_id: str
    input: Any
    """The case's input: text, or a mapping whose `message` is what the user says in this turn."""
    number: int = 1
    """1-based."""
    fixture: str = ""
    """Name of the case's fixture; empty when it has none."""

    @property
    def message(self) -> str:
        """What the user says in this turn, as text."""
        if isinstance(self.input, str):
            return self.input
        message = self.input.get("message") if isinstance(self.input, Mapping) else None
        return message if isinstance(message, str) else ""


@dataclass(frozen=True)
class Answer:
    """How one turn of an agent ended."""

    output: Any
    """The agent's real object, not yet JSON."""
    stop_reason: StopReason = StopReason.ANSWERED
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """The final state as the agent reports it."""
    latency_ms: float | None = None
    """As measured by the agent; None = the harness's own clock."""
    cost_usd: float | None = None
    """As estimated by the agent for this turn; None = unknown."""
    own_limit: str = ""
    """Why a turn ends as `max_steps` although the case's limit of steps was not reached, in words."""


class Session(Protocol):
    """One agent in one trial: every turn of a conversation goes to the same session."""

    blocking: bool
    """Whether `invoke` blocks its thread (then it runs in one of its own) or gives an awaitable at once."""

    def invoke(self, turn: TurnInput) -> Answer | Awaitable[Answer]:
        """Answer one user turn. What it raises is the agent's failure."""

    def close(self) -> Awaitable[None] | None:
        """Let go of what the trial held; always called, and awaited where it gives an awaitable.

        What it raises after the last answer is the agent's failure.
        """


class Environment(Protocol):
    """One trial's surroundings, from before its first event to after its last."""

    def set_up(self) -> None:
        """Make everything fresh. What it raises makes the trial invalid (fixture)."""

    def observe(self) -> dict[str, Any] | None:
        """The outcome as the harness sees it; None when the fixture observes nothing."""

    def clean_up(self) -> None:
        """Remove everything; called always, also after a failed set-up, and exactly once."""


Surroundings_contra = TypeVar("Surroundings_contra", bound=Environment, contravariant=True)
Surroundings_co = TypeVar("Surroundings_co", bound=Environment, covariant=True)


class Agent(Protocol[Surroundings_contra]):
    """The agent under test behind its adapter. One object serves all trials of a run, many at once."""

    kind: str
    """Name of the adapter."""
    observes: frozenset[Observable]
    """What it can see in every trial; a trial's recorder may have seen more."""
    blocking: bool
    """Whether `open` may block (a user's factory) and so runs in a thread."""

    def open(self, trial: Surroundings_contra) -> Session:
        """The agent for one trial, built as it ships. What it raises is the agent's failure."""


class Fixture(Protocol[Surroundings_co]):
    """Makes surroundings for the trials of one case."""

    def environment(self, trial_index: int, seed: int) -> Surroundings_co:
        """A trial's own surroundings, not yet set up."""


class User(Protocol):
    """Who answers the agent in a simulated conversation; one object a trial."""

    def reply(self, answers: Sequence[str]) -> str | Awaitable[str | None] | None:
        """What the user says next, given every answer so far; None when the user is done."""


@dataclass(frozen=True)
class GradingContext:
    """Everything a grader may look at."""

    case: Case
    trace: Trace
    """Of the whole trial, or of one turn."""
    outcome: Mapping[str, Any] | None
    """What was observed of the environment; None when nothing was."""
    output: Any = None
    """The agent's real object; `trace.output` is the same as JSON data."""
    expected: Expected = field(default_factory=Expected)
    """The expectations in force: the case's, or one turn's."""
    secrets: Mapping[str, str] = field(default_factory=dict)
    """Canaries of the fixture by name."""
    rules: Any = None
    """Permission rules (`seatrial.core.permissions`), when the project has them."""
    latency_ms: float | None = None
    cost_usd: float | None = None
    """None = unknown."""


@runtime_checkable
class Grader(Protocol):
    """One question about a trial. Stateless: one object grades many trials at once.

    One that asks a model has an attribute `judge` that is true: then the limit on judges holds, and the `cost_usd` of
    its grades counts. Its `model`, if it has that attribute, must have a price in a run under a budget.
    """

    @property
    def name(self) -> str:
        """Name of its grade; unique within a case."""

    @property
    def required(self) -> bool:
        """False: advisory."""

    @property
    def needs_answer(self) -> bool:
        """Whether it grades the final output, and so has nothing to say when there is none."""

    @property
    def blocking(self) -> bool:
        """Whether `grade` may block (a user's own code), and so runs in a thread."""

    def grade(self, context: GradingContext) -> Grade | Awaitable[Grade | None] | None:
        """The grade, or None when it does not apply. What it raises becomes a GraderFailure."""


@dataclass(frozen=True)
class PlannedCase:
    """A case with all that its trials need, resolved."""

    case: Case
    digest: str
    """Of the case, its fixture, its graders and the permission rules."""
    graders: tuple[Grader, ...]
    trials: int
    fixture: Fixture[Any]
    secrets: Mapping[str, str] = field(default_factory=dict)
    rules: Any = None
    order: int = 0
    """Position in the selection."""
    fixture_digest: str = ""
    """Of the fixture alone, with the case's overrides."""
    input_digest: str = ""
    """Of what the agent is given: input, turns, user and surroundings, but nothing that is expected or observed."""


class TrialSource(Protocol):
    """Which trials run, and when there are enough: fixed numbers, curtailed or adaptive."""

    def next(self) -> tuple[PlannedCase, int] | None:
        """The next trial to start as (case, 1-based trial number), or None when none is to be started now.

        After None an executor asks again when a trial has ended; with none in flight, None means the end.
        """

    def finished(self, record: Counted) -> None:
        """A trial ended; the source may decide differently from now on."""


class Sink(Protocol):
    """Where finished trials go, one at a time, each whole."""

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Keep a finished trial; gives the record as it was kept. When this returns, the trial is not lost."""


@dataclass(frozen=True)
class Earlier:
    """What is on record from before a run was resumed, by case id and trial number."""

    finished: Mapping[tuple[str, int], Counted] = field(default_factory=dict)
    """The last attempt of every trial that needs no more."""
    attempts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """Attempts made of trials that have more; numbering goes on from there."""
    broken_off: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """How many of those the harness broke off: they count against no retry."""


NOTHING_BEFORE = Earlier()
"""Of a run that begins."""


class Execution(Protocol):
    """Trials that are running."""

    @property
    def done(self) -> Future[None]:
        """Resolves when all trials have ended; carries what ended them early."""

    def stop(self) -> None:
        """Cancel the trials in flight and wait until they have cleaned up; nothing is written or retried after it."""


class Executor(Protocol):
    """Where trials run: this process, other processes, other machines."""

    def run(self, source: TrialSource, sink: Sink) -> None:
        """Run every trial of the source; returns when all have ended."""

    def start(self, source: TrialSource, sink: Sink, before: Earlier = NOTHING_BEFORE) -> Execution:
        """Begin to, without waiting. `before`: what trials of the source have on record."""
