"""Case files as entries, one a case that is written: found, read, and taken apart into defaults and cases.

Files below `cases/` (or the hidden folder) are YAML, JSON, JSON lines or CSV (`csv_text` tells the columns). YAML and
JSON hold a case, a list of cases, or `{defaults, cases}`; `version: 1` may stand beside them. Folders and files whose
names begin with `.` or `_` are passed over, and so are files that a case names as attachments. Symbolic links are
followed; a loop of them, and whatever cannot be read, is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from seatrial.core.case import Case
from seatrial.core.project import Project
from seatrial.errors import Diagnostic, InputError, did_you_mean
from seatrial.loading.attachments import attached_paths
from seatrial.loading.csv_text import read_csv
from seatrial.loading.files import is_there, read_text, shown_path
from seatrial.loading.folders import files_below
from seatrial.loading.json_text import read_json, read_json_lines
from seatrial.loading.located import Map, Seq, Spot, problem_at, shown
from seatrial.loading.short_form import SHORT_KEYS, long_form
from seatrial.loading.validation import kinds_at
from seatrial.loading.yaml import read_yaml

__all__ = ["CASE_SUFFIXES", "CaseFile", "Entry", "Report", "case_files", "case_kinds", "read_entries"]

CASE_SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson", ".csv")


@dataclass(frozen=True)
class CaseFile:
    """A case file before it is read."""

    path: Path
    shown: str
    suite: str
    hidden: bool

    @cached_property
    def folder(self) -> Path:
        return self.path.parent


@dataclass(frozen=True)
class Entry:
    """A case as written, in the long form, with the defaults of its file."""

    value: Map
    defaults: Map
    file: CaseFile


@dataclass
class Report:
    """What was found wrong or doubtful so far; the same problem in shared defaults counts once."""

    errors: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    ids: dict[str, Spot] = field(default_factory=dict)
    """Where each id was first written, by its normalised form."""


def case_files(project: Project, report: Report) -> list[CaseFile]:
    """The case files of a project, hidden ones last."""
    root = Path(project.root)
    files: list[CaseFile] = []
    for name, hidden in (("cases", False), (project.hidden_cases, True)):
        if name and _is_there(root / name, hidden, root, report):
            files.extend(_files_in(root / name, root, report, hidden=hidden))
    return files


def _is_there(folder: Path, hidden: bool, root: Path, report: Report) -> bool:
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


def _files_in(folder: Path, root: Path, report: Report, *, hidden: bool) -> Iterator[CaseFile]:
    shown_folder = shown_path(folder, root)
    for name in files_below(folder, root, report.errors, skipped=lambda name: name.startswith((".", "_"))):
        first, slash, _ = name.partition("/")
        if name.lower().endswith(CASE_SUFFIXES):
            yield CaseFile(folder / name, f"{shown_folder}/{name}", first if slash else folder.name, hidden)


def read_entries(files: list[CaseFile], report: Report) -> list[Entry]:
    """The entries of all files. What is an attachment is no case file, however it reads."""
    read = [_read_file(file) for file in files]
    attached = {
        path for entries, _ in read for entry in entries for path in attached_paths(entry.value, entry.file.folder)
    }
    entries: list[Entry] = []
    for file, (found, file_report) in zip(files, read, strict=True):
        if not (attached and file.path.resolve() in attached):
            entries.extend(found)
            report.errors.extend(file_report.errors)
            report.warnings.extend(file_report.warnings)
    return entries


def _read_file(file: CaseFile) -> tuple[list[Entry], Report]:
    """The entries of a file, and what is wrong with it; what could be read of it is checked all the same."""
    report = Report()
    try:
        document = _read_document(file, report.errors)
    except InputError as error:
        report.errors.extend(error.diagnostics)
        return [], report
    defaults, cases = _parts(document, file, report)
    entries = [
        Entry(long_form(case, report.errors), defaults, file) for case in _mappings(cases, "a case", report.errors)
    ]
    if not cases and not report.errors:
        message = "there is no case in this file"
        report.warnings.append(Diagnostic("no-cases", message, file.shown, severity="warning"))
    return entries, report


def _read_document(file: CaseFile, problems: list[Diagnostic]) -> Any:
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


def _parts(document: Any, file: CaseFile, report: Report) -> tuple[Map, Seq]:
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
