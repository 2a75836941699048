"""Waiting for each other from any thread and any event loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from seatrial.testing.conformance import signals
from seatrial.testing.conformance.signals import Meeting, Signal


async def test_a_signal_set_in_a_thread_reaches_a_loop() -> None:
    signal = Signal()
    threading.Thread(target=signal.set).start()
    await signal.reached_at_last()


async def test_a_signal_that_was_set_is_reached_at_once_and_setting_it_again_changes_nothing() -> None:
    signal = Signal()
    signal.set()
    signal.set()
    await signal.reached_at_last()
    signal.wait_at_last()


async def test_nobody_waits_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "LIMIT_S", 0.01)
    signal = Signal()
    await signal.reached()
    await asyncio.to_thread(signal.wait)


def test_a_signal_may_be_set_after_the_loop_that_waited_has_closed() -> None:
    signal = Signal()

    async def give_up() -> None:
        waiting = asyncio.ensure_future(signal.reached_at_last())
        await asyncio.sleep(0)
        waiting.cancel()

    asyncio.run(give_up())
    signal.set()
    signal.wait_at_last()


def test_a_meeting_brings_loops_and_threads_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signals, "LIMIT_S", None)  # nobody leaves for having waited long
    meeting = Meeting(4)
    arrived: list[str] = []
    company: list[int] = []

    async def from_a_loop() -> None:
        arrived.append("loop")
        await meeting.join()
        company.append(len(arrived))

    async def two() -> None:
        await asyncio.gather(from_a_loop(), from_a_loop())

    def from_a_thread() -> None:
        arrived.append("thread")
        meeting.join_blocking()
        company.append(len(arrived))

    threads = [threading.Thread(target=from_a_thread, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    asyncio.run(two())
    for thread in threads:
        thread.join()
    assert company == [4, 4, 4, 4], "nobody went on before all were there"
