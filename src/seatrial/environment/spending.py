"""What one trial spends on model calls, and when it has to stop.

A trial that went above `limits.cost_usd` has failed, whatever it answered; no model or tool call begins any more, so
the limit is exceeded by no more than the calls in flight. With `priced_only` (a run under a budget) a model whose price
nobody knows is not called: the trial ends before its call, where an adapter sees it coming.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.core.trace import Usage
from seatrial.core.usage import Price, cost_of_usage

__all__ = ["CostLimitReached", "Spending"]


class CostLimitReached(BaseException):
    """The trial may spend no more. A BaseException, so that an agent's own `except Exception` does not swallow it."""


@dataclass
class Spending:
    """The money of one trial, in USD."""

    prices: Mapping[str, Price] = field(default_factory=dict)
    limit_usd: float | None = None
    priced_only: bool = False
    unpriced: str | None = None
    """The model that was not called because its price is unknown."""
    _calls_usd: float = 0.0
    _reported_usd: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    @property
    def over(self) -> bool:
        """Whether it is above its limit, as far as costs are known."""
        return self.limit_usd is not None and max(self._calls_usd, self._reported_usd) > self.limit_usd

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

    def add_call(self, model: str | None, usage: Usage | None, cost_usd: float | None) -> None:
        """A model call ended; an unknown cost adds nothing."""
        if self.limit_usd is not None:
            with self._lock:
                self._calls_usd += cost_of_usage(model, usage, cost_usd, self.prices) or 0.0

    def add_reported(self, cost_usd: float | None) -> None:
        """The agent's own estimate of one turn."""
        self._reported_usd += cost_usd or 0.0
