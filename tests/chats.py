"""Trials of agents that have settings (`config`), such as chat endpoints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphs import Drive
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.environment.trial import TrialEnvironment

__all__ = ["Configured"]


class Configured(Drive):
    """A drive whose trials have the agent's config."""

    @property
    def config(self) -> dict[str, Any]:
        return self.__dict__.setdefault("_config", {})

    def planned(self, given: Any, turns: Sequence[str], fixture: dict[str, Any]) -> Any:
        planned, config = super().planned(given, turns, fixture), self.config

        class Fixture:
            case: Case = planned.case
            spec = FixtureSpec.model_validate(fixture)

            def environment(self, trial_index: int, seed: int) -> TrialEnvironment:
                return TrialEnvironment(self.case, self.spec, trial_index=trial_index, seed=seed, config=config)

        return type(planned)(planned.case, "", (), 1, Fixture())
