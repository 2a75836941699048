"""Function calls of the SDK: asked for by a model, and as they run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from seatrial.environment.observed import ObservedCall

__all__ = ["AskedCall", "RunningCall"]


@dataclass
class AskedCall:
    """One call that a model asked for."""

    name: str
    arguments: str
    """JSON text as the model wrote it."""
    call_id: str
    step: int | None = None
    """Event number of the model call."""
    agent: str | None = None
    offered: bool = True
    """Whether its agent has a tool of that name."""
    target: str | None = None
    """Whom it hands over to; None = a tool call."""
    has_context: bool = True
    """Whether the hand-off's tool takes arguments."""
    within: RunningCall | None = None
    """The call in whose body the agent runs that asked."""
    number: int | None = None
    """Event number, once it ran."""
    settled: bool = False
    """The trace says what became of it, and what the model was told."""
    edited: Mapping[str, Any] | None = None
    """Arguments that a person gave in place of its own."""

    def as_run(self) -> str:
        """The arguments that the tool gets."""
        return self.arguments if self.edited is None else json.dumps(self.edited)


@dataclass
class RunningCall(ObservedCall):
    """A call whose body runs."""

    asked: AskedCall = field(default_factory=lambda: AskedCall("", "", ""))
    resumed: bool = False
    """An agent in it was interrupted and goes on: stand-in and faults have been applied."""
    error: BaseException | None = None
    """What the body raised, before the SDK made a text of it."""
    stop: BaseException | None = None
    """What ends the trial: raised where the call would begin."""
    invalid: bool = False
    """The SDK did not take its arguments."""
