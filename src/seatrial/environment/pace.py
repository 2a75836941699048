"""Rate limits: a call waits until its turn comes, and the waiting is nobody's latency.

Calls of one model or tool start evenly spaced over the whole run: 30 requests a minute are one every two seconds, so
that no minute, however it is cut, holds more. What waits is a call that goes through the trial: tools (stand-ins,
`trial.tool`, a framework's tools) and the model calls that an adapter sees before they happen. An agent that calls its
model by itself asks with `trial.wait_for_model(name)`.

The time in which calls wait is taken out of the trial's latency and added to its time limit. Calls that wait at the
same time count once. A plain function called on the event loop itself holds up the loop while it waits; in a thread, or
async, it holds up nobody else.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from seatrial.core.project import RatesSpec

__all__ = ["Kind", "Pace", "Rates"]

Kind = Literal["model", "tool"]
"""What is called."""


@dataclass
class Rates:
    """The rate limits of a run, shared by its trials: who may call when."""

    spec: RatesSpec = field(default_factory=RatesSpec)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep

    def __post_init__(self) -> None:
        per_minute = {("model", name): rate for name, rate in self.spec.models.items()}
        per_minute |= {("tool", name): rate for name, rate in self.spec.tools.items()}
        self._gaps = {key: 60 / rate.requests_per_minute for key, rate in per_minute.items()}
        self._free_at: dict[tuple[str, str], float] = {}
        self.lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Rates], tuple[RatesSpec]]:
        """In another process the limits hold there, apart from here."""
        return Rates, (self.spec,)

    @property
    def any(self) -> bool:
        """Whether anything is limited at all."""
        return bool(self._gaps)

    def limited(self, kind: Kind, name: str | None) -> bool:
        """Whether calls of this model or tool have to wait at all."""
        return (kind, name) in self._gaps

    def turn(self, kind: Kind, name: str) -> tuple[float, float]:
        """Take the next turn: (now, when it comes), by `clock`."""
        key = (kind, name)
        with self.lock:
            now = self.clock()
            at = max(now, self._free_at.get(key, now))
            self._free_at[key] = at + self._gaps[key]
        return now, at


_NO_RATES = Rates()
"""Nothing is limited."""


class Pace:
    """Waiting within one trial."""

    on_wait: Callable[[float], None] | None = None
    """Told of every stretch of waiting, in seconds, before it begins."""
    waited_s = 0.0
    """Seconds in which at least one call waited, those that are waiting now included."""
    _until = float("-inf")

    def __init__(self, rates: Rates = _NO_RATES) -> None:
        self.rates = rates

    def limited(self, kind: Kind, name: str | None) -> bool:
        """Whether calls of this model or tool have to wait at all."""
        return self.rates.limited(kind, name)

    def wait(self, kind: Kind, name: str | None) -> None:
        """Wait for the call's turn, in this thread."""
        seconds = self._seconds(kind, name)
        if seconds > 0:
            self.rates.sleep(seconds)

    async def ready(self, kind: Kind, name: str | None) -> None:
        """Wait for the call's turn without holding up the loop."""
        seconds = self._seconds(kind, name)
        if seconds > 0:
            await self.rates.pause(seconds)

    def _seconds(self, kind: Kind, name: str | None) -> float:
        if name is None or not self.rates.limited(kind, name):
            return 0.0
        now, at = self.rates.turn(kind, name)
        self._count(now, at)
        return at - self.rates.clock()

    def _count(self, start: float, end: float) -> None:
        with self.rates.lock:
            alone = max(0.0, end - max(start, self._until))
            self._until = max(self._until, end)
            self.waited_s += alone
        if alone and self.on_wait is not None:
            self.on_wait(alone)
