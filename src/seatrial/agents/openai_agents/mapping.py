"""How a case's input becomes a run's, and its result the answer: `input:` and `output:` of the agent.

`input` absent: what the user says in this turn.
`input` a text: a `$` expression for it, or `module:function`, called with the case's input of the turn.
`input` a mapping: `input`, and beside it `context` and `max_turns` of the run. See `seatrial.agents.expressions` for
what its values may be.

`output` absent: the run's `final_output`. `output` a text: a path into the run's result, or `module:function`, called
with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.agents.expressions import check_input, filled, named_function, reader
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean

__all__ = ["Mapper"]

_KEYS = ("input", "context", "max_turns")


class Mapper:
    """Input and output of one agent. UsageError when the spec makes no sense."""

    def __init__(self, given: Any = None, wanted: Any = None) -> None:
        """`given` and `wanted` are the spec's `input` and `output`."""
        self._given = given
        self._function = named_function(given)
        self._check()
        self.output = reader(wanted, lambda result: result.final_output)

    def _check(self) -> None:
        given = self._given
        check_input(given)
        if given is None or isinstance(given, str):
            return
        if not isinstance(given, Mapping):
            raise UsageError(f"agent input: {given!r} is neither a mapping, a $ expression nor module:function")
        for key in given:
            if key not in _KEYS:
                raise UsageError(f"agent input: a run takes no {key!r}; {did_you_mean(str(key), _KEYS)}")

    def input(self, turn: TurnInput) -> dict[str, Any]:
        """What the run is given for this turn: `input`, and beside it what the spec says."""
        given = {"input": turn.message} if self._given is None else self._said(turn)
        given.setdefault("input", turn.message)
        if not given["input"]:
            raise UsageError("the case's input has no `message`; say in `agent: {input: ...}` what of it to ask")
        return given

    def _said(self, turn: TurnInput) -> dict[str, Any]:
        said = self._function(turn.input) if self._function is not None else filled(self._given, turn)
        if isinstance(said, Mapping) and set(said) <= set(_KEYS):
            return dict(said)
        return {"input": said}
