"""Mistakes in an agent's settings that show only once its factory was called, in the first trials of a run.

They are no trial's failure: every trial would fail alike. So none is kept, the run ends, and the user is told once.
"""

from __future__ import annotations

from seatrial.core.trace import AgentError
from seatrial.errors import Misfit

__all__ = ["refuse_misfit"]

_MISFIT = f"{Misfit.__module__}.{Misfit.__qualname__}"
"""As an error's type is on record, wherever the trial ran."""


def refuse_misfit(error: AgentError) -> None:
    """Raise Misfit again where that is what ended a trial."""
    if error.type == _MISFIT:
        raise Misfit(error.message)
