"""How a case's input becomes a graph's, and a graph's final state the answer: `input:` and `output:` of the agent.

```yaml
agent:
  target: my_agent:graph
  input: {question: $message, customer: $input.user_id, language: en}
  output: report.summary
```

`input` absent: a graph whose input has `messages` gets the user's message as one (or the case's own `messages`), and
every other key of the case's input that the graph's input knows. A graph without `messages` gets the keys that it
knows; where the case's input is a text and the graph's input has one key, that key is the text.

`input` a mapping: a value for each key of the graph's input; `$message` is what the user says in this turn, `$messages`
the same as a list of one message, `$input` the case's whole input, `$input.a.b` a part of it (None where it is
missing), at any depth; anything else is meant literally, and `$$` at a text's start is a dollar. Two keys go elsewhere:
`$context` to the graph's runtime context, `$configurable` to `config["configurable"]`.
`input` a text: such a `$` expression for the whole input, or `module:function`, called with the case's input of the
turn.

`output` absent: the structured answer (`structured_response`) where there is one, else the text of the last thing the
agent said in `messages`, else the whole final state. `output` a text: a path into the final state
(`messages[-1].content`, `report.summary`), or `module:function`, called with the final state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import HumanMessage

from seatrial.agents.expressions import check_input, filled, named_function, reader
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean

__all__ = ["GraphInput", "Mapper", "final_answer"]

_ELSEWHERE = ("$context", "$configurable")


@dataclass(frozen=True)
class GraphInput:
    """What a graph is given for one turn."""

    state: Any
    context: Any = None
    configurable: Mapping[str, Any] = field(default_factory=dict)


class Mapper:
    """Input and output of one graph, as the agent's spec says. UsageError when the spec makes no sense."""

    def __init__(self, keys: Sequence[str], given: Any = None, wanted: Any = None) -> None:
        """`keys` of the graph's input; `given` and `wanted` are the spec's `input` and `output`."""
        self._keys = tuple(keys)
        self._given = given
        self._function = named_function(given)
        self._check_input()
        self._read = reader(wanted, final_answer)

    def _check_input(self) -> None:
        given = self._given
        check_input(given, list(_ALSO))
        if given is None or self._function is not None or (isinstance(given, str) and given.startswith("$")):
            return
        if not isinstance(given, Mapping):
            raise UsageError(f"agent input: {given!r} is neither a mapping, a $ expression nor module:function")
        unknown = [key for key in given if key not in self._keys and key not in _ELSEWHERE]
        if unknown and self._keys:
            hint = did_you_mean(str(unknown[0]), self._keys)
            raise UsageError(f"agent input: the graph's input has no {unknown[0]!r}; {hint}")

    def input(self, turn: TurnInput) -> GraphInput:
        """What the graph is given for this turn. UsageError when the case's input does not fit the graph."""
        if self._function is not None:
            return GraphInput(self._function(turn.input))
        if self._given is None:
            return GraphInput(self._by_keys(turn))
        if isinstance(self._given, str):
            return GraphInput(filled(self._given, turn, _ALSO))
        state = {key: filled(value, turn, _ALSO) for key, value in self._given.items()}
        context, configurable = state.pop("$context", None), state.pop("$configurable", None)
        return GraphInput(state, context, configurable or {})

    def _by_keys(self, turn: TurnInput) -> Any:
        given = turn.input
        known = {key: value for key, value in given.items() if key in self._keys} if isinstance(given, Mapping) else {}
        if "messages" in self._keys:
            return {"messages": _said(turn), **known} if turn.message else known
        if not self._keys:
            return given
        if not known and turn.message and len(self._keys) == 1:
            return {self._keys[0]: turn.message}
        if not known:
            raise UsageError(
                f"the graph's input has no `messages`; say in `agent: {{input: ...}}` what of the case's input becomes "
                f"{', '.join(self._keys)}"
            )
        return known

    def output(self, state: Any) -> Any:
        """The answer in a graph's final state. UsageError when the path of `output` leads nowhere."""
        return self._read(state)


def _said(turn: TurnInput) -> list[Any]:
    return [HumanMessage(turn.message)]


_ALSO = {"$messages": _said}


def final_answer(state: Any) -> Any:
    """The answer in a final state when nobody says where it stands."""
    if not isinstance(state, Mapping):
        return state
    if state.get("structured_response") is not None:
        return state["structured_response"]
    messages = state.get("messages")
    return _last_text(messages) if isinstance(messages, list) and messages else dict(state)


def _last_text(messages: Sequence[Any]) -> str:
    """Text of the last thing that was not said by the user: an answer, or a tool's that is returned as it is."""
    for message in reversed(messages):
        kind, text = getattr(message, "type", ""), str(getattr(message, "text", ""))
        if kind in ("human", "system"):
            break
        if text or kind == "ai":
            return text
    return ""
