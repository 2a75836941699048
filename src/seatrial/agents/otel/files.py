"""Files of spans: OpenTelemetry's JSON (OTLP, as its file exporter and most collectors write it, one object or one a
line), the Python SDK's `span.to_json()` (a list, or one a line), and any-agent's `{spans, final_output}`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from seatrial.agents.otel.span import Span, SpanEvent
from seatrial.errors import UsageError

__all__ = ["SpanFile", "read_spans"]


@dataclass(frozen=True)
class SpanFile:
    """What stands in a file of spans."""

    spans: tuple[Span, ...]
    final_output: Any = None
    """Where the file says it beside its spans."""


def read_spans(path: Path) -> SpanFile:
    """The spans of a file. UsageError naming file and place when it cannot be read or holds something else."""
    spans: list[Span] = []
    final_output: Any = None
    for place, document in _documents(path):
        try:
            spans += _spans_in(document)
        except KeyError as error:
            raise UsageError(f"{place}: a span lacks {error}; {_FORMATS}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise UsageError(f"{place}: no spans ({error}); {_FORMATS}") from error
        if isinstance(document, Mapping) and document.get("final_output") is not None:
            final_output = document["final_output"]
    return SpanFile(tuple(spans), final_output)


_FORMATS = "a file of spans holds OTLP JSON (resourceSpans), or spans as OpenTelemetry's SDK writes them (to_json)"


def _documents(path: Path) -> Iterator[tuple[str, Any]]:
    """The JSON documents of a file, one or one a line, each with where it stands."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    try:
        yield str(path), json.loads(text)
    except ValueError:
        for number, line in enumerate(text.splitlines(), start=1):
            if line.strip():
                yield f"{path}:{number}", _parsed(line, f"{path}:{number}")


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except ValueError as error:
        raise UsageError(f"{place}: this is no JSON ({error})") from error


def _spans_in(document: Any) -> Iterator[Span]:
    if isinstance(document, Sequence) and not isinstance(document, str):
        for each in document:
            yield from _spans_in(each)
    elif not isinstance(document, Mapping):
        raise TypeError(f"a span is a mapping, not {document!r}")
    elif "resourceSpans" in document:
        yield from _otlp(document)
    elif "spans" in document:
        yield from map(_sdk, document["spans"])
    else:
        yield _sdk(document)


# --- OTLP ----------------------------------------------------------------------------------------------------------


def _otlp(document: Mapping[str, Any]) -> Iterator[Span]:
    for resource in document["resourceSpans"]:
        for scope in resource.get("scopeSpans", resource.get("instrumentationLibrarySpans", ())):
            name = str(scope.get("scope", {}).get("name", ""))
            for span in scope.get("spans", ()):
                yield _otlp_span(span, name)


def _otlp_span(span: Mapping[str, Any], scope: str) -> Span:
    status = span.get("status", {})
    return Span(
        trace_id=str(span["traceId"]),
        span_id=str(span["spanId"]),
        parent_id=str(span["parentSpanId"]) if span.get("parentSpanId") else None,
        name=str(span.get("name", "")),
        start_ns=int(span["startTimeUnixNano"]),
        end_ns=int(span["endTimeUnixNano"]) if span.get("endTimeUnixNano") not in (None, "0", 0) else None,
        attributes=_otlp_attributes(span.get("attributes", ())),
        events=[_otlp_event(each) for each in span.get("events", ())],
        failed=status.get("code") in (2, "STATUS_CODE_ERROR"),
        description=str(status.get("message", "")),
        scope=scope,
        dropped=int(span.get("droppedAttributesCount", 0)) + int(span.get("droppedEventsCount", 0)),
    )


def _otlp_event(event: Mapping[str, Any]) -> SpanEvent:
    return SpanEvent(str(event["name"]), _otlp_attributes(event.get("attributes", ())))


def _otlp_attributes(attributes: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    return {str(each["key"]): _otlp_value(each.get("value", {})) for each in attributes}


def _otlp_value(value: Mapping[str, Any]) -> Any:
    for kind, content in value.items():
        if kind == "intValue":
            return int(content)
        if kind == "arrayValue":
            return [_otlp_value(each) for each in content.get("values", ())]
        if kind == "kvlistValue":
            return _otlp_attributes(content.get("values", ()))
        return content
    return None


# --- the SDK's own form --------------------------------------------------------------------------------------------


def _sdk(span: Mapping[str, Any]) -> Span:
    context, status = span["context"], span.get("status") or {}
    parent = span["parent"]["span_id"] if span.get("parent") else span.get("parent_id")
    return Span(
        trace_id=_id(context["trace_id"]),
        span_id=_id(context["span_id"]),
        parent_id=None if parent is None else _id(parent),
        name=str(span["name"]),
        start_ns=_nanoseconds(span["start_time"]),
        end_ns=_nanoseconds(span["end_time"]) if span.get("end_time") is not None else None,
        attributes=dict(span.get("attributes") or {}),
        events=[SpanEvent(str(each["name"]), dict(each.get("attributes") or {})) for each in span.get("events") or ()],
        failed=str(status.get("status_code", "")).lower() == "error",
        description=str(status.get("description") or ""),
        scope=str((span.get("scope") or span.get("instrumentation_scope") or {}).get("name", "")),
    )


def _id(value: Any) -> str:
    """Ids are hexadecimal text, or numbers beyond 2^53."""
    return f"{value:x}" if isinstance(value, int) else str(value).removeprefix("0x")


def _nanoseconds(value: Any) -> int:
    """A time in nanoseconds, or ISO 8601."""
    if isinstance(value, int):
        return value
    moment = datetime.fromisoformat(str(value))
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000
