"""Trials in a scratch folder of their own, cleaned up after each test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.core.case import Case, Limits
from seatrial.core.fixture import FixtureSpec
from seatrial.environment.trial import TrialEnvironment
from seatrial.environment.workspace import FileFixture

MakeTrial = Callable[..., TrialEnvironment]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def make_trial(scratch: Path, tmp_path: Path) -> Iterator[MakeTrial]:
    """A trial that is set up: keywords are the fixture's keys, or `input`, `steps`, `tools_mode`, `seed`."""
    made: list[TrialEnvironment] = []

    def make(
        *,
        case_input: Any = "hello",
        steps: int = 50,
        tools_mode: Any = "stand_in",
        seed: int = 0,
        set_up: bool = True,
        config: Any = None,
        **spec: Any,
    ) -> TrialEnvironment:
        case = Case(id="a-case", input=case_input, limits=Limits(steps=steps))
        fixture = FileFixture(
            FixtureSpec.model_validate({"folder": str(tmp_path), **spec}),
            case=case,
            config=config or {},
            tools_mode=tools_mode,
            scratch=lambda: scratch,
        )
        trial = fixture.environment(1, seed)
        made.append(trial)
        if set_up:
            trial.set_up()
        return trial

    yield make
    for trial in made:
        trial.clean_up()
