"""Limits of a whole run, seen from where a single trial runs: whoever keeps them is asked.

One place keeps the pace of a run. Trials in processes of their own ask the process that started them; on a cluster the
scheduler is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from seatrial.core.project import RatesSpec
from seatrial.environment.pace import Kind, Rates
from seatrial.runner.threads import in_thread
from seatrial.runner.waiting import Places

__all__ = ["AskedPlaces", "AskedRates"]


class AskedRates(Rates):
    """Rate limits that somebody else keeps: `ask` gives the seconds until a call's turn comes.

    None from it: there is nobody to ask, so the limits hold here, apart.
    """

    def __init__(self, spec: RatesSpec, ask: Callable[[Kind, str], float | None]) -> None:
        super().__init__(spec)
        self._ask = ask

    def turn(self, kind: Kind, name: str) -> tuple[float, float]:
        """Take the next turn: (now, when it comes). Asking is a part of waiting."""
        now = self.clock()
        seconds = self._ask(kind, name)
        return super().turn(kind, name) if seconds is None else (now, self.clock() + seconds)


class AskedPlaces(Places):
    """Places that somebody else keeps: `take` returns once there is one, `give_back` at once.

    For one trial at a time, whose process ends when it is given up: who is cancelled while waiting keeps its place.
    """

    def __init__(self, places: int, take: Callable[[], object], give_back: Callable[[], object]) -> None:
        super().__init__(places)
        self._take, self._give_back = take, give_back

    async def __aenter__(self) -> None:
        await in_thread(self._take)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await in_thread(self._give_back)
