"""A reply as OpenAI's responses endpoint says it: whole, or as events of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.core.trace import Usage
from seatrial.testing.model_server.chat import CREATED, call_id, pieces
from seatrial.testing.model_server.script import Reply

__all__ = ["events", "response"]

Said = dict[str, Any]
_ECHOED: Said = {
    "instructions": None,
    "max_output_tokens": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "previous_response_id": None,
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_p": 1.0,
    "truncation": "disabled",
    "user": None,
    "store": True,
}
"""What an answer repeats of its request, and what stands there where the request says nothing."""


def _usage(usage: Usage | None) -> Said | None:
    if usage is None:
        return None
    given, said = usage.input or 0, usage.output or 0
    return {
        "input_tokens": given,
        "input_tokens_details": {"cached_tokens": usage.cached or 0, "cache_write_tokens": usage.cache_write or 0},
        "output_tokens": said,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": given + said,
    }


def response(reply: Reply, body: Mapping[str, Any], identifier: str, line: int) -> Said:
    """The whole answer to a request with this body; `identifier` makes its ids, `line` those of its calls."""
    cut = reply.finish == "length"
    return {
        **_frame(reply, body, identifier),
        "status": "incomplete" if cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": list(_items(reply, identifier, line)),
        "usage": _usage(reply.usage),
    }


def _frame(reply: Reply, body: Mapping[str, Any], identifier: str) -> Said:
    echoed = {name: default if body.get(name) is None else body[name] for name, default in _ECHOED.items()}
    return {
        "id": f"resp_{identifier}",
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": reply.model or body.get("model") or "scripted",
        "output": [],
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "usage": None,
        **echoed,
    }


def _items(reply: Reply, identifier: str, line: int) -> Iterator[Said]:
    if reply.text is not None:
        yield {**_message(identifier, "completed"), "content": [_part(reply.text)]}
    for at, call in enumerate(reply.calls, 1):
        yield {
            "id": f"fc_{identifier}_{at}",
            "type": "function_call",
            "status": "completed",
            "call_id": call_id(call, line, at),
            "name": call.name,
            "arguments": call.text,
        }


def _message(identifier: str, status: str) -> Said:
    return {"id": f"msg_{identifier}", "type": "message", "status": status, "role": "assistant", "content": []}


def _part(text: str) -> Said:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def events(reply: Reply, body: Mapping[str, Any], identifier: str, line: int) -> Iterator[Said]:
    """The events of the same answer as a stream, numbered from 0."""
    for number, event in enumerate(_events(reply, body, identifier, line)):
        yield {**event, "sequence_number": number}


def _events(reply: Reply, body: Mapping[str, Any], identifier: str, line: int) -> Iterator[Said]:
    begun = _frame(reply, body, identifier)
    whole = response(reply, body, identifier, line)
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for at, item in enumerate(whole["output"]):
        part = _text_events if item["type"] == "message" else _call_events
        yield from part(item, at)
    yield {"type": f"response.{whole['status']}", "response": whole}


def _text_events(item: Said, at: int) -> Iterator[Said]:
    part = item["content"][0]
    place = {"item_id": item["id"], "output_index": at, "content_index": 0}
    begun = {**item, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    yield {"type": "response.content_part.added", **place, "part": _part("")}
    for text in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}


def _call_events(item: Said, at: int) -> Iterator[Said]:
    place = {"item_id": item["id"], "output_index": at}
    begun = {**item, "status": "in_progress", "arguments": ""}
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    for text in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": text}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": at, "item": item}
