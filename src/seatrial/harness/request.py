"""What a run is asked to do, by the command line, Python and environment variables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.core.run_options import OPTIONS, check_options
from seatrial.loading.from_environment import options_from_environment
from seatrial.loading.selection import Selection

__all__ = ["Request", "with_environment"]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run is asked to do; the names are those of the command line. None = as the project says.

    Raises UsageError for an option that is not what it may be.
    """

    project: Path | None = None
    """The project's folder; None = found upward from the working folder."""
    select: tuple[str, ...] = ()
    suite: tuple[str, ...] = ()
    tag: tuple[str, ...] = ()
    risk: tuple[str, ...] = ()
    keyword: str = ""
    ids: frozenset[str] | None = None
    """Only these cases (from `--failed-from`)."""
    agent: Any = None
    """A spec as text, or (in Python) an AgentSpec or the agent itself."""
    build: str | None = None
    build_id: str | None = None
    """What to call the build; None = by its name and the project's `build_id`."""
    trials: int | None = None
    concurrency: int | None = None
    timeout_s: float | None = None
    seed: int | None = None
    tools: str | None = None
    cassettes: Path | None = None
    """The folder of recorded model calls."""
    cassette_mode: str | None = None
    """`record`, `replay` or `off`; None is off."""
    isolation: str | None = None
    """`thread` or `process`: where each trial runs."""
    executor: str | None = None
    """Name of what runs the trials; None = on this machine."""
    scheduler: str | None = None
    """For an executor on other machines: where its scheduler listens."""
    max_cost: float | None = None
    """USD that the run may cost."""
    max_time: float | None = None
    """Seconds after which no trial starts."""
    allow_unknown_cost: bool = False
    stop_when_decided: bool = False
    output: Path | None = None
    """The run folder itself."""
    resume: bool = False
    """Go on with the run in `output`, where there is one."""
    set: tuple[str, ...] = ()
    """`key=value` settings over seatrial.yaml."""
    debug: bool = False
    command: tuple[str, ...] = ()
    """How the run was asked for, for the record."""

    def __post_init__(self) -> None:
        check_options({name: getattr(self, name) for name in OPTIONS})

    @property
    def selection(self) -> Selection:
        return Selection(
            select=self.select,
            suites=self.suite,
            tags=self.tag,
            risks=self.risk,
            keyword=self.keyword,
            ids=self.ids,
        )


def with_environment(request: Request) -> Request:
    """Environment variables fill in what neither the command line nor the caller gave."""
    given = options_from_environment()
    return replace(request, **{name: value for name, value in given.items() if getattr(request, name) is None})
