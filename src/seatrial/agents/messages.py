"""The messages between a trial and an agent outside this process: JSON objects with a `type`.

`docs/adapters/command.md` lists them for readers; `seatrial.agents.remote` takes them.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.ports import TurnInput
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import did_you_mean

__all__ = [
    "PROTOCOL",
    "Message",
    "MessageError",
    "check_usage_keys",
    "checked",
    "hello",
    "meant_tokens",
    "read_json",
    "turn_message",
]

PROTOCOL = 1
Message = Mapping[str, Any]

_FIELDS: Mapping[str, tuple[str, ...]] = {
    "hello": ("protocol", "observes"),
    "message": ("role", "content", "agent"),
    "model_call": ("id", "model", "usage", "cost_usd", "latency_ms", "error", "agent", "ask"),
    "model_result": ("id", "model", "usage", "cost_usd", "latency_ms", "error"),
    "tool_call": ("id", "name", "arguments", "asked", "agent", "ask", "own", "result", "error", "state", "told"),
    "tool_result": ("id", "result", "error", "state", "told"),
    "handoff": ("source", "target", "reason", "context", "completed"),
    "approval": ("id", "action", "arguments", "call", "agent"),
    "retrieval": ("query", "contexts", "agent"),
    "guardrail": ("name", "passed", "details", "agent"),
    "safety": ("event", "evidence", "agent"),
    "answer": ("output", "outcome", "latency_ms", "cost_usd", "stop_reason"),
    "error": ("kind", "message", "traceback"),
}
"""Every type of message, and what it may hold beside `type`."""
_TEXTS = ("id", "agent", "model", "call", "action", "event", "role", "kind", "stop_reason")
_TOKENS = ("input", "output", "cached", "cache_write", "reasoning")
_OTHER_NAMES = {
    "prompt_tokens": "input",
    "input_tokens": "input",
    "completion_tokens": "output",
    "output_tokens": "output",
    "cached_tokens": "cached",
    "cache_read_input_tokens": "cached",
    "cache_creation_input_tokens": "cache_write",
    "reasoning_tokens": "reasoning",
}
"""Kinds of tokens as providers call them."""


class MessageError(ValueError):
    """A message that is none, or says something that cannot be."""


def hello(trial: TrialEnvironment) -> dict[str, Any]:
    """What an agent outside is told of its trial, once."""
    return {
        "type": "hello",
        "protocol": PROTOCOL,
        "case": trial.case.id,
        "trial": trial.trial_index,
        "seed": trial.seed,
        "fixture": trial.fixture_name,
        "identity": to_json(dict(trial.identity)),
        "state": to_json(trial.state),
        "config": to_json(dict(trial.config)),
        "workdir": str(trial.workdir),
        "database": str(trial.database.path) if trial.has_database else None,
        "tools": [name for name in trial.tools if trial.has_stand_in(name)],
    }


def turn_message(turn: TurnInput) -> dict[str, Any]:
    """One turn of the user."""
    return {"type": "turn", "turn": turn.number, "input": to_json(turn.input), "message": turn.message}


def read_json(content: bytes | str) -> Any:
    """A value of JSON that says one thing. ValueError for what is no UTF-8, no JSON, no finite number (NaN, 1e999), or
    an object that has a name twice."""
    text = content if isinstance(content, str) else content.decode("utf-8")
    try:
        return json.loads(
            text, parse_constant=_not_finite, parse_float=_finite, object_pairs_hook=_object_of_different_names
        )
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _not_finite(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _not_finite(text)


def _object_of_different_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise ValueError(f"an object has {twice!r} twice")
    return found


def meant_tokens(name: str, known: Sequence[str] = _TOKENS) -> str:
    """A hint which kind of tokens, or which of `known`, an unknown name means."""
    meant = _OTHER_NAMES.get(name)
    return f"did you mean {meant!r}?" if meant is not None else did_you_mean(name, list(known))


def check_usage_keys(usage: Mapping[str, Any], place: str) -> None:
    """Only kinds of tokens. MessageError with the kind that was meant."""
    for name in usage:
        if name not in _TOKENS:
            raise MessageError(f"{place} has no field {name!r}; {meant_tokens(str(name))}")


def checked(message: Any) -> Message:
    """A message of a known type, with fields that this type has. MessageError otherwise."""
    if not isinstance(message, Mapping):
        raise MessageError(f"a message is a JSON object, not {type(message).__name__}")
    kind = message.get("type")
    if not isinstance(kind, str) or kind not in _FIELDS:
        raise MessageError(f"unknown type {kind!r}; {did_you_mean(str(kind), list(_FIELDS))}")
    for name in message:
        if name != "type" and name not in _FIELDS[kind]:
            raise MessageError(f"{kind} has no field {name!r}; {did_you_mean(str(name), list(_FIELDS[kind]))}")
    for name in _TEXTS:
        if message.get(name) is not None and not isinstance(message[name], str):
            raise MessageError(f"{kind}.{name} must be text, not {message[name]!r}")
    return message
