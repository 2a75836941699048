"""What a span says, in whichever dialect: OpenTelemetry's GenAI names, OpenInference, Traceloop, or Seatrial's own.

Instrumentations agree on little: the same thing stands under several names, arguments may be JSON or Python's repr, and
one call may have two spans, the framework's and its client's. Each function here reads one thing from all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from seatrial.agents.otel.span import Span
from seatrial.agents.otel.values import arguments_of, numbered, parsed
from seatrial.core import genai
from seatrial.core.trace import Usage
from seatrial.environment.reports import figure

__all__ = ["Asked", "Role", "agent_of", "asked_by", "handoff_of", "role_of", "said_by", "tool_of", "usage_of"]

_MODEL = frozenset({"chat", "text_completion", "generate_content", "call_llm", "completion", "response"})
_KINDS = {"LLM": "model", "TOOL": "tool", "AGENT": "agent", "RETRIEVER": "retrieval", "GUARDRAIL": "guardrail"}
_ENTITIES = {"tool": "tool", "agent": "agent"}
_HANDOFF = re.compile(r"handoff to (.+)")
_MERGED = "(merged)"
"""Google ADK sums up parallel calls in one more span, of a call that nobody made."""


class Role(StrEnum):
    """What a span stands for."""

    AGENT = "agent"
    MODEL = "model"
    TOOL = "tool"
    HANDOFF = "handoff"
    RETRIEVAL = "retrieval"
    GUARDRAIL = "guardrail"


@dataclass(frozen=True)
class Asked:
    """A tool call that a model asked for."""

    name: str
    arguments: Any
    call_id: str | None


def role_of(span: Span) -> Role | None:
    """None for a span that is none of these: chains, HTTP requests, wrappers."""
    if _MERGED in span.name:
        return None
    if _HANDOFF.fullmatch(span.name) or span.first(genai.HANDOFF_FROM, genai.HANDOFF_TO) is not None:
        return Role.HANDOFF
    operation = span.attributes.get(genai.OPERATION)
    if operation in _MODEL:
        return Role.MODEL
    if operation in (genai.INVOKE_AGENT, genai.EXECUTE_TOOL, genai.RETRIEVAL):
        return {"invoke_agent": Role.AGENT, "execute_tool": Role.TOOL, "retrieval": Role.RETRIEVAL}[str(operation)]
    kind = _KINDS.get(str(span.attributes.get("openinference.span.kind")))
    kind = kind or _ENTITIES.get(str(span.attributes.get("traceloop.span.kind")))
    return None if kind is None else Role(kind)


def agent_of(span: Span) -> str | None:
    """The name of the agent that a span names itself."""
    named = span.first(genai.AGENT_NAME, "agent.name", "graph.node.id", "agent_name")
    if named is None and role_of(span) is Role.AGENT:
        named = span.attributes.get("traceloop.entity.name") or span.name.removeprefix("invoke_agent ")
    return None if named is None else str(named)


def model_of(span: Span) -> str | None:
    """The model that answered, else the one that was asked."""
    name = span.first(genai.RESPONSE_MODEL, genai.REQUEST_MODEL, "llm.model_name")
    return None if name in (None, "unknown") else str(name)


def usage_of(span: Span) -> Usage | None:
    """Tokens of a model call; None where the span has no number of them."""
    counts = {
        "input": span.first(genai.USAGE_INPUT, "gen_ai.usage.prompt_tokens", "llm.token_count.prompt"),
        "output": span.first(genai.USAGE_OUTPUT, "gen_ai.usage.completion_tokens", "llm.token_count.completion"),
        "cached": span.first(genai.USAGE_CACHE_READ, "llm.token_count.prompt_details.cache_read"),
        "cache_write": span.first(genai.USAGE_CACHE_WRITE, "llm.token_count.prompt_details.cache_write"),
        "reasoning": span.first(
            genai.USAGE_REASONING, "gen_ai.usage.reasoning_tokens", "llm.token_count.completion_details.reasoning"
        ),
    }
    usage = Usage(**counts)
    return None if usage == Usage() else usage


def cost_of(span: Span) -> float | None:
    """USD, where the span says so."""
    own = _amount(span.attributes.get("seatrial.cost_usd"))
    if own is not None:
        return own
    sent, written = (_amount(span.attributes.get(f"gen_ai.usage.{part}_cost")) for part in ("input", "output"))
    return None if sent is None or written is None else sent + written


def _amount(value: Any) -> float | None:
    """A finite number of 0 or more; anything else is no amount."""
    try:
        return figure(value, "cost")
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class ToolSpan:
    """One tool call, as its span tells it."""

    name: str
    call_id: str | None
    arguments: Any
    result: Any


def tool_of(span: Span) -> ToolSpan:
    """The call of a span with the role of a tool."""
    named = span.first(genai.TOOL_NAME, "tool.name", "traceloop.entity.name")
    call_id = span.first(genai.TOOL_CALL_ID, "tool_call.id")
    given = span.first(genai.TOOL_ARGUMENTS, "gen_ai.tool.args", "input.value", "traceloop.entity.input")
    gave = span.first(genai.TOOL_RESULT, "gen_ai.output", "output.value", "traceloop.entity.output")
    return ToolSpan(
        name=str(named or span.name.removeprefix("execute_tool ").removesuffix(".tool")),
        call_id=None if call_id is None else str(call_id),
        arguments=arguments_of(given),
        result=parsed(gave),
    )


@dataclass(frozen=True)
class HandoffSpan:
    """One hand-off, as its span tells it."""

    source: str | None
    target: str | None
    reason: str | None = None
    context: Mapping[str, Any] | None = None
    completed: bool = True


def handoff_of(span: Span) -> HandoffSpan:
    """The hand-off of a span with that role; None where it does not say (`unknown` says nothing)."""
    written = _HANDOFF.fullmatch(span.name)
    target = span.attributes.get(genai.HANDOFF_TO) or (written and written[1])
    source = span.attributes.get(genai.HANDOFF_FROM)
    known_source, known_target = (None if name in (None, "", "unknown") else str(name) for name in (source, target))
    reason = span.attributes.get("seatrial.reason")
    context = parsed(span.attributes.get("seatrial.context"))
    return HandoffSpan(
        known_source,
        known_target,
        reason=None if reason is None else str(reason),
        context=context if isinstance(context, Mapping) else None,
        completed=span.attributes.get("seatrial.completed") is not False and span.error is None,
    )


# --- messages ------------------------------------------------------------------------------------------------------


def has_messages(span: Span) -> bool:
    """Whether a model's span holds what the model said at all."""
    return _output(span) is not None


def asked_by(span: Span) -> list[Asked]:
    """The tool calls that a model asked for, in order; empty where the span holds no messages."""
    return [asked for message in _output(span) or () for asked in message.asked]


def said_by(span: Span) -> str:
    """The text that a model said."""
    return "\n".join(message.text for message in _output(span) or () if message.text)


@dataclass(frozen=True)
class _Message:
    text: str
    asked: tuple[Asked, ...] = ()


def _output(span: Span) -> list[_Message] | None:
    """What came out of a model call; None where the span does not hold it."""
    written = parsed(span.first(genai.OUTPUT_MESSAGES, "gen_ai.output"))
    if written is None:
        flat = numbered(span.attributes, "llm.output_messages")
        return [_open_inference(each) for each in flat] if flat else None
    if not _is_list_of_mappings(written):
        return [_Message(written if isinstance(written, str) else str(span.first("gen_ai.output")))]
    return [_gen_ai(each) for each in written]


def _is_list_of_mappings(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str) and all(isinstance(v, Mapping) for v in value)


def _gen_ai(message: Mapping[str, Any]) -> _Message:
    """A message of parts, or (as any-agent writes them) a bare call."""
    if "tool.name" in message:
        return _Message("", (Asked(str(message["tool.name"]), arguments_of(message.get("tool.args")), None),))
    parts = message.get("parts")
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        return _Message(str(message.get("content") or ""))
    mappings = [part for part in parts if isinstance(part, Mapping)]
    calls = [part for part in mappings if part.get("type") in ("tool_call", "tool_use", "function_call")]
    texts = [str(part.get("content", part.get("text", ""))) for part in mappings if part.get("type") == "text"]
    return _Message("\n".join(texts), tuple(_asked(call) for call in calls))


def _asked(call: Mapping[str, Any]) -> Asked:
    arguments = call.get("arguments", call.get("args"))
    call_id = call.get("id")
    return Asked(str(call.get("name", "")), arguments_of(arguments), None if call_id is None else str(call_id))


def _open_inference(message: Mapping[str, Any]) -> _Message:
    calls = [
        {
            "id": each.get("tool_call.id"),
            "name": each.get("tool_call.function.name"),
            "arguments": each.get("tool_call.function.arguments"),
        }
        for each in numbered(message, "message.tool_calls")
    ]
    texts = [message.get("message.content")]
    texts += [part.get("message_content.text") for part in numbered(message, "message.contents")]
    said = list(dict.fromkeys(str(text) for text in texts if text))
    return _Message("\n".join(said), tuple(_asked(call) for call in calls))


def retrieved_by(span: Span) -> tuple[Any, tuple[Any, ...]]:
    """(query, contexts) of a retrieval."""
    query = span.first(genai.RETRIEVAL_QUERY, "input.value", "traceloop.entity.input")
    documents = parsed(span.attributes.get(genai.RETRIEVAL_DOCUMENTS))
    if isinstance(documents, Sequence) and not isinstance(documents, str):
        return query, tuple(documents)
    found = numbered(span.attributes, "retrieval.documents")
    return query, tuple(each.get("document.content", each) for each in found)
