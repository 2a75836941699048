"""How large the scenarios are."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "QUICK", "TINY", "Sizes"]


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """One set of sizes; counts of trials or cases unless it says otherwise."""

    name: str
    overhead: tuple[int, ...]
    waiting: int
    """Trials of 50 ms that wait, at 100."""
    blocking: int
    """Trials of 50 ms that block, at 20."""
    traces: int
    memory: tuple[int, int]
    """Few and many trials, of as many cases as the few."""
    memory_slow: int
    """Many cases, tried once, for a system that would take a quarter of an hour for the others' many trials."""
    regrade: int
    compare: int
    load: int
    journal: int
    resume: int
    killed: int
    rounds: int
    """How often an ordinary measurement is repeated."""
    pairs: int
    """Pairs of processes for start-up."""


FULL = Sizes(
    name="full",
    overhead=(100, 1_000, 10_000),
    waiting=2_000,
    blocking=400,
    traces=1_000,
    memory=(1_000, 100_000),
    memory_slow=10_000,
    regrade=100_000,
    compare=10_000,
    load=10_000,
    journal=10_000,
    resume=5_000,
    killed=2_000,
    rounds=3,
    pairs=9,
)

QUICK = Sizes(
    name="quick",
    overhead=(30, 100, 200),
    waiting=100,
    blocking=40,
    traces=30,
    memory=(100, 1_000),
    memory_slow=200,
    regrade=1_000,
    compare=1_000,
    load=1_000,
    journal=1_000,
    resume=500,
    killed=60,
    rounds=2,
    pairs=1,
)

TINY = Sizes(
    name="tiny",
    overhead=(5, 10, 20),
    waiting=10,
    blocking=10,
    traces=5,
    memory=(5, 10),
    memory_slow=10,
    regrade=10,
    compare=10,
    load=10,
    journal=10,
    resume=10,
    killed=40,
    rounds=1,
    pairs=1,
)
