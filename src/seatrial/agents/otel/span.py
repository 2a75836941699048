"""One OpenTelemetry span, whatever it was read from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["CONTROL_FLOW", "Span", "SpanEvent"]

CONTROL_FLOW = ("GraphInterrupt", "ParentCommand", "GraphBubbleUp", "NodeInterrupt")
"""Exceptions by which frameworks stop for approval or hand over: no errors."""


@dataclass(frozen=True)
class SpanEvent:
    """Something that happened at a moment of a span."""

    name: str
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Span:
    """A span. Times are nanoseconds since 1970."""

    trace_id: str
    span_id: str
    parent_id: str | None
    name: str
    start_ns: int
    end_ns: int | None
    """None: it never ended."""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: Sequence[SpanEvent] = ()
    failed: bool = False
    """Its status is an error."""
    description: str = ""
    """Of that status."""
    scope: str = ""
    """Name of the instrumentation that made it."""
    dropped: int = 0
    """Attributes and events that its SDK left out."""

    def first(self, *names: str) -> Any:
        """The value of the first of these attributes that it has; None when it has none."""
        return next((self.attributes[name] for name in names if self.attributes.get(name) is not None), None)

    @property
    def exception(self) -> tuple[str, str] | None:
        """(type, message) of the exception on record, or of an error without one; None when all went well."""
        raised = [event.attributes for event in self.events if event.name == "exception"]
        if raised:
            kind = str(raised[-1].get("exception.type", "Error"))
            return kind.rpartition(".")[2], str(raised[-1].get("exception.message", ""))
        if self.failed or "error.type" in self.attributes:
            return str(self.attributes.get("error.type", "Error")).rpartition(".")[2], self.description
        return None

    @property
    def error(self) -> str | None:
        """`Type: message` of what went wrong; None when nothing did, or the framework only stopped or handed over."""
        exception = self.exception
        if exception is None or exception[0] in CONTROL_FLOW:
            return None
        kind, message = exception
        return kind if not message or message == kind else message if message.startswith(kind) else f"{kind}: {message}"

    @property
    def stopped(self) -> bool:
        """Whether it ended because the framework stopped for approval, or handed over."""
        return self.exception is not None and self.exception[0] in CONTROL_FLOW
