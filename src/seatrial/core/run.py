"""What a run says of itself: `run.json`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from seatrial.core.frozen import Frozen, Word

__all__ = ["PERMISSION_RULES", "Resumption", "RunInfo", "RunStatus"]

PERMISSION_RULES = "tool_permissions"
"""The name of a project's permission rules in `RunInfo.policies`."""


class RunStatus(Word):
    """Where a run stands."""

    RUNNING = "running"
    FINISHED = "finished"
    INTERRUPTED = "interrupted"
    OUT_OF_BUDGET = "out_of_budget"


class Resumption(Frozen):
    """One time that a run was gone on with."""

    at: str
    """UTC, ISO 8601 with Z."""
    command: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    git_commit: str | None = None


class RunInfo(Frozen):
    """One run: what was run, with what, when. Times are UTC, ISO 8601 with Z."""

    version: int = 1
    run_id: str
    status: RunStatus = RunStatus.RUNNING
    build_id: str = "dev"
    agent: dict[str, Any] = Field(default_factory=dict)
    """The agent's spec as written, masked."""
    agent_kind: str = ""
    sandbox: dict[str, Any] = Field(default_factory=dict)
    """What the agent's processes were kept from, as it was found to be in force: {by, enforced}; empty: nothing."""
    observes: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    trials_planned: int = 0
    cases: dict[str, str] = Field(default_factory=dict)
    """Digest of every selected case by id."""
    cases_file: str = ""
    """sha256 of `cases.jsonl` as it was written; empty: it was not noted."""
    inputs: dict[str, str] = Field(default_factory=dict)
    """Digest of what each case gave the agent (its input and surroundings, not its expectations), by id."""
    hidden: tuple[str, ...] = ()
    """Cases of which only verdicts are on record."""
    trials: dict[str, int] = Field(default_factory=dict)
    """Trials planned per case id."""
    curtailed: bool = False
    """Whether a case stopped once it was decided (`--stop-when-decided`): then only verdicts compare."""
    gating: dict[str, bool] = Field(default_factory=dict)
    """Per suite whether it decides exit codes."""
    fixtures: dict[str, str] = Field(default_factory=dict)
    """Digest of every fixture by name."""
    policies: dict[str, str] = Field(default_factory=dict)
    """Digest of the rules that held while it ran, by name: PERMISSION_RULES where the project has such a file."""
    options: dict[str, Any] = Field(default_factory=dict)
    prices: dict[str, Any] = Field(default_factory=dict)
    judge: dict[str, Any] = Field(default_factory=dict)
    """The model behind judges and where it is reached; empty: none."""
    seed: int = 0
    versions: dict[str, str] = Field(default_factory=dict)
    """Of Python, Seatrial and the agent's framework."""
    git_commit: str | None = None
    command: tuple[str, ...] = ()
    cassettes: str = ""
    """`record` or `replay`: whether its model calls were recorded, or answered from recordings; empty: neither."""
    regraded_from: str = ""
    """Id of the run whose traces were graded again; empty: the agent was run."""
    rerun_of: str = ""
    """Id of the run of which one trial was run again; empty: it is a run of its own."""
    started: str = ""
    ended: str | None = None
    resumed: tuple[Resumption, ...] = ()
    """When it was gone on with, in order; id, seed and start are those of the first time."""
    chain_end: str | None = None
    """Digest of the last line of `trials.jsonl` when the run ended: what is cut off later shows. None: it has not."""
