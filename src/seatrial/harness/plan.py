"""From what a user asks for to what a run needs: project, agent, cases with fixtures and graders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from seatrial.agents.detect import agent_for, load_agent
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.project import AgentSpec, Project
from seatrial.core.run import RunInfo
from seatrial.core.trial import TrialKey
from seatrial.environment.secrets import Redactor
from seatrial.environment.trial import TrialEnvironment
from seatrial.errors import Diagnostic, UsageError, did_you_mean
from seatrial.harness.budgeting import refuse_unknown_prices
from seatrial.harness.cassettes import Cassettes, cassettes_for, loading
from seatrial.harness.importing import forget_projects, importable
from seatrial.harness.planner import planned_cases
from seatrial.harness.request import Request, with_environment
from seatrial.harness.resuming import as_it_was, continued, is_complete, stored_run
from seatrial.harness.run_info import run_info
from seatrial.harness.scratch import Scratch
from seatrial.harness.selecting import Selected, selected
from seatrial.loading.config import agent_spec
from seatrial.loading.selection import Selection
from seatrial.runner.budget import NO_LIMIT, Budget
from seatrial.runner.capture import printing_to_stderr

__all__ = ["Plan", "plan"]


@dataclass(frozen=True)
class Plan:
    """Everything a run needs, resolved before the first agent call."""

    project: Project
    agent: Agent[TrialEnvironment]
    cases: tuple[PlannedCase, ...]
    info: RunInfo
    folder: Path
    concurrency: int
    redactor: Redactor
    scratch: Scratch
    request: Request
    """As asked for, filled in from the environment."""
    isolation: str = "thread"
    hidden: frozenset[str] = frozenset()
    warnings: tuple[Diagnostic, ...] = ()
    only: frozenset[TrialKey] | None = None
    """The only trials to run of those planned; None = all."""
    budget: Budget = NO_LIMIT
    resumes: bool = False
    """Whether the run was begun before; `info` is then that run's."""
    cassettes: Cassettes | None = None
    """Records or replays model calls; None: they go where they go."""
    complete: bool = False
    """Whether that run has finished all that is asked for, so that nothing is to be run or written."""

    @property
    def total(self) -> int:
        """Trials to run."""
        return sum(planned.trials for planned in self.cases) if self.only is None else len(self.only)


def plan(request: Request, found: Selected | None = None) -> Plan:
    """Resolve a request. Every mistake that can be known before the first agent call is raised here.

    What the project's modules print while they are imported goes to standard error: standard output is for results.
    `found` is what was selected, where the caller has done that already.
    """
    request = with_environment(request)
    budget = Budget(request.max_cost, request.max_time, request.allow_unknown_cost)
    stored = stored_run(request.output) if request.resume else None
    request = request if stored is None else _as_it_was(request, stored)
    found = found or selected(request)
    hidden = found.hidden & {case.id for case in found.cases}
    cassettes = cassettes_for(found.project, hidden, request.cassettes, request.cassette_mode)
    with loading(cassettes):
        if cassettes is not None and request.seed is None:
            request = replace(request, seed=cassettes.seed)
        return _plan(request, found, stored, budget, cassettes)


def _plan(
    request: Request, found: Selected, stored: RunInfo | None, budget: Budget, cassettes: Cassettes | None
) -> Plan:
    project, warnings = found.project, found.warnings
    forget_projects()
    with importable(project.root), printing_to_stderr():
        spec, agent = _agent(project, request)
        scratch = Scratch()
        planned = planned_cases(found, request, spec, scratch)
    refuse_unknown_prices(budget, project, planned)
    if any(item.rules is not None for item in planned):
        warnings = (*warnings, _RULES_NOT_GRADED)
    redactor = Redactor(project.secrets, project.redact)
    info = run_info(found, request, spec, agent, planned)
    folder = (request.output or Path(project.root) / "runs" / info.run_id).absolute()
    complete = stored is not None and is_complete(folder, stored, info)
    if stored is not None:
        info = continued(stored, info, redactor.value)
    return Plan(
        project=project,
        agent=agent,
        cases=planned,
        info=info,
        folder=folder,
        concurrency=1 if request.debug else min(request.concurrency or project.concurrency, info.trials_planned),
        redactor=redactor,
        scratch=scratch,
        request=request,
        isolation=_isolation(project, request),
        hidden=found.hidden,
        warnings=warnings,
        budget=budget,
        resumes=stored is not None,
        cassettes=cassettes,
        complete=complete,
    )


def _as_it_was(request: Request, stored: RunInfo) -> Request:
    """The request with what it leaves open filled in from the run that it goes on with."""
    filled = {name: value for name, value in as_it_was(stored).items() if getattr(request, name) is None}
    if request.selection == Selection():
        filled["ids"] = frozenset(stored.cases)
    return replace(request, **filled)


_RULES_NOT_GRADED = Diagnostic(
    rule="rules-not-graded",
    severity="warning",
    path="policies/tool_permissions.yaml",
    message="permission rules are read and validated, but this version grades only leaked secrets by them",
)


def _agent(project: Project, request: Request) -> tuple[AgentSpec, Agent[TrialEnvironment]]:
    spec = _agent_spec(project, request)
    if request.tools is not None:
        spec = spec.model_copy(update={"tools": request.tools})
    if request.agent is not None and not isinstance(request.agent, (str, AgentSpec)):
        return spec, agent_for(request.agent, spec)
    return spec, load_agent(spec, project.root)


def _isolation(project: Project, request: Request) -> str:
    """`--debug` stays in this process: a debugger needs its terminal."""
    return "thread" if request.debug else request.isolation or project.isolation


def _agent_spec(project: Project, request: Request) -> AgentSpec:
    if request.agent is not None and request.build is not None:
        raise UsageError("name an agent or a build, not both")
    if isinstance(request.agent, AgentSpec):
        return request.agent
    if isinstance(request.agent, str):
        return agent_spec(request.agent)
    if request.agent is not None:
        return AgentSpec(target=getattr(request.agent, "__qualname__", type(request.agent).__qualname__))
    if request.build is not None:
        if request.build not in project.builds:
            hint = did_you_mean(request.build, list(project.builds))
            raise UsageError(f"there is no build {request.build!r}" + (f"; {hint}" if hint else ""))
        return project.builds[request.build]
    if project.agent is None:
        raise UsageError("no agent: name one in seatrial.yaml (agent: module:object) or with --agent")
    return project.agent
