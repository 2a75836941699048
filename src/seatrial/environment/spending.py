"""What one trial spends on model calls, and when it has to stop.

It counts as the record does (`seatrial.core.usage.cost_of_trace`), as far as costs are known: turn by turn, what the
agent said that the turn cost, else its model calls. A trial that went above `limits.cost_usd` has failed, whatever it
answered; no turn, model call or tool call begins any more, so the limit is exceeded by no more than the calls in flight
(a turn, where only the agent tells what it cost). With `priced_only` (a run under a budget) a model whose price nobody
knows is not called: the trial ends before its call, where an adapter sees it coming.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from seatrial.core.trace import Usage
from seatrial.core.usage import Price, cost_of_usage
from seatrial.environment.entries import Lock

__all__ = ["CostLimitReached", "Spending"]


class CostLimitReached(BaseException):
    """The trial may spend no more. A BaseException, so that an agent's own `except Exception` does not swallow it."""


class Spending:
    """The money of one trial, in USD."""

    prices: Mapping[str, Price] = MappingProxyType({})
    limit_usd: float | None = None
    priced_only: bool = False
    unpriced: str | None = None
    """The model that was not called because its price is unknown."""

    def __init__(self, lock: Lock) -> None:
        self.estimates: dict[int, float] = {}
        """What the agent itself said that a turn cost, by the turn's number."""
        self._calls: dict[int, float] = {}
        """What the model calls of each turn cost, as far as that is known."""
        self._lock = lock

    @property
    def over(self) -> bool:
        """Whether it is above its limit, as far as costs are known."""
        return self.limit_usd is not None and self._known_usd > self.limit_usd

    @property
    def _known_usd(self) -> float:
        with self._lock:
            return sum({**self._calls, **self.estimates}.values())

    def check(self) -> None:
        """Before any call. Raises CostLimitReached when the trial has to stop."""
        if self.limit_usd is not None and self.over:
            raise CostLimitReached(f"the limit of {self.limit_usd:.12g} USD was reached")
        if self.unpriced is not None:
            raise CostLimitReached(f"the price of model {self.unpriced!r} is unknown")

    def check_price(self, model: str | None) -> None:
        """Before a call of this model. Raises CostLimitReached when only priced ones may be called."""
        if self.priced_only and model is not None and model not in self.prices:
            self.unpriced = self.unpriced or model
        self.check()

    def add_call(self, turn: int, model: str | None, usage: Usage | None, cost_usd: float | None) -> None:
        """A model call of this turn ended; an unknown cost adds nothing."""
        if self.limit_usd is not None:
            cost = cost_of_usage(model, usage, cost_usd, self.prices) or 0.0
            with self._lock:
                self._calls[turn] = self._calls.get(turn, 0.0) + cost
