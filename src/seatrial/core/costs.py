"""What many attempts cost, packed: of those that cost the same, as many do, it is kept once."""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import NamedTuple

from seatrial.core.figures import packed, unpacked
from seatrial.core.frozen import defaults_of
from seatrial.core.trial import Tokens, TrialRecord

__all__ = ["Costs", "Spent"]

_BLOCK = Struct("<dd5I")
"""Cost, judges' cost, tokens."""
_UNKNOWN, _BEYOND = 2**32 - 1, 2**32 - 2
"""In place of a number of tokens: nobody knows it; it is too large for a block."""


class Spent(NamedTuple):
    """What one attempt cost; see TrialRecord for each."""

    cost_usd: float | None
    judge_cost_usd: float | None
    tokens: Tokens | None
    """None: too many for a block; the attempt's record has them."""


class Costs:
    """The costs of attempts by the numbers that `add` gives them.

    The first `shared` kinds are looked for again. Where almost every attempt has its own, more of that would take more
    memory than it saves.
    """

    def __init__(self, shared: int = 1_024) -> None:
        self._most = shared
        self._numbers: dict[bytes, int] = {}
        self._shared: list[tuple[bytes, Spent]] = []
        self._blocks = bytearray()
        """Those that came when there were enough of the shared ones."""

    def add(self, cost_usd: float | None, judge_cost_usd: float | None, tokens: Tokens) -> int:
        """Note what an attempt cost; gives its number."""
        if cost_usd is None and tokens is _NO_TOKENS and judge_cost_usd == 0:
            return self.add_block(_NOTHING_KNOWN)
        return self.add_block(_BLOCK.pack(packed(cost_usd), packed(judge_cost_usd), *_counts(tokens)))

    def add_block(self, block: bytes) -> int:
        """The same of what `block` gave elsewhere."""
        number = self._numbers.get(block)
        if number is not None:
            return number
        if len(self._shared) == self._most:
            self._blocks += block
            return self._most + len(self._blocks) // _BLOCK.size - 1
        self._shared.append((block, _unpacked(block)))
        self._numbers[block] = len(self._shared) - 1
        return len(self._shared) - 1

    def block(self, number: int) -> bytes:
        """What another Costs can add."""
        if number < self._most:
            return self._shared[number][0]
        at = (number - self._most) * _BLOCK.size
        return bytes(self._blocks[at : at + _BLOCK.size])

    def __getitem__(self, number: int) -> Spent:
        return self._shared[number][1] if number < self._most else _unpacked(self.block(number))


_NO_TOKENS: Tokens = defaults_of(TrialRecord)["tokens"]
_NOTHING_KNOWN = _BLOCK.pack(packed(None), 0, *(_UNKNOWN,) * 5)
"""Of an agent of which nobody could observe what it cost."""


def _counts(tokens: Tokens) -> Iterable[int]:
    counts = (tokens.input, tokens.output, tokens.cached, tokens.cache_write, tokens.reasoning)
    return [_UNKNOWN if count is None else count if 0 <= count < _BEYOND else _BEYOND for count in counts]


def _unpacked(block: bytes) -> Spent:
    cost, judge, *counts = _BLOCK.unpack(block)
    return Spent(unpacked(cost), unpacked(judge), None if _BEYOND in counts else _tokens(counts))


def _tokens(counts: Iterable[int]) -> Tokens:
    read, written, cached, cache_write, reasoning = (None if count == _UNKNOWN else count for count in counts)
    return Tokens(input=read, output=written, cached=cached, cache_write=cache_write, reasoning=reasoning)
