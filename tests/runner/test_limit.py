"""A time limit holds as `asyncio.timeout` does, and a wait that is nobody's fault is added to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seatrial.core.project import RatesSpec
from seatrial.environment.pace import Pace, Rates
from seatrial.runner.limit import TimeLimit

LONG_S = 60.0


def limited(work: Any, seconds: float, pace: Pace | None = None) -> tuple[TimeLimit, Any]:
    """The limit, and what became of the work under it."""
    limit, became = TimeLimit(seconds, pace or Pace()), []

    async def under_it() -> None:
        became.append(await work(limit))

    async def main() -> None:
        await limit.run(under_it())

    asyncio.run(main())
    return limit, became[0]


def test_what_answers_at_once_needs_no_timer() -> None:
    async def work(limit: TimeLimit) -> int:
        return len(asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]

    limit, timers = limited(work, LONG_S)
    assert (timers, limit.expired) == (0, False)


def test_what_waits_gets_its_results_and_exceptions() -> None:
    async def work(limit: TimeLimit) -> list[Any]:
        failing = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(failing.set_exception, ValueError("no"))
        seen: list[Any] = [await asyncio.sleep(0, "first")]
        try:
            await failing
        except ValueError as error:
            seen.append(str(error))
        return [*seen, await asyncio.sleep(0, "last")]

    assert limited(work, LONG_S)[1] == ["first", "no", "last"]


def test_what_is_raised_before_or_after_a_wait_leaves() -> None:
    async def at_once(limit: TimeLimit) -> None:
        raise KeyError("now")

    async def later(limit: TimeLimit) -> None:
        await asyncio.sleep(0)
        raise KeyError("later")

    for work, message in ((at_once, "now"), (later, "later")):
        with pytest.raises(KeyError, match=message):
            limited(work, LONG_S)


def test_a_limit_that_is_reached_ends_what_waits_as_a_timeout() -> None:
    async def work(limit: TimeLimit) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        limited(work, 0.01)


def test_a_cancellation_from_outside_stays_one() -> None:
    async def main() -> tuple[bool, bool]:
        limit, began = TimeLimit(LONG_S, Pace()), asyncio.Event()

        async def work() -> None:
            began.set()
            await asyncio.Event().wait()

        async def task() -> None:
            await limit.run(work())

        running = asyncio.create_task(task())
        await began.wait()
        running.cancel()
        await asyncio.wait({running})
        return running.cancelled(), limit.expired

    assert asyncio.run(main()) == (True, False)


def one_a_minute(pause: Any) -> Rates:
    """Rate limits under which a second call of the model `m` waits for a minute, or as long as the pause takes."""
    return Rates(RatesSpec.model_validate({"models": {"m": {"requests_per_minute": 1}}}), pause=pause)


def test_a_timer_that_waiting_made_too_early_is_set_again() -> None:
    pace = Pace(one_a_minute(lambda seconds: asyncio.sleep(0.05)))
    told: list[float] = []
    pace.on_wait = told.append

    async def work(limit: TimeLimit) -> str:
        await asyncio.sleep(0)
        for _ in range(2):
            await pace.ready("model", "m")
        return "done"

    limit, answer = limited(work, 0.01, pace)
    assert (answer, limit.expired, told) == ("done", False, [pytest.approx(60, abs=1)])


def test_waiting_before_the_timer_is_set_counts_as_well() -> None:
    pace = Pace(one_a_minute(lambda seconds: asyncio.sleep(0)))

    async def work(limit: TimeLimit) -> str:
        for _ in range(2):
            await pace.ready("model", "m")
        await asyncio.sleep(0.05)
        return "done"

    assert limited(work, 0.01, pace)[1] == "done"


def test_what_has_held_up_the_loop_for_too_long_is_ended_when_it_waits() -> None:
    async def work(limit: TimeLimit) -> None:
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        limited(work, -1.0)


def test_time_that_was_added_is_over_at_some_point_too() -> None:
    pace = Pace(Rates(RatesSpec.model_validate({"models": {"m": {"requests_per_minute": 6000}}})))

    async def work(limit: TimeLimit) -> None:
        for _ in range(2):
            await pace.ready("model", "m")
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        limited(work, 0.01, pace)


async def test_no_timer_is_left_when_the_work_has_ended() -> None:
    limit = TimeLimit(LONG_S, Pace())
    await limit.run(asyncio.sleep(0))
    assert all(timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)  # type: ignore[attr-defined]


async def test_a_limit_that_is_reached_leaves_the_task_uncancelled() -> None:
    with pytest.raises(TimeoutError):
        await TimeLimit(0.01, Pace()).run(asyncio.sleep(LONG_S))
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


def test_a_loop_with_a_clock_of_its_own_keeps_the_limit_by_it() -> None:
    class Hurried(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return super().time() * 1000

    async def main() -> None:
        await TimeLimit(LONG_S, Pace()).run(asyncio.sleep(10 * LONG_S))

    with asyncio.Runner(loop_factory=Hurried) as runner, pytest.raises(TimeoutError):
        runner.run(main())
