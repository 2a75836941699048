"""What tokens cost. Each token is charged once, at its own rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field

from seatrial.core.figures import figure_of
from seatrial.core.frozen import Frozen
from seatrial.core.trace import ModelCallEvent, Observable, Trace, Usage
from seatrial.core.trial import Tokens

__all__ = [
    "Price",
    "cost_of_call",
    "cost_of_calls",
    "cost_of_trace",
    "cost_of_usage",
    "known_cost_of_trace",
    "sum_tokens",
    "summed",
]

_KINDS = ("input", "output", "cached", "cache_write", "reasoning")
_NO_TOKENS = Tokens()
_MODEL_CALLS = Observable.MODEL_CALLS


class Price(Frozen):
    """USD per million tokens of one model."""

    input: float = Field(ge=0, allow_inf_nan=False, strict=True)
    output: float = Field(ge=0, allow_inf_nan=False, strict=True)
    cached: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    """Input read from a cache; None = the input rate."""
    cache_write: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    """Input that created a cache entry; None = the input rate."""
    reasoning: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    """Output spent on reasoning; None = the output rate."""

    def of(self, usage: Usage) -> float | None:
        """USD for one call: cached and cache-write tokens are part of input, reasoning is part of output.

        None when input or output is unknown.
        """
        if usage.input is None or usage.output is None:
            return None
        cached, written, reasoned = usage.cached or 0, usage.cache_write or 0, usage.reasoning or 0
        plain_input = max(usage.input - cached - written, 0)
        plain_output = max(usage.output - reasoned, 0)
        total = plain_input * self.input + plain_output * self.output
        total += cached * (self.input if self.cached is None else self.cached)
        total += written * (self.input if self.cache_write is None else self.cache_write)
        total += reasoned * (self.output if self.reasoning is None else self.reasoning)
        return total / 1_000_000


def cost_of_call(call: ModelCallEvent, prices: Mapping[str, Price]) -> float | None:
    """USD of one model call: as reported, else by the price table, else None (unknown)."""
    return cost_of_usage(call.model, call.usage, call.cost_usd, prices)


def cost_of_usage(
    model: str | None, usage: Usage | None, cost_usd: float | None, prices: Mapping[str, Price]
) -> float | None:
    """The same from its parts."""
    if cost_usd is not None:
        return figure_of(cost_usd)
    price = prices.get(model or "")
    return None if price is None or usage is None else figure_of(price.of(usage))


def cost_of_calls(calls: Iterable[ModelCallEvent], prices: Mapping[str, Price]) -> float | None:
    """USD of several calls; None as soon as one is unknown."""
    total = 0.0
    for call in calls:
        cost = cost_of_call(call, prices)
        if cost is None:
            return None
        total += cost
    return figure_of(total)


def cost_of_trace(trace: Trace, prices: Mapping[str, Price]) -> float | None:
    """USD of one trial, turn by turn: what the agent said that the turn cost, else its model calls.

    None as soon as one turn's cost is unknown: a call without a price, or no estimate where no call could be observed.
    """
    told = trace.estimates
    if _MODEL_CALLS not in trace.observes and not (told and all(event.turn in told for event in trace.events)):
        return None
    called = cost_of_calls(_not_estimated(trace), prices)
    return None if called is None else called + sum(told.values())


def known_cost_of_trace(trace: Trace, prices: Mapping[str, Price]) -> float:
    """The same where part of it is unknown: what is known of it."""
    costs = (cost_of_call(call, prices) for call in _not_estimated(trace))
    return sum((cost for cost in costs if cost is not None), sum(trace.estimates.values()))


def _not_estimated(trace: Trace) -> Iterator[ModelCallEvent]:
    """Model calls of turns of which the agent did not say what they cost."""
    calls, told = trace.of(ModelCallEvent), trace.estimates
    return (call for call in calls if call.turn not in told) if told else calls


def summed(attempts: Iterable[Tokens]) -> Tokens:
    """Tokens over several attempts; input and output are None where an attempt did not say."""
    every = list(attempts)
    return Tokens(**{kind: _sum([getattr(tokens, kind) for tokens in every], kind) for kind in _KINDS})


def sum_tokens(calls: Iterable[ModelCallEvent]) -> Tokens:
    """Tokens over several calls. Input and output are None when a call did not say; the parts count unsaid as none."""
    usages = [call.usage or Usage() for call in calls]
    if not usages:
        return _NO_TOKENS
    return Tokens(**{kind: _sum([getattr(usage, kind) for usage in usages], kind) for kind in _KINDS})


def _sum(values: Sequence[int | None], kind: str) -> int | None:
    known = [value for value in values if value is not None]
    complete = len(known) == len(values) or kind not in ("input", "output")
    return sum(known) if known and complete else None
