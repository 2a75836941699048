"""Fixtures as files declare them: each trial gets surroundings of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.environment.sources import Sources
from seatrial.environment.trial import NO_FIXTURE, TrialEnvironment

__all__ = ["FileFixture"]


@dataclass(frozen=True)
class FileFixture:
    """Makes the surroundings of one case's trials. Cheap: what costs is made by the trial that touches it."""

    spec: FixtureSpec = NO_FIXTURE
    """With the case's overrides merged in."""
    case: Case = field(kw_only=True)
    config: Mapping[str, Any] = field(kw_only=True, default_factory=dict)
    """Settings that reach the agent's factory."""
    tools_mode: Literal["stand_in", "real"] = field(kw_only=True, default="stand_in")
    """`real` switches stand-ins off."""
    scratch: Callable[[], Path] | None = field(kw_only=True, default=None)
    """Gives the run's temporary folder, making it on first use; trials' folders and template databases live there.
    None: each trial's folder is made where the system keeps temporary files."""
    sources: Sources | None = field(kw_only=True, default=None)
    """The files behind it, which must stay as they were; None: nobody looks."""

    def environment(self, trial_index: int, seed: int) -> TrialEnvironment:
        """A trial's own surroundings, not yet set up."""
        return TrialEnvironment(
            self.case, self.spec, trial_index, seed, self.config, self.tools_mode, self.scratch, self.sources
        )
