"""Case files -> cases, or every problem of every file at once.

`case_files` says what is a case file and what it holds.

- A case's suite is its own `suite`, else the file defaults', else the first folder below `cases/` (`cases` for a file
  that lies in it directly).
- Values merge case > file defaults > suite > project: mappings deeply, lists and everything else whole. So
  `graders: []` is no grader, while a case without the key takes the suite's or the project's.
- An id is unique over the project, compared after NFKC and trimming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade_names import name_problems
from seatrial.core.ids import normalised_id, problem_with_id
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.attachments import attachments_of
from seatrial.loading.case_files import Entry, Report, case_files, read_entries
from seatrial.loading.files import is_there
from seatrial.loading.fixtures import FIXTURE_MATCHERS, fixture_names, problem_with_overrides, what_was_meant
from seatrial.loading.located import (
    Map,
    Seq,
    Spot,
    each_at,
    in_file_order,
    located,
    merged,
    plain,
    problem_at,
    shown,
    spot_at,
    without_echoes,
)
from seatrial.loading.matrix import expansions, mentions
from seatrial.loading.policies import PERMISSIONS
from seatrial.loading.rules_of_cases import matcher_problems, problems_with_case
from seatrial.loading.short_form import SHORT_KEYS, long_form
from seatrial.loading.validation import problems_in, text_problem

__all__ = ["LoadedCases", "load_cases", "read_cases"]

T = TypeVar("T")
_OURS = ("path", "line", "base_id", "attachments")
"""Fields of a case that are filled in here, never written by people."""
_TOP_KEYS = (*SHORT_KEYS, "matrix")


@dataclass(frozen=True)
class LoadedCases:
    """Every case of a project."""

    cases: tuple[Case, ...]
    """By file, then as they stand in it."""
    warnings: tuple[Diagnostic, ...] = ()
    hidden: frozenset[str] = frozenset()
    """Ids of the cases from the hidden folder: only their ids and verdicts are shown."""


def load_cases(project: Project) -> LoadedCases:
    """The cases of a project, hidden ones included.

    Raises InputError with all problems of all files. A file without cases is a warning.
    """
    loaded, errors = read_cases(project)
    if errors:
        raise InputError(errors)
    return loaded


def read_cases(project: Project) -> tuple[LoadedCases, tuple[Diagnostic, ...]]:
    """(the cases that could be made, all problems of all files in their order).

    Where there are problems, a case may hold a stand-in for a value that could not be read: it is good for finding
    more that is wrong, not for running.
    """
    with collector_paused():
        return _load(project)


def _load(project: Project) -> tuple[LoadedCases, tuple[Diagnostic, ...]]:
    report = Report()
    entries = read_entries(case_files(project, report), report)
    layers = _Layers(project, report.errors)
    cases: list[Case] = []
    hidden: set[str] = set()
    for entry in entries:
        found = _cases_of(entry, layers, report)
        cases.extend(found)
        if entry.file.hidden:
            hidden.update(case.id for case in found)
    errors = tuple(sorted(without_echoes(report.errors), key=in_file_order))
    return LoadedCases(tuple(cases), tuple(dict.fromkeys(report.warnings)), frozenset(hidden)), errors


class _Layers:
    """What lies below a case, file defaults over its suite's over the project's, and what lies beside it."""

    def __init__(self, project: Project, problems: list[Diagnostic]) -> None:
        self._problems = problems
        self.root = Path(project.root)
        self.fixtures = self._attempt(lambda: frozenset(fixture_names(project)))
        """The names of all fixtures; None where they cannot be read."""
        self.rules = self._attempt(lambda: is_there(self.root / PERMISSIONS, PERMISSIONS))
        """Whether there is a file of permission rules."""
        self._suites = {name: self._layer(suite.defaults) for name, suite in project.suites.items()}
        self._project = self._layer(project.defaults)
        if "retries" in project.model_fields_set:
            at = self._project.at
            retries = located(project.retries.model_dump(exclude_unset=True), at)
            self._project = merged(Map(at).having("retries", retries), self._project)
        self._merged: dict[tuple[str, int], Map] = {}

    def _attempt(self, read: Callable[[], T]) -> T | None:
        try:
            return read()
        except InputError as error:
            self._problems.extend(error.diagnostics)
            return None

    def _layer(self, written: dict[str, Any]) -> Map:
        layer: Map = located(written, Spot("seatrial.yaml"))
        return long_form(layer, self._problems)

    def below(self, suite: str, defaults: Map) -> Map:
        """The merged layers, made once a suite and file."""
        key = (suite, id(defaults))
        if key not in self._merged:
            project_and_suite = merged(self._project, self._suites.get(suite, Map()))
            self._merged[key] = merged(project_and_suite, defaults)
        return self._merged[key]


def _cases_of(entry: Entry, layers: _Layers, report: Report) -> list[Case]:
    """The cases that one entry stands for; problems go into the report."""
    own, errors = entry.value, len(report.errors)
    _check_id(own, report)
    suite = own.get("suite", entry.defaults.get("suite", entry.file.suite))
    below = layers.below(suite if isinstance(suite, str) else "", entry.defaults)
    whole = merged(below, own) if below else own
    if "suite" not in whole:
        whole = whole.having("suite", suite)
    _warn_of_variables(whole, report)
    cases = []
    for suffix, values in expansions(whole, report.errors):
        report.errors.extend(problems_with_case(values))
        report.errors.extend(_fixture_problems(values, layers.fixtures, layers.root))
        case = _case(values, suffix, entry, layers, report.errors)
        if case is not None:
            cases.append(case)
    report.errors.extend(_repeated_expansions(cases, whole))
    return cases if len(report.errors) == errors else []


def _check_id(own: Map, report: Report) -> None:
    name = own.get("id")
    if not isinstance(name, str):
        return  # validation says so
    spot = own.values_at["id"]
    problem = problem_with_id(name)
    if problem is not None:
        report.errors.append(problem_at(spot, "bad-id", f"{name!a} cannot be an id: {problem}"))
    first = report.ids.setdefault(normalised_id(name), spot)
    if first is not spot:
        message = f"the id {name!a} is taken by the case at {first.place}"
        hint = "ids are compared after NFKC and trimming" if problem is not None else ""
        report.errors.append(problem_at(spot, "duplicate-id", message, hint))


def _repeated_expansions(cases: list[Case], whole: Map) -> Iterator[Diagnostic]:
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            yield problem_at(whole.values_at["matrix"], "duplicate-id", f"`matrix` makes {case.id!r} twice")
        seen.add(case.id)


def _warn_of_variables(whole: Map, report: Report) -> None:
    if whole.get("matrix") is None:
        for name, spot in mentions(whole):
            message = f"`${{{ascii(name)[1:-1]}}}` stays as it is, for the case has no matrix"
            report.warnings.append(problem_at(spot, "no-matrix", message, severity="warning"))


def _case(values: Map, suffix: str, entry: Entry, layers: _Layers, problems: list[Diagnostic]) -> Case | None:
    count = len(problems)
    unknown = [key for key in _OURS if key in values]
    problems.extend(problem_at(values.keys_at[key], "unknown-key", f"unknown key {key!r}") for key in unknown)
    problems.extend(_problems_with_messages(values))
    data = plain(values)
    base = data.get("id")
    if suffix and isinstance(base, str):
        data.update(id=base + suffix, base_id=base)
    data.update(path=entry.file.shown, line=values.at.line)
    data["attachments"] = attachments_of(values.get("input"), entry.file.folder, layers.root, problems)
    try:
        case = Case.model_validate(data)
    except ValidationError as error:
        problems.extend(problems_in(error, Case, values, top_keys=_TOP_KEYS))
        return None
    problems.extend(_problems_with_numbers(case, values))
    problems.extend(_problems_with_overrides(case, values))
    problems.extend(_problems_with_names(case, values, rules=layers.rules))
    return case if len(problems) == count else None


def _problems_with_messages(case: Map) -> Iterator[Diagnostic]:
    """`message` and `messages` of an input must be text; the rest of an input may be any data."""
    source = case.get("input")
    if not isinstance(source, Map):
        return
    if "message" in source and not isinstance(source["message"], str):
        yield text_problem("input.message", source["message"], source.values_at["message"])
    messages = source.get("messages", Seq())
    if not isinstance(messages, Seq):
        spot = source.values_at["messages"]
        yield problem_at(spot, "wrong-value", f"`input.messages` should be a list, not {shown(messages, spot)}")
        return
    for number, (message, spot) in enumerate(zip(messages, messages.values_at, strict=True)):
        content = message.get("content", "") if isinstance(message, Map) else message
        at = spot_at(message, ("content",), spot)[0] if isinstance(message, Map) else spot
        if not isinstance(content, (str, Seq)):
            yield text_problem(f"input.messages[{number}]", content, at)


def _fixture_problems(values: Map, fixtures: frozenset[str] | None, root: Path) -> Iterator[Diagnostic]:
    for name, spot in each_at(values, ("environment", "fixture")):
        if isinstance(name, str) and fixtures is not None and name not in fixtures:
            hint = what_was_meant(name, sorted(fixtures), root)
            yield problem_at(spot, "unknown-fixture", f"there is no fixture {name!a}", hint)


def _problems_with_numbers(case: Case, values: Map) -> Iterator[Diagnostic]:
    try:
        case.thresholds.successes_needed(case.thresholds.trials)
    except ValueError as error:
        spot = spot_at(values, ("thresholds", "required_successes"))[0]
        yield problem_at(spot, "too-many-successes", str(error))


def _problems_with_overrides(case: Case, values: Map) -> Iterator[Diagnostic]:
    """What a fixture could not be like, in the keys beside `fixture`."""
    overrides = case.environment.overrides()
    if overrides:
        yield from matcher_problems(values, [("environment", *pattern) for pattern in FIXTURE_MATCHERS])
        for error in problem_with_overrides(overrides):
            yield from problems_in(error, FixtureSpec, values, below=("environment",))


def _problems_with_names(case: Case, values: Map, *, rules: bool | None) -> Iterator[Diagnostic]:
    """Names of grades that must be wrong, whatever own graders and the fixture turn out to be."""
    own = [use.name for use in case.graders]
    for problem in name_problems(case, own, permissions=rules or None):
        yield problem_at(spot_at(values, problem.where)[0], problem.rule, problem.message, problem.hint)
