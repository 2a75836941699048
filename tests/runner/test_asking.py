"""Limits that somebody else keeps: what is asked, and whose time the asking is."""

from __future__ import annotations

import threading

import pytest

from seatrial.core.project import RateLimit, RatesSpec
from seatrial.environment.pace import Pace
from seatrial.runner.asking import AskedPlaces, AskedRates

SPEC = RatesSpec(models={"m": RateLimit(requests_per_minute=60)}, tools={})


class Keeper:
    """Gives turns; each answer takes half a second of a clock that only it moves."""

    def __init__(self, *answers: float | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str]] = []
        self.now = 1000.0
        self.slept: list[float] = []

    def ask(self, kind: str, name: str) -> float | None:
        self.asked.append((kind, name))
        self.now += 0.5
        return self.answers.pop(0)

    def rates(self) -> AskedRates:
        rates = AskedRates(SPEC, self.ask)
        rates.clock, rates.sleep = lambda: self.now, self.slept.append
        return rates


def test_every_limited_call_asks_once_and_the_asking_is_waiting() -> None:
    keeper = Keeper(0.0, 2.0)
    pace = Pace(keeper.rates())
    pace.wait("model", "m")
    assert (pace.waited_s, keeper.slept) == (0.5, [])
    pace.wait("model", "m")
    assert (pace.waited_s, keeper.slept) == (3.0, [2.0])
    pace.wait("tool", "m")
    pace.wait("model", "other")
    assert keeper.asked == [("model", "m")] * 2


def test_where_nobody_can_be_asked_the_limits_hold_here() -> None:
    keeper = Keeper(None, None)
    pace = Pace(keeper.rates())
    for _ in range(2):
        pace.wait("model", "m")
    assert keeper.slept == [0.5]  # a second after the first, of which asking took a half


async def test_a_place_is_taken_off_the_loop_and_given_back_after_a_failure_too() -> None:
    moves: list[tuple[str, bool]] = []

    def move(name: str) -> None:
        moves.append((name, threading.current_thread() is threading.main_thread()))

    places = AskedPlaces(2, lambda: move("take"), lambda: move("give back"))
    with pytest.raises(ValueError, match="judge"):
        async with places:
            raise ValueError("judge")
    assert moves == [("take", False), ("give back", False)]
