"""Everything wrong in a project that can be known before its agent is called: its files, and the code they name.

The project's modules are imported (agent, builds, own graders, simulated users, observers, Python fixtures), and what
they print goes to standard error. In the end a run of all cases is planned: what it would refuse, this reports.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from seatrial.agents.detect import load_agent
from seatrial.core.case import Case
from seatrial.core.fixture import FixtureSpec
from seatrial.core.project import AgentSpec, Project
from seatrial.environment.failure import FixtureError
from seatrial.environment.python_fixture import fixture_function
from seatrial.errors import Diagnostic, InputError, NothingSelected, UsageError
from seatrial.harness.importing import forget_projects, importable
from seatrial.harness.own_code import called
from seatrial.harness.plan import plan
from seatrial.harness.planner import Planner
from seatrial.harness.request import Request, with_environment
from seatrial.harness.scratch import Scratch
from seatrial.loading.check import examine
from seatrial.loading.fixtures import fixture_names, load_fixture
from seatrial.loading.located import Spot, in_file_order, problem_at
from seatrial.loading.policies import load_rules
from seatrial.loading.project_folder import PROJECT_FILE
from seatrial.loading.settings import places
from seatrial.registry import load_object
from seatrial.runner.capture import printing_to_stderr

__all__ = ["check_project"]


def check_project(folder: Path) -> tuple[Diagnostic, ...]:
    """Every error and warning of a project, by file and line; empty when all is well.

    Raises UsageError when the folder is no project.
    """
    checked = examine(folder)
    found = list(checked.diagnostics)
    if checked.project is not None:
        forget_projects()
        with importable(checked.project.root), printing_to_stderr():
            found += _agents(checked.project)
            found += _fixtures(checked.project)
            found += _cases(checked.project, checked.cases)
            if checked.project.agent is not None and not any(each.severity == "error" for each in found):
                found += _refused(folder)
    return tuple(sorted(dict.fromkeys(found), key=in_file_order))


def _agents(project: Project) -> Iterator[Diagnostic]:
    """The project's agent and builds that are no agents."""
    found = places(Path(project.root))
    agents = {} if project.agent is None else {"agent": project.agent}
    for key, spec in {**agents, **{f"builds.{name}": spec for name, spec in project.builds.items()}}.items():
        try:
            load_agent(spec, project.root)
        except UsageError as error:
            yield problem_at(_place(key, found), "bad-agent", f"`{key}`: {error}")


def _place(key: str, found: dict[str, Spot]) -> Spot:
    """Where an agent is named, in its short or its long form."""
    name = key.partition(".")[2]
    quoted = f'builds."{name}"' if "." in name else key
    below = [spot for each, spot in found.items() if each.startswith(f"{quoted}.")]
    return found.get(quoted) or found.get(f"{quoted}.target") or next(iter(below), Spot(PROJECT_FILE))


def _cases(project: Project, cases: Sequence[Case]) -> Sequence[Diagnostic]:
    """What a plan of these cases would refuse, all of it."""
    try:
        request = with_environment(Request())
        planner = Planner(project, request, project.agent or AgentSpec(), load_rules(project), Scratch())
        planner.all(cases)
    except InputError as error:
        return error.diagnostics
    except UsageError as error:
        return (Diagnostic("usage", str(error)),)
    return ()


def _refused(folder: Path) -> Sequence[Diagnostic]:
    """Whatever else keeps a run of all cases from beginning."""
    try:
        plan(Request(project=folder))
    except NothingSelected:
        return ()  # a project may have no cases yet
    except InputError as error:
        return error.diagnostics
    except UsageError as error:
        return (Diagnostic("usage", str(error)),)
    return ()


# --- fixtures ------------------------------------------------------------------------------------------------------


def _fixtures(project: Project) -> Iterator[Diagnostic]:
    """Code that fixtures name and that is not there. Fixtures that cannot be read are reported elsewhere."""
    with contextlib.suppress(InputError):
        for name in fixture_names(project):
            with contextlib.suppress(InputError):
                yield from _problems_with_fixture(load_fixture(project, name))


def _problems_with_fixture(spec: FixtureSpec) -> Iterator[Diagnostic]:
    where = f"fixtures/{spec.name}/fixture.yaml" if spec.function is None else f"fixtures/{spec.name}.py"
    for message in _bad_parts(spec):
        yield Diagnostic("bad-fixture", message, where)


def _bad_parts(spec: FixtureSpec) -> Iterator[str]:
    if spec.function is not None:
        try:
            fixture_function(spec.function, spec.folder)
        except FixtureError as error:
            yield str(error)
    for key, observer in spec.outcome.items():
        try:
            if observer.function is not None:
                called(observer.function, "observer")
        except UsageError as error:
            yield f"`outcome.{key}.function`: {error}"
    for path in spec.watch.globals:
        try:
            load_object(path)
        except UsageError as error:
            yield f"`watch.globals`: {error}"
