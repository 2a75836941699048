"""From what a user asks for to what a run needs: project, agent, cases with fixtures and graders."""

from __future__ import annotations

import functools
import importlib
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any, get_args

from seatrial.agents.detect import agent_for, load_agent
from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.encoding import digest
from seatrial.core.fixture import FixtureSpec
from seatrial.core.permissions import Rules
from seatrial.core.ports import Agent, PlannedCase
from seatrial.core.project import AgentSpec, Project
from seatrial.core.run import PERMISSION_RULES, RunInfo
from seatrial.core.trial import TrialKey
from seatrial.environment.secrets import Redactor
from seatrial.environment.sources import Sources
from seatrial.environment.trial import TrialEnvironment
from seatrial.environment.workspace import FileFixture
from seatrial.errors import Diagnostic, InputError, UsageError, did_you_mean
from seatrial.graders import graders_for
from seatrial.harness.budgeting import budget_of, refuse_unknown_prices
from seatrial.harness.cassettes import Cassettes, cassettes_for, loading
from seatrial.harness.own_code import at_first_place, problem_at_case, problems_with_code
from seatrial.harness.resuming import as_it_was, continued, is_complete, stored_run
from seatrial.loading.cases import load_cases
from seatrial.loading.config import agent_spec, load_project, options_from_environment, unknown_variables
from seatrial.loading.fixtures import FixtureFiles, fixture_for
from seatrial.loading.policies import load_rules
from seatrial.loading.selection import Selection, select
from seatrial.runner.budget import NO_LIMIT, Budget

__all__ = [
    "Plan",
    "Planner",
    "Request",
    "Scratch",
    "Selected",
    "forget_projects",
    "given",
    "importable",
    "plan",
    "planned_cases",
    "rules_on_record",
    "run_id",
    "selected",
    "with_environment",
]


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a run is asked to do; the names are those of the command line. None = as the project says."""

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


@dataclass
class Scratch:
    """A temporary folder that exists once somebody asks for it."""

    path: Path | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def __call__(self) -> Path:
        with self._lock:
            if self.path is None:
                self.path = Path(tempfile.mkdtemp(prefix="seatrial-"))
        return self.path

    def remove(self) -> None:
        """Remove it with all that is in it, if it was made."""
        if self.path is not None:
            shutil.rmtree(self.path, ignore_errors=True)
            self.path = None


_imported: set[str] = set()
"""Modules that earlier runs imported from their projects."""


@contextmanager
def importable(folder: str) -> Iterator[None]:
    """While this lasts, modules in `folder` can be imported (first)."""
    before, added = set(sys.modules), bool(folder) and folder not in sys.path
    if added:
        sys.path.insert(0, folder)
    try:
        yield
    finally:
        _imported.update(name for name in set(sys.modules) - before if _lies_in(sys.modules[name], folder))
        if added and folder in sys.path:
            sys.path.remove(folder)


def _lies_in(module: Any, folder: str) -> bool:
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(folder)


def forget_projects() -> None:
    """Let the next run import its project afresh: another project may have modules of the same names, and in a
    notebook the agent may have been edited meanwhile. What the caller imported itself stays."""
    for name in _imported:
        sys.modules.pop(name, None)
    _imported.clear()
    importlib.invalidate_caches()


@dataclass(frozen=True)
class Selected:
    """The project and what was selected in it."""

    project: Project
    cases: tuple[Case, ...]
    """In file order."""
    hidden: frozenset[str]
    """Ids of cases of which only verdicts may be shown."""
    warnings: tuple[Diagnostic, ...]


def selected(request: Request) -> Selected:
    """What a request selects.

    Raises InputError with every diagnostic, NothingSelected when the selection matches no case.
    """
    project = load_project(folder=request.project, overrides=request.set)
    loaded = load_cases(project)
    cases = select(loaded.cases, request.selection, Path(project.root))
    warnings = (*unknown_variables(Path(project.root)), *loaded.warnings)
    return Selected(project, cases, loaded.hidden, warnings)


def plan(request: Request, found: Selected | None = None) -> Plan:
    """Resolve a request. Every mistake that can be known before the first agent call is raised here.

    What the project's modules print while they are imported goes to standard error: standard output is for results.
    `found` is what was selected, where the caller has done that already.
    """
    request = with_environment(request)
    budget = budget_of(request.max_cost, request.max_time, allow_unknown_cost=request.allow_unknown_cost)
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
    with importable(project.root), redirect_stdout(sys.stderr):
        spec, agent = _agent(project, request)
        scratch = Scratch()
        planned = planned_cases(found, request, spec, scratch)
    refuse_unknown_prices(budget, project, planned)
    if any(item.rules is not None for item in planned):
        warnings = (*warnings, _RULES_NOT_GRADED)
    redactor = Redactor(project.secrets, project.redact)
    info = _info(found, request, spec, agent, planned)
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
        concurrency=1 if request.debug else request.concurrency or project.concurrency,
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


def planned_cases(
    found: Selected, request: Request, spec: AgentSpec, scratch: Callable[[], Path]
) -> tuple[PlannedCase, ...]:
    """The selected cases with fixtures and graders, in their order; called while the project is importable."""
    with collector_paused():
        return Planner(found.project, request, spec, load_rules(found.project), scratch).all(found.cases)


_RULES_NOT_GRADED = Diagnostic(
    rule="rules-not-graded",
    severity="warning",
    path="policies/tool_permissions.yaml",
    message="permission rules are read and validated, but this version grades only leaked secrets by them",
)


def with_environment(request: Request) -> Request:
    """Environment variables fill in what neither the command line nor the caller gave."""
    given = options_from_environment()
    return replace(request, **{name: value for name, value in given.items() if getattr(request, name) is None})


def _not_available(case: Case) -> Iterator[Diagnostic]:
    """What a case asks for and this version cannot do: it is refused by name, never run without it."""
    for what, hint in _not_built(case):
        yield Diagnostic("not-available", f"case {case.id} has {what}", case.path, case.line, hint=hint)


def _not_built(case: Case) -> Iterator[tuple[str, str]]:
    if case.judges:
        yield "`judges`", "judges are not available in this version; remove them or deselect the case"
    if case.environment.attack is not None:
        yield "`environment.attack`", "attacks are not available in this version; remove it or deselect the case"
    if case.user is not None and case.user.simulated is not None:
        yield "`user.simulated`", "users played by a model are not available in this version; use `user.scripted`"


def _agent(project: Project, request: Request) -> tuple[AgentSpec, Agent[TrialEnvironment]]:
    spec = _agent_spec(project, request)
    if request.tools is not None:
        spec = spec.model_copy(update={"tools": request.tools})
    if request.agent is not None and not isinstance(request.agent, (str, AgentSpec)):
        return spec, agent_for(request.agent, spec)
    return spec, load_agent(spec, project.root)


def _isolation(project: Project, request: Request) -> str:
    """`--debug` stays in this process: a debugger needs its terminal."""
    asked = "thread" if request.debug else request.isolation or project.isolation
    if asked not in get_args(Project.model_fields["isolation"].annotation):
        raise UsageError(f"isolation is thread or process, not {asked!r}")
    return asked


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


@dataclass
class Planner:
    """Gives each case what its trials need; reads each fixture once."""

    project: Project
    request: Request
    spec: AgentSpec
    rules: Rules | None
    scratch: Callable[[], Path]
    _read: dict[str | None, FixtureFiles] = field(default_factory=dict)
    _sources: dict[str, Sources] = field(default_factory=dict)

    def all(self, cases: Sequence[Case]) -> tuple[PlannedCase, ...]:
        """Every case as it is to be run. Raises InputError with whatever is wrong in any of them."""
        planned: list[PlannedCase] = []
        of_cases: list[Diagnostic] = []
        of_fixtures: list[Diagnostic] = []
        for order, case in enumerate(cases):
            bad = [*_not_available(case), *problems_with_code(case)]
            of_cases += bad
            try:
                if not bad:
                    planned.append(self.planned(case, order))
            except InputError as error:
                of_fixtures += error.diagnostics
            except UsageError as error:
                of_cases.append(problem_at_case(case, "bad-case", error))
        if of_cases or of_fixtures:
            raise InputError([*dict.fromkeys(of_fixtures), *at_first_place(of_cases)])
        return tuple(planned)

    def planned(self, case: Case, order: int) -> PlannedCase:
        case, trials = self._limited(case), self._trials(case)
        fixture = fixture_for(self.project, case, read=self._read)
        rules = None if self.rules is None else self.rules.digest
        return PlannedCase(
            case=case,
            digest=digest([case.digest, fixture.digest, rules]),
            fixture_digest=fixture.digest,
            input_digest=digest([*given(case).values(), fixture.surroundings_digest]),
            graders=graders_for(case, canaries=_may_have_canaries(fixture), rules=self.rules),
            trials=trials,
            fixture=FileFixture(
                fixture,
                case=case,
                config=self.spec.config,
                tools_mode=self.spec.tools,
                scratch=self.scratch,
                sources=self._sources_of(fixture),
            ),
            secrets=fixture.secrets,
            rules=self.rules,
            order=order,
        )

    def _sources_of(self, spec: FixtureSpec) -> Sources | None:
        """Taken once a fixture; None where a reset reads no file."""
        if spec.database is None and spec.files is None and spec.function is None:
            return None
        if spec.name not in self._sources:
            self._sources[spec.name] = Sources.of(spec)
        return self._sources[spec.name]

    def _limited(self, case: Case) -> Case:
        timeout = self.request.timeout_s
        if timeout is None:
            return case
        return case.model_copy(update={"limits": case.limits.model_copy(update={"timeout_s": float(timeout)})})

    def _trials(self, case: Case) -> int:
        trials = 1 if self.request.debug else self.request.trials or case.thresholds.trials
        try:
            case.thresholds.successes_needed(trials)
        except ValueError as error:
            raise UsageError(f"case {case.id}: {error}") from error
        return trials


def _may_have_canaries(fixture: FixtureSpec) -> bool:
    """Whether trials may have secrets to look for: declared ones, or those that a Python fixture sets as it runs."""
    return bool(fixture.secrets) or fixture.function is not None


def given(case: Case) -> dict[str, Any]:
    """What the case itself gives the agent, and who talks to it, as JSON data by name. Nothing that is expected."""
    return {
        "input": case.input,
        "turns": [turn.user for turn in case.turns],
        "user": None if case.user is None else case.user.model_dump(mode="json"),
        "attachments": [attachment.model_dump(mode="json") for attachment in case.attachments],
    }


def run_id(now: datetime) -> str:
    """An id for a run that begins now."""
    return f"{now:%Y%m%dT%H%M%SZ}-{secrets.token_hex(3)}"


def _info(
    found: Selected,
    request: Request,
    spec: AgentSpec,
    agent: Agent[TrialEnvironment],
    planned: Sequence[PlannedCase],
) -> RunInfo:
    now, project = datetime.now(UTC), found.project
    suites = sorted({item.case.suite for item in planned})
    return RunInfo(
        run_id=run_id(now),
        build_id=request.build_id or _build_id(request.build, project.build_id),
        agent=spec.model_dump(mode="json", exclude_defaults=True),
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
        judge={} if project.judge is None else project.judge.model_dump(mode="json", exclude_none=True),
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
_SHOWN = (*_SELECTING, *_RUNNING, *_SPENDING)
"""Options that go on record."""


def _options(request: Request) -> Mapping[str, Any]:
    asked = {name: value for name in _SHOWN if (value := getattr(request, name)) not in (None, (), "", False)}
    asked |= {name: str(value.absolute()) for name, value in asked.items() if isinstance(value, Path)}
    return asked if request.ids is None else asked | {"named_cases_only": True}


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
