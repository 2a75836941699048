"""An operator's stop is final: whatever agents and graders make of being cut off, nothing of it counts.

A trial that was cut off has no record: it says nothing about the agent, is retried by nobody, and runs anew when its
run is resumed.
"""

from __future__ import annotations

import asyncio

from seatrial.core.ports import Sink
from seatrial.core.trace import Trace
from seatrial.core.trial import TrialRecord

__all__ = ["Stop", "UntilStopped"]


class Stop:
    """Whether the operator has stopped the run."""

    def __init__(self) -> None:
        self.requested = False


class UntilStopped:
    """A Sink that takes nothing once the run was stopped: who brings something then is cancelled (again).

    An agent may swallow its cancellation and answer, raise what its case retries, or leave its grader to break.
    """

    def __init__(self, sink: Sink, stop: Stop) -> None:
        self._sink, self._stop = sink, stop

    def write(self, record: TrialRecord, trace: Trace) -> TrialRecord:
        """Keep a finished trial. Raises CancelledError once the run was stopped."""
        if self._stop.requested:
            raise asyncio.CancelledError
        return self._sink.write(record, trace)
