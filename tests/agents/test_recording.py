"""Which recorder counts where: by context, made on demand."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.agents.recording import Recording


class Recorder:
    def __init__(self) -> None:
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def recording() -> Recording[Recorder]:
    return Recording("test_recording")


def test_outside_nobody_records(recording: Recording[Recorder]) -> None:
    with recording.by(Recorder()):
        pass
    assert recording.current() is None


def test_one_recorder_is_made_when_it_is_needed_and_closed_at_the_end(recording: Recording[Recorder]) -> None:
    made: list[Recorder] = []

    def make() -> Recorder:
        made.append(Recorder())
        return made[-1]

    with recording.on_demand(make):
        assert made == []
        assert recording.current() is recording.current()
    assert [recorder.closed for recorder in made] == [1]
    with recording.on_demand(make):
        pass
    assert len(made) == 1


async def test_tasks_take_their_recorder_along(recording: Recording[Recorder]) -> None:
    async def inside(recorder: Recorder) -> bool:
        with recording.by(recorder):
            await asyncio.sleep(0)
            return await asyncio.create_task(asyncio.to_thread(recording.current)) is recorder

    assert all(await asyncio.gather(*[inside(Recorder()) for _ in range(5)]))


def test_the_inner_one_counts(recording: Recording[Recorder]) -> None:
    outer, inner = Recorder(), Recorder()
    with recording.by(outer):
        with recording.by(inner):
            assert recording.current() is inner
        assert recording.current() is outer
