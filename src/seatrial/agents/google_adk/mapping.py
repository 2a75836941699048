"""How a case's input becomes a message and a session's state, and what a run gave the answer: `input:` and `output:`.

```yaml
agent:
  target: my_agent:app
  input: {message: $message, state: {customer_id: $input.user_id}, user_id: $input.user_id}
  output: state.report
```

`input` absent: the user's message. `input` a mapping: `message` (a text or a list of parts), `state` (the session's,
set when the trial begins), `user_id` (else the fixture's `identity.user`), `run_config` (fields of a RunConfig); `$`
expressions as everywhere (`expressions`). `input` a text: such an expression for the message, or `module:function`,
called with the case's input of the turn, which gives the message or such a mapping.

`output` absent: what the last event gave as `output`, else the text of the last final response. `output` a text: a path
into `{text, output, state}`, or `module:function`, called with that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.adk.events.event import Event
from google.genai import types

from seatrial.agents.expressions import check_input, filled, named_function, reader
from seatrial.agents.google_adk.recorder import text_of_parts
from seatrial.core.encoding import dumps, to_json
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean

__all__ = ["Mapper", "RunInput", "given_by"]

_KEYS = ("message", "state", "user_id", "run_config")


@dataclass(frozen=True)
class RunInput:
    """What an agent is given in one turn."""

    message: types.Content
    state: Mapping[str, Any] = field(default_factory=dict)
    user_id: str | None = None
    run_config: Mapping[str, Any] = field(default_factory=dict)


class Mapper:
    """Input and output of one agent, as its spec says. UsageError when the spec makes no sense."""

    def __init__(self, given: Any = None, wanted: Any = None) -> None:
        """`given` and `wanted` are the spec's `input` and `output`."""
        self._given = given
        self._function = named_function(given)
        check_input(given, ("$messages",))
        if isinstance(given, Mapping):
            _check(given)
        elif given is not None and self._function is None and not (isinstance(given, str) and given.startswith("$")):
            raise UsageError(f"agent input: {given!r} is neither a mapping, a $ expression nor module:function")
        self.output = reader(wanted, _answer, "what the run gave")
        """The answer in what a run gave. UsageError when the path leads nowhere."""

    def input(self, turn: TurnInput) -> RunInput:
        """What the agent is given in this turn. UsageError when the case's input says nothing."""
        if self._function is not None:
            return _read(self._function(turn.input), turn)
        if self._given is not None:
            return _read(filled(self._given, turn, {"$messages": _spoken}), turn)
        if not turn.message:
            raise UsageError("the case's input has no `message`; say in `agent: {input: ...}` what the message is")
        return RunInput(_content(turn.message))


def _read(given: Any, turn: TurnInput) -> RunInput:
    if not isinstance(given, Mapping):
        return RunInput(_content(given))
    _check(given)
    message = _content(given.get("message", turn.message))
    user_id = given.get("user_id")
    return RunInput(
        message, given.get("state") or {}, None if user_id is None else str(user_id), given.get("run_config") or {}
    )


def _check(given: Mapping[str, Any]) -> None:
    for key in given:
        if key not in _KEYS:
            raise UsageError(f"agent input: a run has no {key!r}; {did_you_mean(str(key), _KEYS)}")


def _spoken(turn: TurnInput) -> list[str]:
    return [turn.message]


def _content(given: Any) -> types.Content:
    if isinstance(given, types.Content):
        return given
    parts = given if isinstance(given, list) else [given]
    return types.Content(role="user", parts=[_part(part) for part in parts])


def _part(given: Any) -> types.Part:
    if isinstance(given, types.Part):
        return given
    if isinstance(given, Mapping) and set(given) <= set(types.Part.model_fields):
        return types.Part.model_validate(given)
    return types.Part(text=given if isinstance(given, str) else dumps(to_json(given)))


def given_by(events: Sequence[Event], state: Mapping[str, Any]) -> dict[str, Any]:
    """What a run gave: `text` of its last final response, `output` of its last event with one, the final `state`."""
    final = [event for event in events if event.is_final_response() and not event.partial]
    texts = [text for text in (text_of_parts(event.content) for event in final) if text]
    outputs = [event.output for event in events if getattr(event, "output", None) is not None]
    return {"text": texts[-1] if texts else "", "output": outputs[-1] if outputs else None, "state": dict(state)}


def _answer(given: Mapping[str, Any]) -> Any:
    return given["text"] if given["output"] is None else given["output"]
