"""One attempt's model calls, where a proxy records or replays them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from seatrial.core.cassette import Part
from seatrial.environment.model_proxy.address import ProxyAddress, TrialCalls
from seatrial.runner.threads import in_thread

__all__ = ["NO_CALLS", "Recording"]

NO_CALLS = TrialCalls()
"""Of an attempt that nobody recorded."""


@dataclass(frozen=True)
class Recording:
    """The parts of an attempt that are told to the proxy as they begin and end."""

    proxy: ProxyAddress
    place: tuple[str, int, int]
    """Case, trial number, attempt number."""

    def urls(self, part: Part = "agent") -> Mapping[str, str]:
        """Where the model calls of a part go."""
        return self.proxy.of_trial(*self.place, part)

    async def begin(self, part: Part) -> None:
        """A part begins."""
        await in_thread(self.proxy.begin, *self.place, part)

    async def finish(self, part: Part, *, keep: bool = True) -> TrialCalls:
        """A part has ended; `keep` False: the attempt is made again, and so recorded again."""
        return await in_thread(lambda: self.proxy.finish(*self.place, part, keep=keep))
