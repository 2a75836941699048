"""Hand-offs that are asked for by calling a tool: `handoff`, `transfer_to_agent` or `transfer_to_X`, and nothing else.

The target is the X, else what an argument names (`to`, `to_agent`, `agent`, `agent_name`, `target`), else `unknown`.
The reason is the argument `reason` (or `transfer_reason`), the context every other argument, a mapping argument
`context` taken apart; a call without arguments shows no context.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.environment.reports import as_text, read_arguments

__all__ = ["AskedHandoff", "asked_handoff", "handed_over", "is_handoff_tool"]

_NAMING = ("to", "to_agent", "agent", "agent_name", "target")
_UNNAMED = ("handoff", "transfer_to_agent")
"""Tools whose own name says nothing of the target."""


@dataclass(frozen=True)
class AskedHandoff:
    """What a call of a hand-off tool asks for."""

    target: str
    reason: str | None = None
    context: Mapping[str, Any] | None = None
    """None = the call has no arguments."""


def is_handoff_tool(name: str) -> bool:
    """Whether a tool of this name hands the conversation over: such a call is a hand-off, never a tool call."""
    return name == "handoff" or name.startswith("transfer_to_")


def asked_handoff(name: str, arguments: Any) -> AskedHandoff:
    """The hand-off that a call of a hand-off tool asks for. Malformed arguments say nothing."""
    read, malformed = read_arguments(arguments)
    given = {} if malformed else dict(read)
    target = name.removeprefix("transfer_to_")
    shows = bool(given)
    if name in _UNNAMED:
        naming = next((key for key in _NAMING if isinstance(given.get(key), str) and given[key]), None)
        target = "unknown" if naming is None else given.pop(naming)
    reason, context = handed_over(given)
    return AskedHandoff(target, reason, context if shows else None)


def handed_over(arguments: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Reason and context of a hand-off from its tool's arguments."""
    context = {key: value for key, value in arguments.items() if key not in ("reason", "transfer_reason", "context")}
    reason = arguments.get("reason") or arguments.get("transfer_reason")
    nested = arguments.get("context")
    if isinstance(nested, Mapping):
        context.update(nested)
    elif nested is not None:
        context["context"] = nested
    return as_text(reason), context
