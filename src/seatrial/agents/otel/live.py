"""The spans of this process, as they are made, sorted to the trials that they belong to.

A process has one tracer provider. Where the agent's code has set one, a span processor joins it; else one is set that
exports nothing. A span belongs to the trial in whose context it begins, or whose trace it belongs to: threads and tasks
that take neither along are not seen.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from typing import Any
from weakref import WeakValueDictionary

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from seatrial.agents.otel.span import Span, SpanEvent

__all__ = ["Collected", "collecting", "join", "prepare"]

_CAPTURE = {
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
    "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
    "TRACELOOP_TRACE_CONTENT": "true",
}
"""Without these, instrumentations leave out arguments, results and messages."""


class Collected:
    """The spans of one trial."""

    def __init__(self) -> None:
        self._spans: list[Any] = []

    def add(self, span: Any) -> None:
        """A span begins; it fills itself in until it ends."""
        self._spans.append(span)

    def taken(self) -> list[Span]:
        """The spans so far, which are then no longer here."""
        spans, self._spans = self._spans, []
        return [_read(span) for span in spans]


_collected: ContextVar[Collected | None] = ContextVar("seatrial_otel_spans", default=None)


@contextmanager
def collecting(collected: Collected) -> Iterator[None]:
    """Spans that begin in here go to `collected`."""
    token = _collected.set(collected)
    try:
        yield
    finally:
        _collected.reset(token)


class _Router(SpanProcessor):
    """Gives every span to its trial."""

    def __init__(self) -> None:
        self._by_trace: WeakValueDictionary[int, Collected] = WeakValueDictionary()
        self._lock = threading.Lock()

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        trace_id = span.context.trace_id
        with self._lock:
            found = _collected.get() or self._by_trace.get(trace_id)
            if found is not None:
                self._by_trace[trace_id] = found
                found.add(span)


@cache
def _router() -> _Router:
    return _Router()


def prepare() -> None:
    """Before the agent's code is imported: content is captured, and a provider is there."""
    for name, value in _CAPTURE.items():
        os.environ.setdefault(name, value)
    join()


def join() -> None:
    """Hear of every span of this process from now on; once, whichever provider there is."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    if not getattr(provider, "_seatrial_joined", False):
        provider._seatrial_joined = True  # type: ignore[attr-defined]  # a provider lives as long as its process
        provider.add_span_processor(_router())


def _read(span: Any) -> Span:
    status = span.status
    return Span(
        trace_id=f"{span.context.trace_id:x}",
        span_id=f"{span.context.span_id:x}",
        parent_id=None if span.parent is None else f"{span.parent.span_id:x}",
        name=span.name,
        start_ns=span.start_time or time.time_ns(),
        end_ns=span.end_time,
        attributes=dict(span.attributes or {}),
        events=[SpanEvent(event.name, dict(event.attributes or {})) for event in span.events],
        failed=status.status_code is trace.StatusCode.ERROR,
        description=status.description or "",
        scope=span.instrumentation_scope.name if span.instrumentation_scope else "",
    )
