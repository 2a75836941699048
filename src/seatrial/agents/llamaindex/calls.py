"""Tool calls of LlamaIndex as they run."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llama_index.core.tools import FunctionTool

from seatrial.core.trace import CallState
from seatrial.environment.observed import ObservedCall
from seatrial.environment.recorder import read_arguments

__all__ = ["AskedCall", "RunningCall", "fits", "state_of_failure", "writes_answers"]


@dataclass(frozen=True)
class AskedCall:
    """A call that a model asked for."""

    name: str
    arguments: Any
    """As the model wrote them: text where that is no JSON object."""
    step: int | None = None
    """Event number of the model call."""
    agent: str | None = None

    @property
    def malformed(self) -> str | None:
        """The arguments as written, where they are no JSON object."""
        return self.arguments if read_arguments(self.arguments)[1] else None


@dataclass
class RunningCall(ObservedCall):
    """A call whose body runs, or waits for a person and will run again from its start."""

    agent: str | None = None
    before: ObservedCall | None = None
    """What was observed around it."""
    fits: bool = True
    """Whether the arguments fit the tool's signature."""
    stop: BaseException | None = None
    """What ends the trial, where it may make no more calls: raised in the body's place."""
    resumed: bool = False
    """It waited and runs again: stand-in and faults have been applied."""
    waiter: Any = None
    """What its body waits for, as the framework keeps it."""
    instead: Mapping[str, Any] | None = None
    """Arguments that a person gave in place of its own."""
    question_open: bool = False
    """Its question is of a shape that nobody can answer."""
    target: str | None = None
    """Whom it hands over to; None = a tool call."""
    asked: AskedCall = field(default_factory=lambda: AskedCall("", {}))


def fits(tool: Any, arguments: Mapping[str, Any]) -> bool:
    """Whether Python would take these arguments: LlamaIndex checks them by calling."""
    if not isinstance(tool, FunctionTool):
        return True
    given = {**tool.partial_params, **arguments}
    if tool.requires_context and tool.ctx_param_name is not None:
        given.setdefault(tool.ctx_param_name, None)
    try:
        inspect.signature(tool.real_fn).bind(**given)
    except TypeError:
        return False
    except ValueError:  # some builtins tell nothing
        return True
    return True


def state_of_failure(call: RunningCall, output: Any, stopped: bool) -> CallState:
    """What became of a call whose answer is marked as an error."""
    if output.exception is None and output.raw_output is None:
        return CallState.UNKNOWN_TOOL
    if not call.fits:
        return CallState.INVALID_ARGUMENTS
    return CallState.REFUSED if stopped else CallState.FAILED


def writes_answers(tool: Any) -> bool:
    """Whether it is no tool of the agent's, but the way in which the framework has a model fill in an answer's form."""
    function = getattr(tool, "real_fn", None)
    return str(getattr(function, "__module__", "")).startswith("llama_index.core.program")
