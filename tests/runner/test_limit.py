"""A time limit holds as `asyncio.timeout` does, and a wait that is nobody's fault is added to it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from seatrial.runner.limit import TimeLimit

LONG_S = 60.0


def limited(work: Any, seconds: float, told: list[float] | None = None) -> tuple[TimeLimit, Any]:
    """The limit, and what became of the work under it."""
    limit = TimeLimit(seconds, [].append if told is None else told.append)

    async def main() -> Any:
        with limit:
            return await limit.run(work(limit))

    return limit, asyncio.run(main())


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
        limit, began = TimeLimit(LONG_S, [].append), asyncio.Event()

        async def work() -> None:
            began.set()
            await asyncio.Event().wait()

        async def task() -> None:
            with limit:
                await limit.run(work())

        running = asyncio.create_task(task())
        await began.wait()
        running.cancel()
        await asyncio.wait({running})
        return running.cancelled(), limit.expired

    assert asyncio.run(main()) == (True, False)


def test_added_time_moves_the_end_and_is_told() -> None:
    told: list[float] = []

    async def work(limit: TimeLimit) -> str:
        limit.extend(LONG_S)
        await asyncio.sleep(0.05)
        return "done"

    limit, answer = limited(work, 0.01, told)
    assert (answer, limit.expired, told) == ("done", False, [LONG_S])


def test_time_added_after_the_end_changes_nothing() -> None:
    async def main() -> bool:
        limit = TimeLimit(LONG_S, [].append)
        with limit:
            await limit.run(asyncio.sleep(0))
        limit.extend(1.0)
        await asyncio.sleep(0)
        return limit.expired

    assert asyncio.run(main()) is False
