"""A case as people write it, normalised: the long form with every default filled in.

The short form, defaults, matrix and file positions are the business of `seatrial.loading`; by the time a `Case`
exists, all of that is gone. A list that was not written is None where "no expectation" differs from "nothing".
"""

from __future__ import annotations

from functools import cached_property
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictInt, field_validator, model_validator

from seatrial.core.encoding import digest
from seatrial.core.frozen import Frozen
from seatrial.core.model_json import json_of

__all__ = [
    "AnswerExpectation",
    "ApprovalPattern",
    "Attachment",
    "Attack",
    "Case",
    "Concept",
    "EnvironmentSpec",
    "Expected",
    "ForbiddenCall",
    "GraderUse",
    "HandoffExpectation",
    "JudgeUse",
    "Limits",
    "OrderEntry",
    "RequiredCall",
    "ResponseExpectation",
    "Retries",
    "Risk",
    "SafetyExpectation",
    "Saying",
    "Thresholds",
    "Times",
    "Turn",
    "UserSpec",
]

Risk = Literal["low", "medium", "high", "critical"]
Name = Annotated[str, Field(min_length=1)]
Matcher = Any
"""A value or a mapping of `$` operators; `seatrial.core.matching` says what it matches."""


class Times(Frozen):
    """How often a call is required."""

    min: int = Field(default=1, ge=0, strict=True)
    max: int | None = Field(default=None, ge=0, strict=True)
    """None = any number."""

    @model_validator(mode="before")
    @classmethod
    def _exactly(cls, data: object) -> object:
        if isinstance(data, int) and not isinstance(data, bool):
            return {"min": data, "max": data}
        return data

    @model_validator(mode="after")
    def _ordered(self) -> Times:
        if self.max is not None and self.max < self.min:
            raise ValueError(f"max {self.max} is below min {self.min}")
        return self


def _named(data: object) -> object:
    """A bare name stands for `{name: ...}`."""
    return {"name": data} if isinstance(data, str) else data


class RequiredCall(Frozen):
    """A tool call that must happen."""

    name: Name
    arguments: dict[str, Matcher] | None = None
    times: Times | None = None
    """None = at least once (exactly once under `exact_tools`)."""
    state: Literal["executed", "failed", "refused"] = "executed"

    _bare = model_validator(mode="before")(staticmethod(_named))


class ForbiddenCall(Frozen):
    """A tool call that must not happen."""

    name: Name
    arguments: dict[str, Matcher] | None = None
    """None = whatever its arguments."""
    attempts: Literal["forbidden", "allowed"] = "forbidden"
    """Whether an attempt that a policy or approval refused is fine."""

    _bare = model_validator(mode="before")(staticmethod(_named))


class OrderEntry(Frozen):
    """One link of a `tool_order` chain: a tool, `handoff:NAME` or `approval:NAME`."""

    name: Name
    arguments: dict[str, Matcher] | None = None

    _bare = model_validator(mode="before")(staticmethod(_named))


class HandoffExpectation(Frozen):
    """Where the conversation must go. `target: null` = nowhere; no `target` key = no expectation on it."""

    target: str | None = None
    max_handoffs: int | None = Field(default=None, ge=0, strict=True)
    reason: Matcher = None
    required_context: tuple[str, ...] = ()
    """Paths that the handed-over context must hold."""
    forbidden_context: tuple[str, ...] = ()

    @property
    def expects_target(self) -> bool:
        """Whether the case states a target, null included."""
        return "target" in self.model_fields_set


class Concept(Frozen):
    """A phrase looked for as folded whole words, or one of several."""

    any_of: tuple[Name, ...] = Field(min_length=1)

    @model_validator(mode="before")
    @classmethod
    def _phrase(cls, data: object) -> object:
        return {"any_of": [data]} if isinstance(data, str) else data


class ResponseExpectation(Frozen):
    """What the final text must be like; each key is a grade of its own."""

    required_concepts: tuple[Concept, ...] | None = None
    prohibited_concepts: tuple[Concept, ...] | None = None
    matches: str | None = None
    """A regular expression that is searched for."""
    equals: str | None = None
    """The whole text, after NFC and trimming; case kept."""
    json_schema: dict[str, Any] | None = None
    max_characters: int | None = Field(default=None, ge=0, strict=True)
    language: str | None = None
    """ISO 639-1 code."""


class AnswerExpectation(Frozen):
    """What the final output must hold: a text as whole words, a number by value, or any of several."""

    text: str | None = None
    number: StrictInt | Annotated[float, Field(strict=True, allow_inf_nan=False)] | None = None
    tolerance: float = Field(default=0, ge=0, allow_inf_nan=False, strict=True)
    which: Literal["any", "last"] = "any"
    any_of: tuple[AnswerExpectation, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _text(cls, data: object) -> object:
        return {"text": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one_form(self) -> AnswerExpectation:
        given = [name for name in ("text", "number", "any_of") if getattr(self, name) not in (None, ())]
        if len(given) != 1:
            raise ValueError("write a text, {number: ...} or {any_of: [...]}, one of them")
        return self


class ApprovalPattern(Frozen):
    """An approval that must not be asked for."""

    action: Name
    arguments: dict[str, Matcher] | None = None


class SafetyExpectation(Frozen):
    """Events that must not be seen."""

    blocked_events: tuple[Name, ...] = Field(min_length=1)


class Saying(Frozen):
    """Phrases of which the answer must hold one where a fault stayed unrecovered."""

    says: tuple[Name, ...] = Field(min_length=1)


class Expected(Frozen):
    """What must be true of a trial (or of one turn). A key that was not written expects nothing."""

    answer: AnswerExpectation | None = None
    output: Matcher = None
    outcome: dict[str, Matcher] | None = None
    required_tools: tuple[RequiredCall, ...] | None = None
    """None = no expectation; () = no tool may be called."""
    allowed_tools: tuple[Name, ...] = ()
    forbidden_tools: tuple[ForbiddenCall, ...] | None = None
    tool_order: tuple[tuple[OrderEntry, ...], ...] | None = None
    exact_tools: StrictBool = False
    handoff: HandoffExpectation | None = None
    response: ResponseExpectation | None = None
    asks: str | None = None
    forbidden_approvals: tuple[ApprovalPattern, ...] | None = None
    safety: SafetyExpectation | None = None
    error_handling: StrictBool | Saying = False
    max_steps: int | None = Field(default=None, ge=1, strict=True)

    def states(self, key: str) -> bool:
        """Whether the case wrote this key."""
        return key in self.model_fields_set


class Turn(Frozen):
    """One scripted user turn after the first."""

    user: str
    expected: Expected = Expected()


class UserReply(Frozen):
    """One rule of a scripted simulated user."""

    when: Matcher = None
    """Matched against the agent's last answer; absent = always."""
    say: str


class Simulated(Frozen):
    """A user played by a model."""

    persona: str = ""
    goal: str
    model: str = "judge"
    max_turns: int = Field(default=6, ge=1, strict=True)


class UserSpec(Frozen):
    """Who answers the agent instead of scripted turns: a model, rules, or the reader's own code."""

    simulated: Simulated | None = None
    scripted: tuple[UserReply, ...] | None = None
    use: str | None = None
    """Import path of a simulator: `module:factory`, called with the case, giving a User."""
    max_turns: int = Field(default=6, ge=1, strict=True)

    @model_validator(mode="after")
    def _one_kind(self) -> UserSpec:
        if sum(value is not None for value in (self.simulated, self.scripted, self.use)) != 1:
            raise ValueError("write one of simulated, scripted, use")
        return self


class Attack(Frozen):
    """An injection to place into the environment."""

    name: Name
    seed: StrictInt | None = None
    place: dict[str, Any]
    goal: dict[str, Any]


class EnvironmentSpec(Frozen):
    """What surrounds the agent; keys beside `fixture` override the fixture's."""

    fixture: str | None = None
    reset_before_trial: Literal[True] = True
    identity: dict[str, Any] | None = None
    state: Any = None
    tools: dict[str, Any] | None = None
    faults: tuple[Any, ...] | None = None
    approvals: tuple[Any, ...] | None = None
    secrets: dict[str, str] | None = None
    attack: Attack | None = None

    def overrides(self) -> dict[str, Any]:
        """The keys written beside `fixture`, as they override it."""
        kept = ("identity", "state", "tools", "faults", "approvals", "secrets")
        return {key: getattr(self, key) for key in kept if key in self.model_fields_set}


class Thresholds(Frozen):
    """How many trials, and what each may cost."""

    trials: int = Field(default=1, ge=1, strict=True)
    required_successes: Literal["all"] | StrictInt | str = "all"
    """`all`, a number, or a percentage such as "80%"."""
    max_latency_ms: float | None = Field(default=None, gt=0, allow_inf_nan=False, strict=True)
    max_estimated_cost_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)

    @field_validator("required_successes", mode="after")
    @classmethod
    def _readable(cls, value: str | int) -> str | int:
        if isinstance(value, int):
            if isinstance(value, bool) or value < 1:
                raise ValueError("a number of successes is 1 or more")
        elif value != "all" and not (value.endswith("%") and _is_share(value[:-1])):
            raise ValueError(f"{value!r} is neither `all`, a number, nor a percentage such as '80%'")
        return value

    def successes_needed(self, trials: int) -> int:
        """Passes needed out of `trials` run. A number equal to the case's own trials means all.

        A number r of the case's own k trials is kept as their share where more of them run (pooled runs, fresh trials
        of an approval, `--trials`): r of k, rounded up, so that further trials do not make it easier. Raises ValueError
        when a smaller number of trials can never reach the number asked for.
        """
        wanted = self.required_successes
        if wanted in ("all", self.trials):
            return trials
        if isinstance(wanted, int):
            if wanted > trials:
                run = "trial runs" if trials == 1 else "trials run"
                raise ValueError(f"required_successes is {wanted}, but only {trials} {run}")
            return -(-trials * wanted // self.trials) if wanted < self.trials < trials else wanted
        share = float(str(wanted)[:-1]) / 100
        return max(1, -int(-share * trials // 1))


def _is_share(text: str) -> bool:
    try:
        return 0 < float(text) <= 100
    except ValueError:
        return False


class Limits(Frozen):
    """Hard stops: a trial that hits one has failed."""

    steps: int = Field(default=50, ge=1, strict=True)
    timeout_s: float = Field(default=60, gt=0, allow_inf_nan=False, strict=True)
    cost_usd: float | None = Field(default=None, gt=0, allow_inf_nan=False, strict=True)
    """USD that the agent's model calls may cost in one trial; None = no limit."""


class Retries(Frozen):
    """Attempts at a trial, for named infrastructure faults only."""

    attempts: int = Field(default=1, ge=1, strict=True)
    """In all, the first included."""
    on: tuple[Name, ...] = ()
    """Exception class names, or `timeout`."""
    backoff_s: float = Field(default=1, ge=0, allow_inf_nan=False, strict=True)
    """Seconds before the second attempt, doubled before each further one (see `seatrial.runner.retrying`)."""


class GraderUse(Frozen):
    """An own grader: import path or registered name, options, and how it counts."""

    model_config = ConfigDict(populate_by_name=True)

    use: Name
    options: dict[str, Any] = Field(default_factory=dict, alias="with")
    minimum: float | None = Field(default=None, allow_inf_nan=False, strict=True)
    """For graders that return a number: passes at or above it."""
    name: str | None = None
    advisory: StrictBool = False

    @model_validator(mode="before")
    @classmethod
    def _path(cls, data: object) -> object:
        return {"use": data} if isinstance(data, str) else data


class JudgeUse(Frozen):
    """A rubric that a model judges by."""

    rubric: Name
    minimum: float | None = Field(default=None, allow_inf_nan=False, strict=True)
    advisory: StrictBool = False


class Attachment(Frozen):
    """A file that goes with the input."""

    path: str
    """Relative to the file that names it."""
    sha256: str
    size: int
    """Bytes."""
    absolute: str = Field(default="", exclude=True)
    """Where it was found when the case was loaded; no part of the case's identity."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.path).name


class Case(Frozen):
    """One situation with what must be true of it."""

    id: str
    suite: str = "default"
    risk: Risk = "medium"
    description: str = ""
    owner: str = ""
    reason: str = ""
    source: str = ""
    added: str = ""
    tags: tuple[str, ...] = ()
    deterministic: StrictBool = False
    """True: the user declares that any flip is a change, never chance."""
    input: str | dict[str, Any] = ""
    attachments: tuple[Attachment, ...] = ()
    turns: tuple[Turn, ...] = ()
    user: UserSpec | None = None
    environment: EnvironmentSpec = EnvironmentSpec()
    expected: Expected = Expected()
    thresholds: Thresholds = Thresholds()
    limits: Limits = Limits()
    retries: Retries = Retries()
    reference_context: tuple[str, ...] = ()
    judges: tuple[JudgeUse, ...] = ()
    graders: tuple[GraderUse, ...] = ()
    advisory: tuple[str, ...] = ()
    """Grades that are reported but not required."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    path: str = Field(default="", exclude=True)
    """The file it came from, relative to the project; no part of its identity."""
    line: int | None = Field(default=None, exclude=True)
    base_id: str = Field(default="", exclude=True)
    """The id without its matrix part; empty when it was not expanded."""

    @model_validator(mode="after")
    def _one_conversation(self) -> Case:
        if self.turns and self.user is not None:
            raise ValueError("`turns` and `user` exclude each other")
        return self

    @property
    def message(self) -> str | None:
        """What the user says first: the input itself, its `message`, else None."""
        if isinstance(self.input, str):
            return self.input
        message = self.input.get("message")
        return message if isinstance(message, str) else None

    @cached_property
    def digest(self) -> str:
        """Digest of what the case asks for and expects. Prose and the number of trials are no part of it."""
        data = json_of(self, by_alias=True, exclude_defaults=True, exclude=_NO_IDENTITY)
        data["expected"] = json_of(self.expected, exclude_unset=True)
        data["turns"] = [json_of(turn, exclude_unset=True) for turn in self.turns]
        if not data.get("thresholds"):  # left over when only the number of trials was written
            data.pop("thresholds", None)
        wanted = self.thresholds.required_successes
        data["required_successes"] = "all" if wanted == self.thresholds.trials else wanted
        return digest(data)


_NO_IDENTITY: dict[str, Any] = {
    **dict.fromkeys(("description", "owner", "reason", "source", "added", "tags", "expected", "turns"), True),
    "thresholds": {"trials", "required_successes"},
}
