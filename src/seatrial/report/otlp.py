"""A run as OpenTelemetry spans: OTLP in JSON, one trial a line, as OpenTelemetry's own file exporter writes it.

Any trace viewer that reads OTLP files shows a trial as one trace:

    trial CASE#N                    grades as gen_ai.evaluation.result events, what was said, what went wrong
      invoke_agent NAME             from the first to the last thing that this agent did
        chat MODEL                  one model call
        execute_tool NAME           one tool call
        handoff to NAME

Ids are made from run, case, trial and attempt, so the same run always gives the same file. A trial's clock starts with
the run: when trials of a run began relative to each other is on no record. Names are those of the GenAI conventions;
what these have no word for is called `seatrial.*`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from seatrial.core import genai
from seatrial.core.encoding import dumps
from seatrial.core.model_json import json_of
from seatrial.core.run import RunInfo
from seatrial.core.trace import (
    CallState,
    Event,
    Handoff,
    Message,
    ModelCallEvent,
    Retrieval,
    StopReason,
    ToolCallEvent,
    Trace,
    Usage,
)
from seatrial.core.trial import TrialRecord

__all__ = ["otlp_lines"]

_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_NOBODY = ""
"""Events without an agent hang at the trial itself."""

Attributes = Mapping[str, Any]
_SPANS = (ModelCallEvent, ToolCallEvent, Handoff, Retrieval)


def otlp_lines(info: RunInfo, finished: Iterable[tuple[TrialRecord, Trace]]) -> Iterator[str]:
    """One line of OTLP JSON a trial."""
    began = int(datetime.fromisoformat(info.started or "1970-01-01T00:00:00+00:00").timestamp() * 1000)
    version = info.versions.get("seatrial", "")
    resource = _attributes(
        {
            "service.name": "seatrial",
            "service.version": version,
            "seatrial.run_id": info.run_id,
            "seatrial.build_id": info.build_id,
        }
    )
    for record, trace in finished:
        spans = list(_Trial(info.run_id, record, trace, began).spans())
        scope = {"scope": {"name": "seatrial", "version": version}, "spans": spans}
        yield dumps({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [scope]}]})


class _Trial:
    """The spans of one trial."""

    def __init__(self, run_id: str, record: TrialRecord, trace: Trace, began_ms: int) -> None:
        self._key = f"{run_id}\n{record.case_id}\n{record.trial_index}\n{record.attempt}"
        self._record, self._trace, self._began = record, trace, began_ms

    def spans(self) -> Iterator[dict[str, Any]]:
        yield self._root()
        for agent in self._agents():
            yield self._agent(agent)
        for event in self._trace.events:
            if isinstance(event, _SPANS):
                yield self._of(event)

    # --- the three kinds of spans ----------------------------------------------------------------------------------

    def _root(self) -> dict[str, Any]:
        record = self._record
        attributes = {
            genai.CONVERSATION_ID: f"{record.case_id}#{record.trial_index}",
            "seatrial.case": record.case_id,
            "seatrial.suite": record.suite,
            "seatrial.trial": record.trial_index,
            "seatrial.attempt": record.attempt,
            "seatrial.status": str(record.status),
            "seatrial.stop_reason": str(record.stop_reason),
            "seatrial.observes": sorted(self._trace.observes),
            "seatrial.cost_usd": record.cost_usd,
            "seatrial.replayed": record.replayed or None,  # such a trial is no evidence of its own
            genai.INPUT_MESSAGES: _messages(self._trace.of(Message), "user"),
            genai.OUTPUT_MESSAGES: None if record.output is None else dumps([_said("assistant", record.output)]),
        }
        start, end = self._times(self._trace.events, latency_ms=record.latency_ms)
        span = self._span("trial", _NOBODY, f"trial {record.case_id}#{record.trial_index}", start, end, attributes)
        span["events"] = [*self._notes(), *self._grades(end)]
        if record.stop_reason is not StopReason.ANSWERED:  # what graders say is no error of the agent's
            span["status"] = {"code": _ERROR, "message": record.detail or str(record.stop_reason)}
        return span

    def _agents(self) -> list[str]:
        return list(dict.fromkeys(event.agent for event in self._trace.events if event.agent is not None))

    def _agent(self, name: str) -> dict[str, Any]:
        start, end = self._times([event for event in self._trace.events if event.agent == name])
        attributes = {genai.OPERATION: genai.INVOKE_AGENT, genai.AGENT_NAME: name}
        return self._span(f"agent {name}", "trial", f"invoke_agent {name}", start, end, attributes)

    def _of(self, event: Event) -> dict[str, Any]:
        name, attributes, error = _described(event)
        attributes = {genai.AGENT_NAME: event.agent, "seatrial.number": event.number, **attributes}
        start, end = event.at_ms, event.at_ms + _length(event)
        parent = "trial" if event.agent is None else f"agent {event.agent}"
        kind = _CLIENT if isinstance(event, ModelCallEvent) else _INTERNAL
        span = self._span(f"event {event.number}", parent, name, start, end, attributes, kind)
        if error is not None:
            span["status"] = {"code": _ERROR, "message": error}
            exception = {"exception.type": error.partition(":")[0], "exception.message": error}
            span["events"] = [self._note("exception", end, exception)]
        return span

    def _times(self, events: Iterable[Event], latency_ms: float | None = None) -> tuple[float, float]:
        """From when to when these events lasted, in milliseconds of the trial's clock."""
        spans = [(event.at_ms, event.at_ms + _length(event)) for event in events]
        start = min((start for start, _ in spans), default=0.0)
        return start, max([end for _, end in spans] + [start + (latency_ms or 0.0)])

    # --- their parts -----------------------------------------------------------------------------------------------

    def _span(
        self,
        what: str,
        parent: str,
        name: str,
        start_ms: float,
        end_ms: float,
        attributes: Attributes,
        kind: int = _INTERNAL,
    ) -> dict[str, Any]:
        span = {
            "traceId": self._id("trace", 32),
            "spanId": self._id(what, 16),
            "name": name,
            "kind": kind,
            "startTimeUnixNano": self._nanoseconds(start_ms),
            "endTimeUnixNano": self._nanoseconds(end_ms),
            "attributes": _attributes(attributes),
        }
        return {**span, "parentSpanId": self._id(parent, 16)} if parent else span

    def _id(self, what: str, digits: int) -> str:
        return hashlib.sha256(f"{self._key}\n{what}".encode(errors="surrogatepass")).hexdigest()[:digits]

    def _nanoseconds(self, at_ms: float) -> str:
        return str(self._began * 1_000_000 + round(at_ms * 1_000_000))

    def _note(self, name: str, at_ms: float, attributes: Attributes) -> dict[str, Any]:
        return {"name": name, "timeUnixNano": self._nanoseconds(at_ms), "attributes": _attributes(attributes)}

    def _notes(self) -> Iterator[dict[str, Any]]:
        """What happened at a moment: approvals, guardrails, faults, safety events, errors, messages."""
        for event in self._trace.events:
            if not isinstance(event, _SPANS):
                fields = json_of(event, exclude={"at_ms", "kind"}, exclude_none=True)
                attributes = {f"seatrial.{key}": _plain(value) for key, value in fields.items()}
                yield self._note(f"seatrial.{event.kind}", event.at_ms, attributes)

    def _grades(self, at_ms: float) -> Iterator[dict[str, Any]]:
        for grade in self._record.grades:
            yield self._note(
                genai.EVALUATION_RESULT,
                at_ms,
                {
                    genai.EVALUATION_NAME: grade.name,
                    genai.EVALUATION_LABEL: str(grade.verdict),
                    genai.EVALUATION_SCORE: grade.score,
                    genai.EVALUATION_EXPLANATION: grade.reason,
                },
            )


# --- events as spans -----------------------------------------------------------------------------------------------


def _described(event: Event) -> tuple[str, dict[str, Any], str | None]:
    """Name, attributes and error of the span of an event."""
    match event:
        case ModelCallEvent():
            names = {genai.OPERATION: genai.CHAT, genai.REQUEST_MODEL: event.model, genai.RESPONSE_MODEL: event.model}
            return f"chat {event.model or ''}".rstrip(), {**names, **_usage(event)}, event.error
        case ToolCallEvent():
            return f"execute_tool {event.name}", _call(event), _failure(event)
        case Handoff():
            attributes = {genai.HANDOFF_FROM: event.source, genai.HANDOFF_TO: event.target}
            extra = {
                "seatrial.reason": event.reason,
                "seatrial.completed": event.completed,
                "seatrial.step": event.step,
            }
            context = {} if event.context is None else {"seatrial.context": dumps(event.context)}
            return f"handoff to {event.target}", {**attributes, **extra, **context}, None
        case Retrieval():
            found = {genai.RETRIEVAL_QUERY: _plain(event.query), genai.RETRIEVAL_DOCUMENTS: dumps(list(event.contexts))}
            return "retrieval", {genai.OPERATION: genai.RETRIEVAL, **found}, None
        case _:
            raise TypeError(f"a {event.kind} is no span")


def _usage(event: ModelCallEvent) -> dict[str, Any]:
    usage = event.usage or Usage()
    return {
        genai.USAGE_INPUT: usage.input,
        genai.USAGE_OUTPUT: usage.output,
        genai.USAGE_CACHE_READ: usage.cached,
        genai.USAGE_CACHE_WRITE: usage.cache_write,
        genai.USAGE_REASONING: usage.reasoning,
        "seatrial.cost_usd": event.cost_usd,
    }


def _call(event: ToolCallEvent) -> dict[str, Any]:
    return {
        genai.OPERATION: genai.EXECUTE_TOOL,
        genai.TOOL_NAME: event.name,
        genai.TOOL_CALL_ID: event.call_id,
        genai.TOOL_ARGUMENTS: _plain(event.arguments),
        genai.TOOL_RESULT: _plain(event.result if event.told is None else event.told),
        "seatrial.state": str(event.state),
        "seatrial.step": event.step,
        "seatrial.attempt": event.attempt,
        "seatrial.stand_in": event.stand_in or None,
    }


def _handoff(event: Handoff) -> dict[str, Any]:
    return {
        genai.HANDOFF_FROM: event.source,
        genai.HANDOFF_TO: event.target,
        "seatrial.reason": event.reason,
        "seatrial.context": None if event.context is None else dumps(event.context),
        "seatrial.completed": event.completed,
        "seatrial.step": event.step,
    }


def _failure(event: ToolCallEvent) -> str | None:
    return None if event.state is CallState.EXECUTED else event.error or str(event.state)


def _length(event: Event) -> float:
    """How long it took, in milliseconds; 0 where that is not known."""
    match event:
        case ModelCallEvent():
            return event.latency_ms or 0.0
        case ToolCallEvent():
            return event.duration_ms or 0.0
        case _:
            return 0.0


# --- values --------------------------------------------------------------------------------------------------------


def _messages(messages: Iterable[Message], role: str) -> str | None:
    said = [_said(role, message.content) for message in messages if message.role == role]
    return dumps(said) if said else None


def _said(role: str, content: Any) -> dict[str, Any]:
    return {
        "role": role,
        "parts": [{"type": "text", "content": content if isinstance(content, str) else dumps(content)}],
    }


def _plain(value: Any) -> Any:
    """A value that an attribute can hold: text, number or boolean as it is, anything else as JSON text."""
    return value if value is None or isinstance(value, (str, bool, int, float)) else dumps(value)


def _attributes(values: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _any_value(value)} for key, value in values.items() if value is not None]


def _any_value(value: Any) -> dict[str, Any]:
    """OTLP's AnyValue; its JSON form writes 64-bit integers as text."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)} if -(2**63) <= value < 2**63 else {"stringValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_any_value(each) for each in value]}}
        case _:
            return {"stringValue": str(value)}
