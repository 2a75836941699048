"""What was seen of one trial: ordered events, the final output, why it stopped.

Every field's docstring gives its meaning, its unit and what None means. All values are JSON data
(`seatrial.core.encoding`), so a stored trace reads back equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, field_validator

from seatrial.core.encoding import dumps
from seatrial.core.figures import KnownFigure
from seatrial.core.frozen import Frozen, Word

__all__ = [
    "AgentError",
    "Approval",
    "CallState",
    "ErrorEvent",
    "Event",
    "Fault",
    "Guardrail",
    "Handoff",
    "Message",
    "ModelCallEvent",
    "Observable",
    "Retrieval",
    "SafetyEvent",
    "StopReason",
    "ToolCallEvent",
    "Trace",
    "Usage",
    "count_of",
    "text_of",
]


class Observable(Word):
    """What an adapter can see. What is missing from its set is "not observed", never "did not happen"."""

    OUTPUT = "output"
    MESSAGES = "messages"
    MODEL_CALLS = "model_calls"
    USAGE = "usage"
    TOOL_CALLS = "tool_calls"
    HANDOFFS = "handoffs"
    HANDOFF_CONTEXT = "handoff_context"
    APPROVALS = "approvals"
    RETRIEVAL = "retrieval"
    OUTCOME = "outcome"
    SAFETY = "safety"


class StopReason(Word):
    """Why a trial ended."""

    ANSWERED = "answered"
    MAX_STEPS = "max_steps"
    TIMEOUT = "timeout"
    AGENT_ERROR = "agent_error"
    HARNESS_ERROR = "harness_error"
    WAITING_APPROVAL = "waiting_approval"
    CANCELLED = "cancelled"
    BUDGET = "budget"


class CallState(Word):
    """What became of a tool call."""

    EXECUTED = "executed"
    FAILED = "failed"
    """The tool raised."""
    REFUSED = "refused"
    """A policy or an approval stopped it before its body had an effect."""
    UNKNOWN_TOOL = "unknown_tool"
    INVALID_ARGUMENTS = "invalid_arguments"
    """Rejected by the tool's own schema, or no JSON object at all."""
    UNKNOWN = "unknown"
    """Its author could not say; satisfies nothing."""


class _Event(Frozen):
    number: int
    """1-based position; events are numbered in the order in which they began."""
    at_ms: float = 0.0
    """Milliseconds since the trial began, on a monotonic clock. Never compared by graders."""
    agent: str | None = None
    """Who did it; None when unknown."""
    turn: int = 1
    """The user's turn, from 1."""


_MOST_TOKENS = 2**53


def count_of(value: Any) -> int | None:
    """A number of tokens; None for what is none: negative, broken, no number at all, beyond 2^53."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None


class Usage(Frozen):
    """Tokens of one model call. None = unknown, never zero; what is no count (negative, broken, no number, beyond 2^53)
    is unknown too, so that nothing is reckoned from it."""

    input: int | None = None
    """All input tokens, those read from or written to a cache included."""
    output: int | None = None
    """All output tokens, reasoning included."""
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @field_validator("input", "output", "cached", "cache_write", "reasoning", mode="before")
    @classmethod
    def _counts_only(cls, value: Any) -> int | None:
        return count_of(value)


class Message(_Event):
    """What the user, an agent or a system prompt said."""

    kind: Literal["message"] = "message"
    role: str
    """user, assistant or system."""
    content: Any
    """Text, or a list of content parts."""


class ModelCallEvent(_Event):
    """One call of a language model: one step."""

    kind: Literal["model_call"] = "model_call"
    model: str | None = None
    usage: Usage | None = None
    """None when the adapter saw no usage."""
    cost_usd: KnownFigure = None
    """None when unknown: unknown is never free."""
    latency_ms: KnownFigure = None
    error: str | None = None


class ToolCallEvent(_Event):
    """One call of a tool, from being asked for to its end."""

    kind: Literal["tool_call"] = "tool_call"
    name: str
    call_id: str | None = None
    arguments: Any = None
    """As run: a mapping, or text when malformed. None and {} are no arguments."""
    asked: Any = None
    """As the model asked, where that differs from `arguments`; else None."""
    malformed: bool = False
    """The arguments were no JSON object."""
    state: CallState = CallState.EXECUTED
    result: Any = None
    told: Any = None
    """What the model was told, where that differs from `result`; else None."""
    error: str | None = None
    """`Type: message` of what the tool raised, or why it was refused or rejected."""
    duration_ms: KnownFigure = None
    attempt: int = 1
    """The how-manieth try of the same call id."""
    ended: int | None = None
    """Logical time of its end: the number the next event would have had. A call A was complete before B began
    exactly when A.ended <= B.number. None: it never ended."""
    step: int | None = None
    """Number of the model call that asked for it: calls with the same step have no order among themselves.
    None: unknown, then calls are taken one after the other."""
    stand_in: bool = False
    """Answered by the fixture's stand-in rather than the agent's own tool."""


class Retrieval(_Event):
    """Contexts that were looked up and given to a model."""

    kind: Literal["retrieval"] = "retrieval"
    query: Any = None
    contexts: tuple[Any, ...] = ()


class Handoff(_Event):
    """One agent giving the conversation to another. Never a tool call."""

    kind: Literal["handoff"] = "handoff"
    source: str
    target: str
    reason: str | None = None
    context: dict[str, Any] | None = None
    """None = could not be observed."""
    completed: bool = True
    """False when the target refused or does not exist."""
    step: int | None = None
    """As for a tool call."""


class Approval(_Event):
    """A question to a person and the answer: one event, numbered when it was asked."""

    kind: Literal["approval"] = "approval"
    action: str
    arguments: Any = None
    """As asked for."""
    decision: Literal["granted", "denied", "edited", "unanswered"]
    approved_arguments: Any = None
    """What an edited approval permits; else None."""
    approver: str | None = None
    call_id: str | None = None
    ended: int | None = None
    """Logical time of the answer, as for a tool call."""


class Guardrail(_Event):
    """A guard of the agent itself spoke."""

    kind: Literal["guardrail"] = "guardrail"
    name: str
    passed: bool
    details: Any = None


class Fault(_Event):
    """A fault that the fixture injected."""

    kind: Literal["fault"] = "fault"
    tool: str
    fault: str
    """timeout, error, rate_limit, latency, truncated, malformed, empty, stale or duplicate."""
    call: int | None = None
    """Number of the tool call it hit."""
    details: Any = None


class SafetyEvent(_Event):
    """Something that must not happen, seen by the harness or reported by the agent."""

    kind: Literal["safety"] = "safety"
    event: str
    """Such as secret_exposure or cross_tenant_access."""
    evidence: Any = None
    source: Literal["harness", "agent"] = "harness"


class ErrorEvent(_Event):
    """An exception that the adapter saw; the one that ended the trial also stands in `Trace.error`."""

    kind: Literal["error"] = "error"
    type: str
    message: str


Event = Annotated[
    Message
    | ModelCallEvent
    | ToolCallEvent
    | Retrieval
    | Handoff
    | Approval
    | Guardrail
    | Fault
    | SafetyEvent
    | ErrorEvent,
    Field(discriminator="kind"),
]

_E = TypeVar("_E", bound=_Event)


class AgentError(Frozen):
    """What the agent raised."""

    type: str
    """Qualified name of the exception's class."""
    message: str
    traceback: str = ""
    """Formatted, agent frames included; the end of it when it is long."""

    @property
    def summary(self) -> str:
        """`raised ValueError: message`, as it stands in a reason."""
        return f"raised {self.type.rpartition('.')[2]}: {self.message}"


class Trace(Frozen):
    """Everything that was observed of one trial."""

    events: tuple[Event, ...] = ()
    """In the order in which they began."""
    observes: frozenset[Observable] = frozenset()
    """What the adapter could see in this trial."""
    unobserved: dict[Observable, str] = Field(default_factory=dict)
    """Why it could not see some of the rest, where it knows."""
    output: Any = None
    """Final output of the last turn as JSON data; None when there is none."""
    outputs: tuple[Any, ...] = ()
    """Final output of every turn that ended, in order."""
    stop_reason: StopReason = StopReason.ANSWERED
    error: AgentError | None = None
    """What the agent raised; None when it did not."""
    ordered: bool = True
    """False when the order between tool calls and hand-offs is unknown."""
    log: str = ""
    """What the agent printed, up to a limit."""
    steps: int | None = None
    """Model calls of any agent; where none was seen, tool calls (see `steps_are_tool_calls`); None: not observed."""
    steps_are_tool_calls: bool = False
    replayed: int = 0
    """Answers of models that came from a cassette and not from the model."""
    estimates: dict[int, float] = Field(default_factory=dict)
    """USD that the agent itself said a turn cost, by the turn's number; a turn is missing when it did not say."""

    def of(self, event_type: type[_E]) -> Iterator[_E]:
        """The events of one type, in order."""
        return iter([event for event in self.events if type(event) is event_type])  # `isinstance` of a model is slow

    @property
    def tool_calls(self) -> tuple[ToolCallEvent, ...]:
        """All tool calls, in the order in which they began."""
        return tuple(self.of(ToolCallEvent))

    @property
    def handoffs(self) -> tuple[Handoff, ...]:
        """All hand-offs, in order."""
        return tuple(self.of(Handoff))

    @property
    def approvals(self) -> tuple[Approval, ...]:
        """All approvals, in the order in which they were asked for."""
        return tuple(self.of(Approval))

    @property
    def answered(self) -> bool:
        """Whether there is a final output to grade."""
        return self.stop_reason is StopReason.ANSWERED

    def saw(self, observable: Observable) -> bool:
        """Whether this kind of evidence could be observed at all."""
        return observable in self.observes

    def turn(self, number: int) -> Trace:
        """The part of one user turn, from 1, with that turn's answer."""
        output = self.outputs[number - 1] if number <= len(self.outputs) else None
        events = tuple(event for event in self.events if event.turn == number)
        return self.model_copy(update={"events": events, "output": output})


def text_of(output: Any) -> str:
    """The text of a final output as a person would read it: itself when it is text, else all its values, one a line.

    All of them, not just an answer: what must not be said must not stand beside it either.
    """
    return output if isinstance(output, str) else "\n".join(_leaves(output))


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        for item in value.values():
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _leaves(item)
    elif isinstance(value, str):
        yield value
    elif value is not None:
        yield dumps(value)
