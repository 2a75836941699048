"""Case files -> cases, or every problem of every file at once.

A file below `cases/` (or the hidden folder) is YAML, JSON, JSON lines or CSV (`csv_text` tells the columns). YAML and
JSON hold a case, a list of cases, or `{defaults, cases}`; `version: 1` may stand beside them. Folders and files whose
names begin with `.` or `_` are passed over, and so are files that a case names as attachments. Symbolic links are
followed; a loop of them, and whatever cannot be read, is an error.

- A case's suite is its own `suite`, else the file defaults', else the first folder below `cases/` (`cases` for a file
  that lies in it directly).
- Values merge case > file defaults > suite > project: mappings deeply, lists and everything else whole. So
  `graders: []` is no grader, while a case without the key takes the suite's or the project's.
- An id is unique over the project, compared after NFKC and trimming.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.collecting import collector_paused
from seatrial.core.fixture import FixtureSpec
from seatrial.core.grade_names import name_problems
from seatrial.core.ids import normalised_id, problem_with_id
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.attachments import attached_paths, attachments_of
from seatrial.loading.csv_text import read_csv
from seatrial.loading.files import is_there, read_text, shown_path
from seatrial.loading.fixtures import FIXTURE_MATCHERS, fixture_names, problem_with_overrides, what_was_meant
from seatrial.loading.folders import files_below
from seatrial.loading.json_text import read_json, read_json_lines
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
from seatrial.loading.validation import kinds_at, problems_in, text_problem
from seatrial.loading.yaml import read_yaml

__all__ = ["CASE_SUFFIXES", "LoadedCases", "case_kinds", "load_cases", "read_cases"]

T = TypeVar("T")
CASE_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv")
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


@dataclass(frozen=True)
class _File:
    """A case file before it is read."""

    path: Path
    shown: str
    suite: str
    hidden: bool

    @cached_property
    def folder(self) -> Path:
        return self.path.parent


@dataclass(frozen=True)
class _Entry:
    """A case as written, in the long form, with the defaults of its file."""

    value: Map
    defaults: Map
    file: _File


@dataclass
class _Report:
    """What was found wrong or doubtful so far; the same problem in shared defaults counts once."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    ids: dict[str, Spot] = field(default_factory=dict)
    """Where each id was first written, by its normalised form."""


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
    report = _Report()
    entries = _read_entries(_case_files(project, report), report)
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


# --- files ---------------------------------------------------------------------------------------------------------


def _case_files(project: Project, report: _Report) -> list[_File]:
    root = Path(project.root)
    files: list[_File] = []
    for name, hidden in (("cases", False), (project.hidden_cases, True)):
        if name and _is_there(root / name, hidden, root, report):
            files.extend(_files_in(root / name, root, report, hidden=hidden))
    return files


def _is_there(folder: Path, hidden: bool, root: Path, report: _Report) -> bool:
    """Whether there is a folder of cases. A project may have none, but hidden ones that it names must exist."""
    try:
        found = is_there(folder, shown_path(folder, root))
    except InputError as error:
        report.errors.extend(error.diagnostics)
        return False
    if hidden and not found:
        message = f"the folder of hidden cases {shown_path(folder, root)!a} does not exist"
        report.errors.append(Diagnostic("hidden-cases", message, "seatrial.yaml"))
    return found


def _files_in(folder: Path, root: Path, report: _Report, *, hidden: bool) -> Iterator[_File]:
    shown_folder = shown_path(folder, root)
    for name in files_below(folder, root, report.errors, skipped=lambda name: name.startswith((".", "_"))):
        first, slash, _ = name.partition("/")
        if name.lower().endswith(CASE_SUFFIXES):
            yield _File(folder / name, f"{shown_folder}/{name}", first if slash else folder.name, hidden)


def _read_entries(files: list[_File], report: _Report) -> list[_Entry]:
    """The entries of all files. What is an attachment is no case file, however it reads."""
    read = [_read_file(file) for file in files]
    attached = {
        path for entries, _ in read for entry in entries for path in attached_paths(entry.value, entry.file.folder)
    }
    entries: list[_Entry] = []
    for file, (found, file_report) in zip(files, read, strict=True):
        if not (attached and file.path.resolve() in attached):
            entries.extend(found)
            report.errors.extend(file_report.errors)
            report.warnings.extend(file_report.warnings)
    return entries


def _read_file(file: _File) -> tuple[list[_Entry], _Report]:
    """The entries of a file, and what is wrong with it; what could be read of it is checked all the same."""
    report = _Report()
    try:
        document = _read_document(file, report.errors)
    except InputError as error:
        report.errors.extend(error.diagnostics)
        return [], report
    defaults, cases = _parts(document, file, report)
    entries = [
        _Entry(long_form(case, report.errors), defaults, file) for case in _mappings(cases, "a case", report.errors)
    ]
    if not cases and not report.errors:
        message = "there is no case in this file"
        report.warnings.append(Diagnostic("no-cases", message, file.shown, severity="warning"))
    return entries, report


def _read_document(file: _File, problems: list[Diagnostic]) -> Any:
    text = read_text(file.path, file.shown)
    return _READERS[file.path.suffix.lower()](text, file.shown, problems)


_READERS: dict[str, Callable[[str, str, list[Diagnostic]], Any]] = {
    ".yaml": read_yaml,
    ".yml": read_yaml,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".csv": lambda text, path, problems: read_csv(text, path, case_kinds, problems),
}


def case_kinds(name: str) -> frozenset[str]:
    """What a key of a case takes (`validation.kinds_at`), by its dotted long or short name."""
    first, *rest = name.split(".")
    path = (*SHORT_KEYS.get(first, (first,)), *rest)
    if (path in (("input", "message"), ("input",)) and first != "input") or path == ("input", "message"):
        return frozenset(("text",))
    if path == ("matrix",):
        return frozenset(("list", "mapping"))
    return kinds_at(Case, path)


def _parts(document: Any, file: _File, report: _Report) -> tuple[Map, Seq]:
    """(file defaults in the long form, cases) of a document in any of its shapes."""
    top = Spot(file.shown, 1, 1)
    if isinstance(document, Map):
        document = _without_version(document, report.errors)
    if document is None or isinstance(document, Seq):
        return Map(top), document if isinstance(document, Seq) else Seq(top)
    if not isinstance(document, Map):
        message = f"a file of cases holds a case, a list of cases or {{defaults, cases}}, not {shown(document)}"
        report.errors.append(problem_at(top, "wrong-value", message))
        return Map(top), Seq(top)
    if "cases" not in document and "defaults" not in document:
        single = Seq(document.at)
        if document:
            single.put(document, document.at)
        return Map(top), single
    return _wrapped_parts(document, report.errors)


def _without_version(document: Map, problems: list[Diagnostic]) -> Map:
    if "version" in document and (document["version"] != 1 or isinstance(document["version"], bool)):
        spot = document.values_at["version"]
        message = f"`version` should be 1, not {shown(document['version'], spot)}"
        problems.append(problem_at(spot, "wrong-value", message))
    return document.without("version")


def _wrapped_parts(document: Map, problems: list[Diagnostic]) -> tuple[Map, Seq]:
    for key, _, key_at, _ in document.entries():
        if key not in ("defaults", "cases"):
            hint = did_you_mean(key, ["defaults", "cases", "version"])
            message = f"unknown key {key!r} beside `cases`; what all cases share stands under `defaults`"
            problems.append(problem_at(key_at, "unknown-key", message, hint))
    defaults, cases = document.get("defaults", Map(document.at)), document.get("cases", Seq(document.at))
    if not isinstance(defaults, Map):
        problems.append(_should_be("defaults", "a mapping", document))
        defaults = Map(document.at)
    if not isinstance(cases, Seq):
        problems.append(_should_be("cases", "a list", document))
        cases = Seq(document.at)
    if "id" in defaults:
        spot = defaults.keys_at["id"]
        problems.append(problem_at(spot, "unknown-key", "an id belongs to one case, not to `defaults`"))
    return long_form(defaults.without("id"), problems), cases


def _should_be(key: str, wanted: str, owner: Map) -> Diagnostic:
    spot = owner.values_at[key]
    return problem_at(spot, "wrong-value", f"`{key}` should be {wanted}, not {shown(owner[key], spot)}")


def _mappings(values: Seq, what: str, problems: list[Diagnostic]) -> Iterator[Map]:
    for value, spot in zip(values, values.values_at, strict=True):
        if isinstance(value, Map):
            yield value
        else:
            problems.append(problem_at(spot, "wrong-value", f"{what} is a mapping, not {shown(value, spot)}"))


# --- one entry -----------------------------------------------------------------------------------------------------


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


def _cases_of(entry: _Entry, layers: _Layers, report: _Report) -> list[Case]:
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


def _check_id(own: Map, report: _Report) -> None:
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


def _warn_of_variables(whole: Map, report: _Report) -> None:
    if whole.get("matrix") is None:
        for name, spot in mentions(whole):
            message = f"`${{{ascii(name)[1:-1]}}}` stays as it is, for the case has no matrix"
            report.warnings.append(problem_at(spot, "no-matrix", message, severity="warning"))


def _case(values: Map, suffix: str, entry: _Entry, layers: _Layers, problems: list[Diagnostic]) -> Case | None:
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
