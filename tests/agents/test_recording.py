"""Which recorder counts where: by context, and behind a user's function made on demand."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.agents.hidden import captured
from seatrial.agents.leaving import AgentLeft
from seatrial.agents.recording import Recording
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.environment.trial import TrialEnvironment


class Recorder:
    def __init__(self, trial: TrialEnvironment | None = None) -> None:
        self.trial = trial
        self.closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def recording() -> Recording[Recorder]:
    return Recording("test_recording", f"{__name__}:Recorder")


def trial() -> TrialEnvironment:
    return TrialEnvironment(Case(id="a", input="x"), FixtureSpec(), trial_index=1, seed=1)


def test_outside_nobody_records(recording: Recording[Recorder]) -> None:
    with recording.by(Recorder):
        pass
    with captured(trial()):
        pass
    assert recording.here() is None


def test_behind_a_function_one_is_made_when_it_is_needed_and_closed_at_the_end(recording: Recording[Recorder]) -> None:
    here = trial()
    with captured(here):
        made = recording.here()
        assert made is not None
        assert made is recording.here()
        assert (made.trial, made.closed) == (here, 0)
    assert made.closed == 1


def test_each_framework_has_its_own(recording: Recording[Recorder]) -> None:
    other: Recording[Recorder] = Recording("test_other_recording", f"{__name__}:Recorder")
    with captured(trial()):
        assert recording.here() is not other.here()


async def test_tasks_and_threads_take_their_recorder_along(recording: Recording[Recorder]) -> None:
    async def inside() -> bool:
        with captured(trial()):
            await asyncio.sleep(0)
            return await asyncio.create_task(asyncio.to_thread(recording.here)) is recording.here()

    assert all(await asyncio.gather(*[inside() for _ in range(5)]))


def test_an_adapter_s_own_counts_before_the_function_s_and_the_inner_one_first(recording: Recording[Recorder]) -> None:
    outer, inner = Recorder(), Recorder()
    with captured(trial()), recording.by(lambda: outer):
        with recording.by(lambda: inner):
            assert recording.here() is inner
        assert recording.here() is outer


def test_what_a_tool_left_by_leaves_the_function_as_it_was_raised(recording: Recording[Recorder]) -> None:
    made: list[Recorder | None] = []

    def leaves() -> None:
        with captured(trial()):
            made.append(recording.here())
            raise AgentLeft(SystemExit(3))

    with pytest.raises(SystemExit):
        leaves()
    assert [one.closed for one in made if one is not None] == [1]
