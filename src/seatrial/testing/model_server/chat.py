"""A reply as OpenAI's chat completions say it: whole, or as chunks of a stream."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.core.trace import Usage
from seatrial.testing.model_server.script import Call, Reply

__all__ = ["CREATED", "call_id", "chunks", "completion", "pieces"]

CREATED = 1_767_225_600
"""When every answer was made: nothing in it depends on the clock."""
Said = dict[str, Any]


def call_id(call: Call, line: int, position: int) -> str:
    """The id of a call; `line` and `position` from 1."""
    return call.id or f"call_{line}_{position}"


def pieces(text: str) -> list[str]:
    """The text in the pieces that a stream carries: words with the space before them."""
    words = text.split(" ")
    return [word if not at else f" {word}" for at, word in enumerate(words)] if text else []


def _usage(usage: Usage | None) -> Said | None:
    if usage is None:
        return None
    prompt, said = usage.input or 0, usage.output or 0
    return {
        "prompt_tokens": prompt,
        "completion_tokens": said,
        "total_tokens": prompt + said,
        "prompt_tokens_details": {"cached_tokens": usage.cached or 0, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning or 0,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _head(reply: Reply, body: Mapping[str, Any], identifier: str, kind: str) -> Said:
    model = reply.model or body.get("model") or "scripted"
    head = {"id": f"chatcmpl-{identifier}", "object": kind, "created": CREATED, "model": model}
    return {**head, "service_tier": "default", "system_fingerprint": "fp_scripted"}


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def completion(reply: Reply, body: Mapping[str, Any], identifier: str, line: int) -> Said:
    """The whole answer to a request with this body; `identifier` makes its id, `line` its calls' ids."""
    message: Said = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [
            {"id": call_id(call, line, at), "type": "function", "function": {"name": call.name, "arguments": call.text}}
            for at, call in enumerate(reply.calls, 1)
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    whole = {**_head(reply, body, identifier, "chat.completion"), "choices": [choice]}
    return whole if reply.usage is None else {**whole, "usage": _usage(reply.usage)}


def chunks(reply: Reply, body: Mapping[str, Any], identifier: str, line: int) -> Iterator[Said]:
    """The chunks of the same answer; one of usage in the end where the request asks for it."""
    head = _head(reply, body, identifier, "chat.completion.chunk")
    with_usage = bool((body.get("stream_options") or {}).get("include_usage")) and reply.usage is not None
    if with_usage:
        head["usage"] = None

    def chunk(delta: Said, finish: str | None = None) -> Said:
        return {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": "" if reply.text is not None else None, "refusal": None})
    for text in pieces(reply.text or ""):
        yield chunk({"content": text})
    for at, call in enumerate(reply.calls):
        yield from (chunk({"tool_calls": [delta]}) for delta in _call_deltas(call, at, call_id(call, line, at + 1)))
    yield chunk({}, _finish(reply))
    if with_usage:
        yield {**head, "choices": [], "usage": _usage(reply.usage)}


def _call_deltas(call: Call, at: int, identifier: str) -> Iterator[Said]:
    begun = {"name": call.name, "arguments": ""}
    yield {"index": at, "id": identifier, "type": "function", "function": begun}
    for text in pieces(call.text):
        yield {"index": at, "function": {"arguments": text}}
