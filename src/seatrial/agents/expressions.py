"""What `input:` and `output:` of an agent's spec may say, for every adapter whose framework has structured input.

In `input`: `$message` is what the user says in this turn, `$input` the case's whole input, `$input.a.b` a part of it
(None where it is missing), at any depth; anything else is meant literally, and `$$` at a text's start is a dollar. A
text with a colon is `module:function`, called with the case's input of the turn.
`output` is a path (`messages[-1].content`), or `module:function`, called with what the framework gave.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean
from seatrial.registry import load_object

__all__ = [
    "check_input",
    "check_path",
    "each_replaced",
    "expressions_in",
    "filled",
    "named_function",
    "read_path",
    "reader",
]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
_NOTHING: Mapping[str, Callable[[TurnInput], Any]] = {}


def named_function(given: Any, key: str = "input") -> Callable[[Any], Any] | None:
    """The function that `module:function` names; None for anything else.

    UsageError naming the spec's `key` when it cannot be loaded or called.
    """
    if not (isinstance(given, str) and ":" in given) or given.startswith("$"):
        return None
    try:
        function: Callable[[Any], Any] = load_object(given)
    except UsageError as error:
        raise UsageError(f"agent {key}: {error}") from error
    if not callable(function):
        raise UsageError(f"agent {key}: {given!r} is no function, but an object of type {type(function).__name__}")
    return function


def check_input(given: Any, also: Sequence[str] = ()) -> None:
    """UsageError for the first expression in `given`, at any depth, that nobody knows; `also` as in `filled`."""
    known = ["$message", *also, "$input"]
    for text in expressions_in(given):
        if text.startswith("$input."):
            check_path(text.removeprefix("$input."), f"agent input: {text!r}: ")
        elif text not in known:
            hint = did_you_mean(text, known)
            raise UsageError(f"agent input: {text!r} is not known; {hint}, and $input.PATH for a part of the input")


def expressions_in(value: Any) -> Iterator[str]:
    """Every `$` expression of a value, at any depth."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from expressions_in(item)
    elif isinstance(value, str) and value.startswith("$") and not value.startswith("$$"):
        yield value


def filled(value: Any, turn: TurnInput, also: Mapping[str, Callable[[TurnInput], Any]] = _NOTHING) -> Any:
    """`value` with its `$` expressions replaced, at any depth. `also` names expressions of one framework.

    Raises UsageError for an expression that nobody knows.
    """
    return each_replaced(value, lambda text: _expression(text, turn, also))


def each_replaced(value: Any, stands_for: Callable[[str], Any]) -> Any:
    """`value` with what each of its `$` expressions stands for in its place, at any depth; `$$` is a plain `$`."""
    if isinstance(value, Mapping):
        return {key: each_replaced(item, stands_for) for key, item in value.items()}
    if isinstance(value, list):
        return [each_replaced(item, stands_for) for item in value]
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    return value[1:] if value.startswith("$$") else stands_for(value)


def _expression(text: str, turn: TurnInput, also: Mapping[str, Callable[[TurnInput], Any]]) -> Any:
    if text in also:
        return also[text](turn)
    if text == "$message":
        return turn.message
    if text == "$input":
        return turn.input
    if text.startswith("$input."):
        try:
            return read_path(turn.input, text.removeprefix("$input."))
        except LookupError:
            return None
    known = ", ".join(["$message", *also, "$input"])
    raise UsageError(f"agent input: {text!r} is not known; write {known} or $input.PATH")


def check_path(path: str, where: str = "") -> None:
    """UsageError, which begins with `where`, when a path cannot be read."""
    if "".join(step.group(0) for step in _STEP.finditer(path)) != path or not path:
        raise UsageError(f"{where}{path!r} is not a path; write names and [numbers], such as messages[-1].content")


def read_path(value: Any, path: str) -> Any:
    """What stands at a dotted path with [index] parts, through mappings, sequences and attributes.

    Raises LookupError naming the part that is missing, UsageError when the path cannot be read.
    """
    check_path(path)
    for step in _STEP.finditer(path):
        value = _step(value, step[1], step[2], path)
    return value


def _step(value: Any, name: str | None, index: str | None, path: str) -> Any:
    try:
        if name is None:
            return value[int(index or 0)]
        return value[name] if isinstance(value, Mapping) else getattr(value, name)
    except (LookupError, AttributeError, TypeError) as error:
        raise LookupError(f"{path}: there is no {name or f'[{index}]'} in {type(value).__name__}") from error


def reader(wanted: Any, default: Callable[[Any], Any], whole: str = "the final state") -> Callable[[Any], Any]:
    """What reads the answer: `default` where the spec says nothing. UsageError when the spec makes no sense.

    `whole` says in words what a path leads into.
    """
    if wanted is None:
        return default
    if not isinstance(wanted, str):
        raise UsageError(f"agent output: {wanted!r} is neither a path into {whole} nor module:function")
    function = named_function(wanted, "output")
    if function is not None:
        return function
    check_path(wanted, "agent output: ")
    return lambda state: _read_output(state, wanted)


def _read_output(state: Any, path: str) -> Any:
    try:
        return read_path(state, path)
    except LookupError as error:
        raise UsageError(f"agent output: {error}") from error
