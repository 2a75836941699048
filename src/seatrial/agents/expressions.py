"""How parts of a case reach an agent's input, and parts of its output the answer: `$` expressions and paths.

In an agent's `input:`, `$message` is what the user says in this turn, `$messages` the same as the framework writes a
list of one message, `$input` the case's whole input, `$input.a.b` a part of it (None where it is missing), at any
depth; anything else is meant literally, and `$$` at a text's start is a dollar.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError
from seatrial.registry import load_object

__all__ = ["filled", "named_function", "output_reader", "read_path"]

_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?\d+)\]")
Said = Callable[[TurnInput], Any]


def named_function(given: Any) -> Callable[[Any], Any] | None:
    """The function that a `module:function` names; None for anything else. UsageError when there is none."""
    if isinstance(given, str) and ":" in given and not given.startswith("$"):
        function: Callable[[Any], Any] = load_object(given)
        return function
    return None


def filled(value: Any, turn: TurnInput, said: Said) -> Any:
    """`value` with its expressions replaced; `said` gives what `$messages` stands for.

    Raises UsageError for an expression that is not known.
    """
    if isinstance(value, Mapping):
        return {key: filled(item, turn, said) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, turn, said) for item in value]
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    return value[1:] if value.startswith("$$") else _expression(value, turn, said)


def _expression(text: str, turn: TurnInput, said: Said) -> Any:
    if text == "$message":
        return turn.message
    if text == "$messages":
        return said(turn)
    if text == "$input":
        return turn.input
    if text.startswith("$input."):
        try:
            return read_path(turn.input, text.removeprefix("$input."))
        except LookupError:
            return None
    raise UsageError(f"agent input: {text!r} is not known; write $message, $messages, $input or $input.PATH")


def read_path(value: Any, path: str) -> Any:
    """What stands at a dotted path with [index] parts, through mappings, sequences and attributes.

    Raises LookupError naming the part that is missing, UsageError when the path cannot be read.
    """
    if "".join(step.group(0) for step in _STEP.finditer(path)) != path or not path:
        raise UsageError(f"{path!r} is not a path; write names and [numbers], such as messages[-1].content")
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


def output_reader(wanted: Any, default: Callable[[Any], Any], whole: str) -> Callable[[Any], Any]:
    """What reads the answer: `default` without `output:`, else a path or `module:function`.

    `whole` says in words what they get. Raises UsageError when `wanted` is neither; the reader raises it when the path
    leads nowhere.
    """
    if wanted is None:
        return default
    if not isinstance(wanted, str):
        raise UsageError(f"agent output: {wanted!r} is neither a path into {whole} nor module:function")
    function = named_function(wanted)
    return function if function is not None else lambda value: _read_output(value, wanted)


def _read_output(value: Any, path: str) -> Any:
    try:
        return read_path(value, path)
    except LookupError as error:
        raise UsageError(f"agent output: {error}") from error
