"""A project made ready in another process or on another machine, so that trials can run there.

What travels is data: the request as JSON, and which trial. The project itself is loaded there, by its import paths.

Rate limits and the limit for judges are kept in one place for the whole run: with `isolation: process` by the harness's
own process, on a cluster by the scheduler. What a trial may spend (`limits.cost_usd`, models without a price) is looked
after there, what the run may spend here. What trials leave behind is looked for by the harness's own process alone
(`process`), and not at all on a cluster, whose workers start and end threads of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.core.model_json import json_of
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.project import AgentSpec
from seatrial.environment.model_proxy.address import ProxyAddress
from seatrial.environment.model_proxy.variables import in_force
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import UsageError
from seatrial.harness.importing import importable
from seatrial.harness.plan import Plan, plan
from seatrial.harness.request import Request
from seatrial.harness.settings import settings_for
from seatrial.runner.trial import TrialSettings

__all__ = ["ProjectBench", "bench", "request_as_data", "request_of", "setup_for"]

_ELSEWHERE = ("concurrency", "isolation", "executor", "scheduler", "max_time", "stop_when_decided")
_LEFT_OUT = ("output", "resume", "command", "debug", "cassettes", "cassette_mode", *_ELSEWHERE)
"""What of a request decides nothing about a single trial."""


def setup_for(planned: Plan, request: Request) -> dict[str, Any]:
    """What `bench` needs to make the same trials elsewhere, as JSON data."""
    return {
        "request": request_as_data(replace(request, project=Path(planned.project.root))),
        "seed": planned.info.seed,
        "scratch": str(planned.scratch()),
        "proxy": None if planned.cassettes is None else planned.cassettes.address.as_data(),
    }


def request_as_data(request: Request) -> dict[str, Any]:
    """A request as JSON data. Raises UsageError when the agent in it is an object rather than an import path."""
    data = {item.name: getattr(request, item.name) for item in fields(request) if item.name not in _LEFT_OUT}
    agent = request.agent
    if isinstance(agent, AgentSpec):
        data["agent"] = json_of(agent)
    elif agent is not None and not isinstance(agent, str):
        kind = type(agent).__name__
        raise UsageError(
            f"trials in other processes load the agent by its import path; give it as module:object, not as a {kind}"
        )
    data["ids"] = None if request.ids is None else sorted(request.ids)
    return {name: str(value) if isinstance(value, Path) else value for name, value in data.items()}


def request_of(data: dict[str, Any]) -> Request:
    """What `request_as_data` gave, as a request again."""
    values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items()}
    values["ids"] = None if values["ids"] is None else frozenset(values["ids"])
    if isinstance(values["agent"], dict):
        values["agent"] = AgentSpec.model_validate(values["agent"])
    return Request(**{**values, "project": Path(values["project"])})


def bench(setup: dict[str, Any]) -> ProjectBench:
    """The project of a setup, loaded."""
    proxy = ProxyAddress.from_data(setup["proxy"]) if setup["proxy"] else None
    with in_force(proxy):
        planned = plan(request_of(setup["request"]))
    planned.scratch.path = Path(setup["scratch"]) if setup["scratch"] else None
    settings = replace(settings_for(planned), seed=setup["seed"], surroundings=None, proxy=proxy)
    return ProjectBench(planned, planned.agent, settings)


@dataclass
class ProjectBench:
    """One project, ready for any of its trials."""

    plan: Plan
    agent: Agent[TrialEnvironment]
    settings: TrialSettings

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Modules of the project can be imported, and its model calls find the proxy where there is one."""
        with importable(self.plan.project.root), in_force(self.settings.proxy):
            yield

    @cached_property
    def _cases(self) -> dict[str, PlannedCase]:
        return {planned.case.id: planned for planned in self.plan.cases}

    def planned(self, case_id: str, digest: str) -> PlannedCase:
        """The case of this id. Raises UsageError when it is another one here."""
        planned = self._cases.get(case_id)
        if planned is None or planned.digest != digest:
            raise UsageError(f"case {case_id} is another one where the trial was to run: the project has changed")
        return planned
