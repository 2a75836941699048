"""What an agent's author hands in is checked before it becomes part of the trace, so that the trace always reads back.

Every function raises TypeError or ValueError naming the field, what it should be and what it was.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from seatrial.core.agent_run import HandoffEvent, ModelCall, ToolCall
from seatrial.core.encoding import to_json
from seatrial.core.figures import figure_of
from seatrial.core.trace import CallState, Usage
from seatrial.environment.failure import error_text
from seatrial.errors import did_you_mean

__all__ = [
    "as_text",
    "check_handoff",
    "check_text",
    "check_tool_call",
    "figure",
    "read_arguments",
    "usage_of",
]

_NEVER_RAN = (CallState.REFUSED, CallState.UNKNOWN_TOOL, CallState.INVALID_ARGUMENTS)
_MAYBE = (str, type(None))
_COUNTS = ("input", "output", "cached", "cache_write", "reasoning")


def as_text(value: Any) -> str | None:
    """A name or an id as text, whatever a framework takes for one; None stays None."""
    if value is None or type(value) is str:
        return value
    return str.__str__(value) if isinstance(value, str) else error_text(value)


def read_arguments(arguments: Any) -> tuple[Any, bool]:
    """Arguments as JSON data, and whether they were malformed (no JSON object).

    None, empty text and an empty mapping are no arguments: {}. Text is read as JSON. Malformed arguments are kept
    as they came.
    """
    if arguments is None or arguments == "":
        return {}, False
    if isinstance(arguments, (dict, Mapping)):
        return to_json(arguments), False
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments)
        except (ValueError, RecursionError):
            return arguments, True
        return (parsed, False) if isinstance(parsed, dict) else (arguments, True)
    return to_json(arguments), True


def check_tool_call(call: ToolCall) -> CallState | None:
    """The state that the call names; None when it leaves that to its error. ValueError for one that its result or
    error contradicts."""
    if not (isinstance(call.name, str) and isinstance(call.agent, _MAYBE) and isinstance(call.call_id, _MAYBE)):
        check_text(call.name, "ToolCall.name")
        check_text(call.agent, "ToolCall.agent", optional=True)
        check_text(call.call_id, "ToolCall.call_id", optional=True)
    if call.state is None:
        return None
    states = [state.value for state in CallState]
    if call.state not in states:
        raise ValueError(f"ToolCall.state cannot be {call.state!r}; {did_you_mean(str(call.state), states)}")
    state = CallState(call.state)
    if state is CallState.EXECUTED and call.error is not None:
        raise ValueError("ToolCall.state cannot be 'executed' with an error: a call that raised is 'failed'")
    if state in _NEVER_RAN and call.result is not None:
        raise ValueError(f"ToolCall.state cannot be {state.value!r} with a result: such a call never ran")
    return state


def check_handoff(event: HandoffEvent) -> None:
    """Source, target and reason are texts, the context a mapping."""
    check_text(event.source, "HandoffEvent.source")
    check_text(event.target, "HandoffEvent.target")
    check_text(event.reason, "HandoffEvent.reason", optional=True)
    if event.context is not None and not isinstance(event.context, Mapping):
        raise TypeError(f"HandoffEvent.context must be a mapping or None, not {type(event.context).__name__}")


def usage_of(call: ModelCall) -> Usage:
    """The tokens of a model call, and whether its other fields can be kept."""
    check_text(call.model, "ModelCall.model", optional=True)
    check_text(call.agent, "ModelCall.agent", optional=True)
    figure(call.cost_usd, "ModelCall.cost_usd")
    figure(call.latency_ms, "ModelCall.latency_ms")
    return Usage(**{name: _count(getattr(call, name), f"ModelCall.{name}") for name in _COUNTS})


def check_text(value: Any, name: str, *, optional: bool = False) -> None:
    """Raises TypeError, which says `name`, for what is no text (nor None, where that is allowed)."""
    if isinstance(value, str) or (optional and value is None):
        return
    raise TypeError(f"{name} must be text{' or None' if optional else ''}, not {value!r} ({type(value).__name__})")


def _count(value: Any, name: str) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
        raise TypeError(f"{name} must be a whole number or None, not {value!r} ({type(value).__name__})")
    if value < 0:
        raise ValueError(f"{name} must be 0 or more, not {value!r}")
    return int(value)


def figure(value: Any, name: str) -> float | None:
    """A finite number of 0 or more, or None, which a number too large to be measured is too."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{name} must be a number or None, not {value!r} ({type(value).__name__})")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(f"{name} must be a number of at most 308 digits, not one of more") from None
    if not (math.isfinite(number) and number >= 0):
        raise ValueError(f"{name} must be a finite number of 0 or more, not {value!r}")
    known = figure_of(number)
    return None if known is None else float(known)
