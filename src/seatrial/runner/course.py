"""How far a trial got."""

from __future__ import annotations

import copy
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from seatrial.core.trace import AgentError, StopReason
from seatrial.core.trial import InvalidReason
from seatrial.environment.log import Log
from seatrial.environment.model_proxy.address import TrialCalls
from seatrial.environment.pace import Pace
from seatrial.runner.recording import NO_CALLS

__all__ = ["Course", "own_time", "utc_now"]


class Course:
    """How far a trial got; filled in as it goes, so that an exception loses nothing."""

    stop_reason: StopReason = StopReason.ANSWERED
    error: AgentError | None = None
    waits_as_scripted: bool = False
    """It ended waiting for an approval, and the case scripts that nobody answers."""
    broken: InvalidReason | None = None
    own_limit: str = ""
    """Which other limit than that of steps stopped the agent."""
    detail: str = ""
    observed: bool = False
    latency_ms: float = 0.0
    log: Log | None = None
    """What it printed elsewhere; None: here."""
    deadline: float | None = None
    """When the agent's time would be up if it never waited for its turn, on the monotonic clock; None while it has no
    say."""
    turn_began: float | None = None
    """When the turn that has not ended began, in `own_time`."""
    ready: bool = False
    """The surroundings stand, and can be observed."""
    cut: bool = False
    """The agent's part is over, whatever its code still does."""
    calls: TrialCalls = NO_CALLS
    """What came through the proxy of model calls."""

    def __init__(self, started: str, seed: int) -> None:
        self.started = started
        self.seed = seed
        self.outputs: list[tuple[Any, Any]] = []
        """What each turn answered: as JSON data, and the agent's real object."""
        self.outcome: dict[str, Any] = {}

    def copy(self, pace: Pace) -> Course:
        """What is known so far, out of reach of whoever fills in this one."""
        began = self.turn_began
        known = copy.copy(self)
        known.outputs, known.outcome = list(self.outputs), dict(self.outcome)
        if began is not None:
            known.latency_ms += max(own_time(pace) - began, 0.0) * 1000
        known.deadline = known.turn_began = None
        return known

    def fixture_failed(self, problem: str) -> None:
        """The surroundings did not come up: that is no failure of the agent's."""
        self.stop_reason, self.broken = StopReason.HARNESS_ERROR, InvalidReason.FIXTURE
        self.detail = f"fixture: {problem}"


def own_time(pace: Pace) -> float:
    """Seconds on a clock that stands still while a call waits for its turn."""
    return time.perf_counter() - pace.waited_s


def utc_now() -> str:
    """UTC, ISO 8601 with Z, to the millisecond."""
    return _thousandth(time.time_ns() // 1_000_000)


@lru_cache(maxsize=4)  # many trials start within one thousandth, if they take no time
def _thousandth(timestamp: int) -> str:
    second, thousandth = divmod(timestamp, 1000)
    return f"{_second(second)}.{thousandth:03d}Z"


@lru_cache(maxsize=4)
def _second(timestamp: int) -> str:
    return datetime.fromtimestamp(timestamp, UTC).strftime("%Y-%m-%dT%H:%M:%S")
