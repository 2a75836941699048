"""Where trials run: this process, processes of their own, other machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.core.ports import Agent
from seatrial.environment.trial import TrialEnvironment
from seatrial.registry import Registry
from seatrial.runner.trial import TrialSettings

__all__ = ["EXECUTORS", "Site", "Travel"]

EXECUTORS = Registry(
    "executor",
    {
        "local": "seatrial.runner.executors.local:local_executor",
        "dask": "seatrial.runner.executors.dask:dask_executor",
    },
)
"""Name -> a function of a Site that gives an Executor."""


@dataclass(frozen=True)
class Travel:
    """What other processes need to run the same trials."""

    bench: str
    """`module:object` that makes a Bench (`seatrial.runner.trial_process`) of the setup."""
    setup: Mapping[str, Any]
    """JSON data."""
    scratch: Path
    """Where trials on this machine make their folders."""


@dataclass(frozen=True, kw_only=True)
class Site:
    """What an executor is made from."""

    agent: Agent[TrialEnvironment]
    settings: TrialSettings
    concurrency: int = 10
    capture: bool = True
    """Whether what agents print goes to their trial's log."""
    isolation: str = "thread"
    travel: Travel | None = None
    """None where trials run in this very process."""
    scheduler: str | None = None
    """Address of what hands trials to other machines."""
