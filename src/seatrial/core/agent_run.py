"""What an agent's author may hand to Seatrial: plain, positional, free of dependencies.

These are reports. The events of a trace (`seatrial.core.trace`) are made from them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["AgentRun", "HandoffEvent", "ModelCall", "ToolCall"]


@dataclass(frozen=True)
class ToolCall:
    """One call of a tool, as the agent's author reports it."""

    name: str
    arguments: Any = None
    """A mapping, None, or text that is read as JSON. Anything that is no JSON object is malformed."""
    result: Any = None
    error: Any = None
    """Text or an exception. With an error the call is `failed`, else `executed`, unless `state` says otherwise."""
    state: str | None = None
    """executed, failed, refused, unknown_tool, invalid_arguments or unknown (which satisfies nothing)."""
    call_id: str | None = None
    agent: str | None = None


@dataclass(frozen=True)
class HandoffEvent:
    """One agent giving the conversation to another."""

    source: str
    target: str
    reason: str | None = None
    context: Mapping[str, Any] | None = None
    """What was handed over; None when that could not be observed."""


@dataclass(frozen=True)
class ModelCall:
    """One call of a language model. Token counts are None when unknown."""

    model: str | None = None
    input: int | None = None
    """All input tokens, those read from or written to a cache included."""
    output: int | None = None
    """All output tokens, reasoning included."""
    cached: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    cost_usd: float | None = None
    """Known cost of this call; None lets the price table decide."""
    latency_ms: float | None = None
    error: Any = None
    agent: str | None = None


@dataclass(frozen=True)
class AgentRun:
    """One turn of an agent, reported whole by its author."""

    final_output: Any
    tool_calls: Sequence[ToolCall] = ()
    handoffs: Sequence[HandoffEvent] = ()
    outcome: Mapping[str, Any] = field(default_factory=dict)
    """The final state as the agent reports it; what a fixture observes wins over it."""
    safety_events: Sequence[Any] = ()
    """Names, or mappings {event, evidence}, that the agent's own guards reported."""
    usage: Sequence[Any] = ()
    """Mappings {model, input, output, cached, cache_write, reasoning}, or ModelCall."""
    events: Sequence[Any] | None = None
    """Tool calls, hand-offs and model calls in the order they happened. Without it the order between
    `tool_calls` and `handoffs` is unknown."""
    latency_ms: float | None = None
    """None: not measured by the agent (the harness measures for itself)."""
    estimated_cost_usd: float | None = None
    """None: unknown, which is never free."""
