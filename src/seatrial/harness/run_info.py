"""What goes on record about a run before its first trial."""

from __future__ import annotations

import functools
import platform
import secrets
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from seatrial.core.model_json import json_of
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.core.run import PERMISSION_RULES, RunInfo
from seatrial.environment.trial import TrialEnvironment
from seatrial.harness.request import Request
from seatrial.harness.selecting import Selected

__all__ = ["rules_on_record", "run_id", "run_info", "sayable"]


def run_id(now: datetime) -> str:
    """An id for a run that begins now."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def run_info(
    found: Selected,
    request: Request,
    spec: AgentSpec,
    agent: Agent[TrialEnvironment],
    planned: Sequence[PlannedCase],
) -> RunInfo:
    """The record of a run of these cases that begins now."""
    now, project = datetime.now(UTC), found.project
    suites = sorted({item.case.suite for item in planned})
    return RunInfo(
        run_id=run_id(now),
        build_id=request.build_id or _build_id(request.build, project.build_id),
        agent=json_of(spec, exclude_defaults=True),
        agent_kind=agent.kind,
        sandbox=dict(getattr(agent, "sandbox", {})),
        observes=tuple(sorted(agent.observes)),
        trials_planned=sum(item.trials for item in planned),
        cases={item.case.id: item.digest for item in planned},
        inputs={item.case.id: item.input_digest for item in planned},
        hidden=tuple(item.case.id for item in planned if item.case.id in found.hidden),
        trials={item.case.id: item.trials for item in planned},
        gating={suite: project.gates(suite) for suite in suites},
        fixtures={
            item.case.environment.fixture: item.fixture_digest for item in planned if item.case.environment.fixture
        },
        curtailed=request.stop_when_decided,
        cassettes="" if request.cassette_mode in (None, "off") else request.cassette_mode,
        policies=rules_on_record(planned),
        options=_options(request),
        judge={} if project.judge is None else json_of(project.judge, exclude_none=True),
        prices={name: price.model_dump(exclude_none=True) for name, price in project.prices.items()},
        seed=request.seed if request.seed is not None else secrets.randbelow(2**31),
        versions=_versions(),
        git_commit=_git_commit(project.root),
        command=request.command,
        started=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    )


def rules_on_record(planned: Sequence[PlannedCase]) -> dict[str, str]:
    """Digest of the permission rules that hold for these cases, by name; empty where the project has none."""
    rules = planned[0].rules if planned else None
    return {} if rules is None else {PERMISSION_RULES: rules.digest}


def _build_id(name: str | None, version: str) -> str:
    """A named build goes by its name; where the project knows its version too, by both."""
    if name is None:
        return version
    return name if version == "dev" else f"{name}@{version}"


_SELECTING = ("select", "suite", "tag", "risk", "keyword")
_RUNNING = ("trials", "concurrency", "timeout_s", "seed", "tools", "isolation", "set", "cassettes", "cassette_mode")
_SPENDING = ("max_cost", "max_time", "allow_unknown_cost", "stop_when_decided")
_PLACED = ("project", "build", "executor", "scheduler")
_SHOWN = (*_PLACED, *_SELECTING, *_RUNNING, *_SPENDING)
"""Options that go on record; an agent too, when it was given as text."""


def _options(request: Request) -> Mapping[str, Any]:
    asked = {name: value for name in _SHOWN if (value := getattr(request, name)) not in (None, (), "", False)}
    asked |= {name: str(value.absolute()) for name, value in asked.items() if isinstance(value, Path)}
    if isinstance(request.agent, str):
        asked["agent"] = request.agent
    return asked if request.ids is None else asked | {"named_cases_only": True}


def sayable(options: Mapping[str, Any]) -> dict[str, Any]:
    """What stands on record of a run's options and can be said again: all but masked values."""
    kept = {name: value for name, value in options.items() if name in (*_SHOWN, "agent")}
    if "set" in kept:
        kept["set"] = [text for text in kept["set"] if "[secret:" not in text]
    return {name: value for name, value in kept.items() if "[secret:" not in str(value)}


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("seatrial", "langgraph", "langchain", "langchain-core"):
        if package == "seatrial" or package.replace("-", "_") in sys.modules:
            try:
                found[package] = metadata.version(package)
            except metadata.PackageNotFoundError:
                continue
    return found


@functools.lru_cache(maxsize=8)
def _git_commit(folder: str) -> str | None:
    try:
        found = subprocess.run(  # noqa: S603  fixed words and the project's folder
            ["git", "-C", folder, "rev-parse", "HEAD"],  # noqa: S607  the user's own git
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None if found.returncode == 0 else None
