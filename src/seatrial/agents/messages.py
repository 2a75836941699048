"""The messages between a trial and an agent outside this process: JSON objects with a `type`.

`docs/adapters/command.md` lists them for readers; `seatrial.agents.remote` takes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.core.encoding import to_json
from seatrial.core.ports import TurnInput
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import did_you_mean

__all__ = ["PROTOCOL", "Message", "MessageError", "checked", "hello", "turn_message"]

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
