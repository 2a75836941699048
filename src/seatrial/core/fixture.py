"""What surrounds an agent in one trial, as a fixture file declares it."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import ConfigDict, Field, StrictBool, model_validator

from seatrial.core.encoding import digest
from seatrial.core.frozen import Frozen
from seatrial.core.model_json import json_of

__all__ = ["ApprovalRule", "DatabaseSpec", "FaultSpec", "FixtureSpec", "Observer", "StandInRule", "Watch"]


class StandInRule(Frozen):
    """One answer of a stand-in tool. Rules are tried in order; the first that matches answers."""

    when: dict[str, Any] | None = None
    """Matcher over the arguments; None (or `otherwise: true`) always matches."""
    otherwise: Literal[True] | None = None
    returns: Any = None
    raises: str | None = None
    """`Type: message` to raise instead."""


class DatabaseSpec(Frozen):
    """A database that every trial gets a fresh copy of."""

    sqlite: str
    """A .sql script or a database file, relative to the fixture."""


class FaultSpec(Frozen):
    """A fault at a tool's boundary. One of error, rate_limit, latency_ms, result says what happens."""

    tool: str
    on_call: int | None = Field(default=None, ge=1, strict=True)
    """Only the n-th call of this tool in the trial; None = every call."""
    error: str | None = None
    """`timeout` (TimeoutError), else `Type: message` or a message."""
    rate_limit: int | None = Field(default=None, ge=0, strict=True)
    """Calls that succeed before every further one is refused with a rate-limit error."""
    latency_ms: float | None = Field(default=None, ge=0, allow_inf_nan=False, strict=True)
    result: Literal["truncated", "malformed", "empty", "stale", "duplicate"] | None = None
    probability: float = Field(default=1.0, ge=0, le=1, strict=True)
    after: StrictBool = False
    """Raise after the tool's body has had its effect, instead of before."""

    @model_validator(mode="after")
    def _one_fault(self) -> FaultSpec:
        given = [k for k in ("error", "rate_limit", "latency_ms", "result") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError("a fault has one of error, rate_limit, latency_ms, result")
        return self


class ApprovalRule(Frozen):
    """A scripted answer to a request for approval. The first rule that matches answers; none = unanswered."""

    action: str
    when: dict[str, Any] | None = None
    """Matcher over the arguments."""
    decision: Literal["granted", "denied", "edited", "unanswered"]
    arguments: dict[str, Any] | None = None
    """What an edited approval permits."""
    by: str | None = None


class Observer(Frozen):
    """How one key of the outcome is read after the trial: by SQL, from the state, a file, or a function."""

    sql: str | None = None
    state: str | None = None
    """Dotted path into the trial's state."""
    file: str | None = None
    """Path in the working folder; its text is the value (its JSON with `json: true`)."""
    json_file: bool = Field(default=False, alias="json", strict=True)
    function: str | None = None
    """Import path, called with the trial's environment."""
    default: Any = None
    """The value when there is no row, path or file. A statement that fails is an error all the same."""

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="after")
    def _one_source(self) -> Observer:
        given = [k for k in ("sql", "state", "file", "function") if getattr(self, k) is not None]
        if len(given) != 1:
            raise ValueError("an observer has one of sql, state, file, function")
        return self


class Watch(Frozen):
    """What must come back clean after a trial."""

    globals: tuple[str, ...] = ()
    """Import paths of module globals."""


class FixtureSpec(Frozen):
    """A fixture as written, with its files resolved by the loader."""

    name: str = ""
    folder: str = Field(default="", exclude=True)
    """Absolute; paths below are relative to it."""
    identity: dict[str, Any] = Field(default_factory=dict)
    """Who the agent acts as: agent, user, tenant."""
    database: DatabaseSpec | None = None
    files: str | None = None
    """A folder that is copied into the working folder."""
    state: Any = None
    """JSON data (the loader has read `state: file.json`)."""
    secrets: dict[str, str] = Field(default_factory=dict)
    """Canaries by name."""
    tools: dict[str, tuple[StandInRule, ...]] = Field(default_factory=dict)
    faults: tuple[FaultSpec, ...] = ()
    approvals: tuple[ApprovalRule, ...] = ()
    outcome: dict[str, Observer] = Field(default_factory=dict)
    watch: Watch = Watch()
    function: str | None = None
    """`path/to/file.py:NAME` of a Python fixture, a generator function that gets the trial's environment."""
    content_digest: str = ""
    """Digest of every file it reads."""
    surroundings_digest: str = ""
    """As `content_digest`, without what is looked for afterwards: observers, watches and canaries."""

    @cached_property
    def may_block(self) -> bool:
        """Whether making or looking at what it declares may take time."""
        made = (self.database, self.files, self.function) != (None, None, None)
        return made or bool(self.watch.globals) or any(observer.state is None for observer in self.outcome.values())

    @cached_property
    def digest(self) -> str:
        """Digest of all of it."""
        return digest(json_of(self, by_alias=True, exclude_defaults=True))
