"""What Seatrial reads in LlamaIndex's objects, by their public attributes.

What a provider answered stands in `raw` of a response: a mapping or an object of the provider's own client, so tokens
are looked for under the names of the common ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.core.trace import Usage, count_of

__all__ = ["asked_arguments", "model_of", "result_of", "text_of_response", "usage_of"]

_INPUT = ("prompt_tokens", "input_tokens", "prompt_token_count", "inputTokens", "prompt_eval_count")
_OUTPUT = ("completion_tokens", "output_tokens", "candidates_token_count", "outputTokens", "eval_count")
_CACHED = (
    "prompt_tokens_details.cached_tokens",
    "input_tokens_details.cached_tokens",
    "cache_read_input_tokens",
    "cached_content_token_count",
    "prompt_cache_hit_tokens",
    "cacheReadInputTokens",
)
_CACHE_WRITE = (
    "prompt_tokens_details.cache_write_tokens",
    "input_tokens_details.cache_write_tokens",
    "cache_creation_input_tokens",
    "cacheWriteInputTokens",
)
_REASONING = (
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens",
    "thoughts_token_count",
)
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens", "cacheReadInputTokens", "cacheWriteInputTokens")
"""Where a provider counts these, it leaves them out of its input tokens."""


def usage_of(response: Any) -> Usage | None:
    """Tokens of a model's response; None where the provider said nothing."""
    told = _usage_in(response)
    if told is None:
        return None
    sent, written = _tokens(told, _INPUT), _tokens(told, _OUTPUT)
    if sent is not None:
        sent += sum(_tokens(told, (name,)) or 0 for name in _BESIDE)
    thoughts = _tokens(told, ("thoughts_token_count",))
    if written is not None and thoughts is not None:
        written += thoughts
    return Usage(
        input=sent,
        output=written,
        cached=_tokens(told, _CACHED),
        cache_write=_tokens(told, _CACHE_WRITE),
        reasoning=_tokens(told, _REASONING),
    )


def _usage_in(response: Any) -> Any:
    raw = getattr(response, "raw", None)
    places = [_get(raw, "usage"), _get(raw, "usage_metadata"), raw, getattr(response, "additional_kwargs", None)]
    found = (place for place in places if place is not None)
    return next((one for one in found if _tokens(one, _INPUT) is not None or _tokens(one, _OUTPUT) is not None), None)


def _tokens(told: Any, names: Sequence[str]) -> int | None:
    """The first of these that is a number of tokens."""
    for name in names:
        value = told
        for part in name.split("."):
            value = _get(value, part)
        count = count_of(value)
        if count is not None:
            return count
    return None


def _get(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def model_of(response: Any) -> str | None:
    """Name of the model as the provider reports it; None where it does not."""
    raw = getattr(response, "raw", None)
    name = _get(raw, "model") or _get(raw, "model_version")
    return name if isinstance(name, str) else None


def text_of_response(response: Any) -> str:
    """What the model said, as text."""
    message = getattr(response, "message", None)
    text = getattr(response, "text", None) if message is None else message.content
    return text if isinstance(text, str) else ""


def asked_arguments(message: Any) -> dict[str, Any]:
    """Arguments by call id, as the model wrote them: what is no JSON object stays text."""
    found = {}
    for block in getattr(message, "blocks", ()):
        call_id, arguments = getattr(block, "tool_call_id", None), getattr(block, "tool_kwargs", None)
        if call_id is not None and arguments is not None:
            found[call_id] = arguments
    return found


def result_of(output: Any) -> Any:
    """What a tool gave: its own value; the text of it where that is a query engine's answer, or nodes."""
    raw = output.raw_output
    if hasattr(raw, "source_nodes"):
        return output.content
    nodes = isinstance(raw, list) and raw and all(callable(getattr(one, "get_content", None)) for one in raw)
    return [one.get_content() for one in raw] if nodes else raw
