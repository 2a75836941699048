"""The project's own settings: `seatrial.yaml`, normalised."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, StrictBool

from seatrial.core.case import Retries
from seatrial.core.frozen import Frozen
from seatrial.core.usage import Price

__all__ = [
    "AgentSpec",
    "HistorySpec",
    "JudgeSpec",
    "ModelProxySpec",
    "Project",
    "RateLimit",
    "RatesSpec",
    "SuiteSpec",
]


class AgentSpec(Frozen):
    """Which agent, and how to talk to it."""

    target: str | None = None
    """`module:object` or a URL."""
    command: tuple[str, ...] | None = None
    kind: str | None = None
    """Adapter name; None = found out from the target."""
    input: Any = None
    """How the case's input becomes the agent's (adapter by adapter)."""
    output: Any = None
    config: dict[str, Any] = Field(default_factory=dict)
    """Reaches the factory, a command's `hello`, or a chat endpoint's request."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Sent with each request (http)."""
    sandbox: Literal["none", "bubblewrap"] = "none"
    """What a command is run in."""
    deterministic: StrictBool = False
    independent_trials: StrictBool = True
    tools: Literal["stand_in", "real"] = "stand_in"


class SuiteSpec(Frozen):
    """Settings of one suite besides the defaults that it gives its cases."""

    gate: StrictBool = True
    """False: reported only."""
    defaults: dict[str, Any] = Field(default_factory=dict)
    """Case keys, as written in the suite's entry."""


class JudgeSpec(Frozen):
    """The model behind judges."""

    model: str
    base_url: str | None = None


class RateLimit(Frozen):
    """How often one model or tool may be called."""

    requests_per_minute: float = Field(gt=0, allow_inf_nan=False, strict=True)


class RatesSpec(Frozen):
    """Rate limits over all trials of a run, by name of the model or tool."""

    models: dict[str, RateLimit] = Field(default_factory=dict)
    tools: dict[str, RateLimit] = Field(default_factory=dict)


class ModelProxySpec(Frozen):
    """What recording and replaying model calls stands in front of, beside `OPENAI_BASE_URL`."""

    env: tuple[str, ...] | dict[str, str] = ()
    """More environment variables that hold a base URL: their names, or each with the URL that it stands for when it is
    not set."""
    upstreams: dict[str, str] = Field(default_factory=dict)
    """Base URLs by names of one's own, for `environment.model_base_urls`."""

    @property
    def variables(self) -> dict[str, str]:
        """The URL of each variable where it is not set; empty text where none is known."""
        return dict(self.env) if isinstance(self.env, dict) else dict.fromkeys(self.env, "")


class HistorySpec(Frozen):
    """Where past runs are indexed."""

    url: str = "sqlite:///.seatrial/history.db"
    max_age_days: int = Field(default=90, ge=1, strict=True)


class Project(Frozen):
    """`seatrial.yaml` after variables, `--set` and defaults."""

    version: Literal[1] = 1
    agent: AgentSpec | None = None
    builds: dict[str, AgentSpec] = Field(default_factory=dict)
    build_id: str = "dev"
    defaults: dict[str, Any] = Field(default_factory=dict)
    suites: dict[str, SuiteSpec] = Field(default_factory=dict)
    judge: JudgeSpec | None = None
    prices: dict[str, Price] = Field(default_factory=dict)
    history: HistorySpec = HistorySpec()
    redact: tuple[str, ...] = ()
    hidden_cases: str | None = None
    concurrency: int = Field(default=10, ge=1, strict=True)
    judge_concurrency: int | None = Field(default=None, ge=1, strict=True)
    """Judges asked at once; None = as many as trials in flight."""
    isolation: Literal["thread", "process"] = "thread"
    rates: RatesSpec = RatesSpec()
    retries: Retries = Retries()
    model_proxy: ModelProxySpec = ModelProxySpec()
    root: str = Field(default="", exclude=True)
    """Absolute folder of the project."""
    secrets: dict[str, str] = Field(default_factory=dict, exclude=True, repr=False)
    """Values to mask, by the name of the variable they came from."""

    def gates(self, suite: str) -> bool:
        """Whether cases of this suite decide exit codes and gates."""
        return self.suites.get(suite, SuiteSpec()).gate
