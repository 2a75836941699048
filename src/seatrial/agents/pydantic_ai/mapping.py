"""How a case's input becomes the arguments of a run, and its result the answer: `input:` and `output:` of the agent.

```yaml
agent:
  target: my_agent:agent
  input: {prompt: $message, deps: {customer_id: $input.user_id, shop: main}}
  output: total
```

`input` absent: the prompt is the user's message; `messages` of the case's input are the conversation until there.
`input` a mapping: arguments of the run by name; `$` expressions as everywhere (`expressions`). `prompt` absent is the
user's message. `deps` is made once a trial: a mapping becomes the agent's `deps_type` (dataclass, model), and
`module:function` is called with the case's input. `input` a text: such a `$` expression for the prompt, or
`module:function`, called with the case's input of the turn, which gives the prompt or such a mapping.

`output` absent: the run's output. `output` a text: a path into it, or `module:function`, called with it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, SystemPromptPart, TextPart, UserPromptPart

from seatrial.agents.expressions import check_input, filled, named_function, reader
from seatrial.core.encoding import dumps, to_json
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean

__all__ = ["Mapper", "RunInput"]

_ARGUMENTS = ("prompt", "deps", "model", "instructions", "model_settings", "metadata")
"""What `input:` may give to a run."""


@dataclasses.dataclass(frozen=True)
class RunInput:
    """What an agent is run with in one turn."""

    prompt: Any
    history: Sequence[ModelMessage] = ()
    """What was said before, where the case's input says that."""
    make_deps: Callable[[], Any] = lambda: None
    """Makes the trial's deps."""
    more: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    """Other arguments of the run."""


class Mapper:
    """Input and output of one agent, as its spec says. UsageError when the spec makes no sense."""

    def __init__(self, deps_type: Any, given: Any = None, wanted: Any = None) -> None:
        """`deps_type` is the agent's; `given` and `wanted` are the spec's `input` and `output`."""
        self._deps_type = deps_type
        self._given = given
        self._function = named_function(given)
        check_input(given, ("$messages",))
        if isinstance(given, Mapping):
            _check(given)
            named_function(given.get("deps"), "input.deps")
        elif given is not None and self._function is None and not (isinstance(given, str) and given.startswith("$")):
            raise UsageError(f"agent input: {given!r} is neither a mapping, a $ expression nor module:function")
        self.output = reader(wanted, _plain, "the run's output")
        """The answer in a run's output. UsageError when the path leads nowhere."""

    def input(self, turn: TurnInput) -> RunInput:
        """What the agent is run with in this turn. UsageError when the case's input says nothing."""
        if self._function is not None:
            return self._read(self._function(turn.input), turn)
        if self._given is None:
            return self._said(turn)
        return self._read(filled(self._given, turn, {"$messages": _spoken}), turn)

    def _said(self, turn: TurnInput) -> RunInput:
        messages = turn.input.get("messages") if isinstance(turn.input, Mapping) else None
        if isinstance(messages, list) and messages and not turn.message:
            *earlier, last = messages
            return RunInput(str(last.get("content", "")), [_message(one) for one in earlier])
        if not turn.message:
            raise UsageError("the case's input has no `message`; say in `agent: {input: ...}` what the prompt is")
        return RunInput(turn.message)

    def _read(self, given: Any, turn: TurnInput) -> RunInput:
        if not isinstance(given, Mapping):
            return RunInput(_prompt(given))
        _check(given)
        more = {key: value for key, value in given.items() if key not in ("prompt", "deps")}
        prompt = given.get("prompt", turn.message)
        return RunInput(_prompt(prompt), make_deps=lambda: self._deps(given.get("deps"), turn), more=more)

    def _deps(self, given: Any, turn: TurnInput) -> Any:
        function = named_function(given, "input.deps")
        if function is not None:
            return function(turn.input)
        if not isinstance(given, Mapping) or not isinstance(self._deps_type, type):
            return given
        if not (dataclasses.is_dataclass(self._deps_type) or hasattr(self._deps_type, "model_validate")):
            return given
        try:
            return TypeAdapter(self._deps_type).validate_python(dict(given))
        except ValidationError as error:
            name = self._deps_type.__name__
            raise UsageError(f"agent input: deps do not make a {name}: {error.errors()[0]['msg']}") from error


def _check(given: Mapping[str, Any]) -> None:
    for key in given:
        if key not in _ARGUMENTS:
            raise UsageError(f"agent input: a run has no {key!r}; {did_you_mean(str(key), _ARGUMENTS)}")


def _spoken(turn: TurnInput) -> list[str]:
    return [turn.message]


def _prompt(given: Any) -> Any:
    """What a run takes as prompt; a value that is neither text nor a list of parts becomes JSON."""
    return given if isinstance(given, (str, list, tuple)) else dumps(to_json(given))


def _message(said: Mapping[str, Any]) -> ModelMessage:
    text = str(said.get("content", ""))
    if said.get("role") == "assistant":
        return ModelResponse(parts=[TextPart(text)])
    return ModelRequest(parts=[SystemPromptPart(text) if said.get("role") == "system" else UserPromptPart(text)])


def _plain(output: Any) -> Any:
    """A dataclass as the mapping it stands for; everything else says itself what it is."""
    if dataclasses.is_dataclass(output) and not isinstance(output, type):
        return TypeAdapter(type(output)).dump_python(output)
    return output
