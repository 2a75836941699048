"""Cases with what their trials need: fixtures, graders, permission rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.encoding import digest
from seatrial.core.fixture import FixtureSpec
from seatrial.core.model_json import json_of
from seatrial.core.permissions import Rules
from seatrial.core.ports import PlannedCase
from seatrial.core.project import AgentSpec, Project
from seatrial.environment.sources import Sources
from seatrial.environment.workspace import FileFixture
from seatrial.errors import Diagnostic, InputError, UsageError
from seatrial.graders import graders_for
from seatrial.harness.own_code import at_first_place, problem_at_case, problems_with_code
from seatrial.harness.request import Request
from seatrial.harness.selecting import Selected
from seatrial.loading.fixtures import FixtureFiles, fixture_for
from seatrial.loading.policies import load_rules

__all__ = ["Planner", "given", "planned_cases"]


def planned_cases(
    found: Selected, request: Request, spec: AgentSpec, scratch: Callable[[], Path]
) -> tuple[PlannedCase, ...]:
    """The selected cases with fixtures and graders, in their order; called while the project is importable."""
    with collector_paused():
        return Planner(found.project, request, spec, load_rules(found.project), scratch).all(found.cases)


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
        "user": None if case.user is None else json_of(case.user),
        "attachments": [json_of(attachment) for attachment in case.attachments],
    }


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
