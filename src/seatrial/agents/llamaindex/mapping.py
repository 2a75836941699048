"""How a case's input becomes a workflow's, and its result the answer: `input:` and `output:` of the agent.

`input` absent: an agent is asked what the user says in this turn (`user_msg`). A workflow of the user's own gets the
case's input by its keys; a text becomes the one field that its start event declares.
`input` a mapping: keyword arguments of `run`, such as `{user_msg: $message, max_iterations: 40}`. See
`seatrial.agents.expressions` for what its values may be. A key that an agent's run drops, or that a start event with
fields of its own does not declare, is refused: the framework would take it without a word.

`output` absent: an agent's structured response where there is one, else the text of its answer; a workflow's result.
`output` a text: a path into what `run` gives, or `module:function`, called with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.agent.workflow.workflow_events import AgentOutput
from workflows.events import Event

from seatrial.agents.expressions import check_input, filled, named_function, reader
from seatrial.core.ports import TurnInput
from seatrial.errors import UsageError, did_you_mean
from workflows import Workflow

__all__ = ["Mapper"]

_BESIDE = ("ctx", "start_event")
"""Arguments of every workflow's run."""
_RUN = ("user_msg", "chat_history", "memory", "max_iterations", "early_stopping_method", *_BESIDE)
"""Arguments of an agent's run."""


class Mapper:
    """Input and output of one workflow. UsageError when the spec makes no sense."""

    def __init__(self, workflow: Workflow, *, is_agent: bool, given: Any = None, wanted: Any = None) -> None:
        """`given` and `wanted` are the spec's `input` and `output`."""
        self._workflow = workflow
        self._is_agent = is_agent
        self._given = given
        self._taken = _taken(workflow, is_agent)
        self._function = named_function(given)
        if given is not None and self._function is None and not isinstance(given, Mapping):
            raise UsageError(f"agent input: {given!r} is neither a mapping of run's arguments nor module:function")
        check_input(given)
        if isinstance(given, Mapping):
            self._check_keys(given)
        self.output = reader(wanted, _answer)

    def _check_keys(self, given: Mapping[str, Any]) -> None:
        for key in given if self._taken else ():
            if key not in (*self._taken, *_BESIDE):
                whose = "a run" if self._is_agent else _start_of(self._workflow)
                raise UsageError(f"agent input: {whose} takes no {key!r}; {did_you_mean(str(key), self._taken)}")

    def input(self, turn: TurnInput) -> dict[str, Any]:
        """Keyword arguments of `run` for this turn. UsageError when the case's input does not fit."""
        given = self._arguments(turn)
        if not isinstance(given, Mapping):
            raise UsageError(f"agent input: run takes keyword arguments, not {type(given).__name__}")
        if self._given is not None:  # the case's own keys may be more than one workflow has a use for
            self._check_keys(given)
        return dict(given)

    def _arguments(self, turn: TurnInput) -> Any:
        if self._function is not None:
            return self._function(turn.input)
        if self._given is not None:
            return filled(self._given, turn)
        return self._message(turn) if self._is_agent else self._by_fields(turn)

    def _message(self, turn: TurnInput) -> dict[str, Any]:
        if not turn.message:
            raise UsageError(
                "the case's input has no `message`; say in `agent: {input: {user_msg: ...}}` what of it to ask"
            )
        return {"user_msg": turn.message}

    def _by_fields(self, turn: TurnInput) -> Any:
        if isinstance(turn.input, Mapping):
            return turn.input
        fields = list(self._workflow.start_event_class.model_fields)
        if len(fields) == 1:
            return {fields[0]: turn.input}
        shown = f" ({', '.join(fields)})" if fields else ""
        raise UsageError(f"say in `agent: {{input: ...}}` which argument of the workflow's run{shown} the text becomes")


def _taken(workflow: Workflow, is_agent: bool) -> tuple[str, ...]:
    """Arguments that a run has a use for; empty where it may take anything: a `run` of the user's own, and a start
    event that declares no fields, which holds whatever it is given."""
    if not type(workflow).run.__module__.startswith(("llama_index.", "workflows.")):
        return ()
    return _RUN if is_agent else _declared(workflow.start_event_class)


def _declared(start: type[Event]) -> tuple[str, ...]:
    """Fields of a start event and, where there are any, its private attributes, which the framework sets by name."""
    private = (name for name in start.__private_attributes__ if name not in Event.__private_attributes__)
    return (*start.model_fields, *private) if start.model_fields else ()


def _start_of(workflow: Workflow) -> str:
    start = workflow.start_event_class
    return f"the start event {start.__name__} ({', '.join(_declared(start))})"


def _answer(result: Any) -> Any:
    if isinstance(result, AgentOutput):
        structured = result.structured_response
        return (result.response.content or "") if structured is None else structured
    if isinstance(result, Event):
        return dict(result.items()) or result.model_dump()
    return str(result) if hasattr(result, "source_nodes") else result
