"""From what a project's files and the environment say to a valid `Project`, or all that is wrong with it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.project import AgentSpec, Project, SuiteSpec
from seatrial.errors import Diagnostic, UsageError
from seatrial.loading.located import Map, Seq, Spot, plain, problem_at, shown, spot_at
from seatrial.loading.project_file import Written, input_error, read_project
from seatrial.loading.project_folder import find_root
from seatrial.loading.rules_of_cases import problem_with_pattern
from seatrial.loading.short_form import SHORT_KEYS, long_form
from seatrial.loading.validation import problems_in

__all__ = ["agent_spec", "load_project", "validated"]

_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)


def load_project(
    start: Path | None = None,
    *,
    folder: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> Project:
    """The project's settings. `overrides` are texts `key=value`, as after `--set`.

    Raises UsageError when there is no project and InputError with every problem of its file. An agent is not required:
    it may be given when running. Nothing is imported and the environment is not changed.
    """
    read = read_project(find_root(folder, start=start), overrides, os.environ if environ is None else environ)
    project, problems = validated(read)
    if problems or project is None:
        raise input_error(problems, read.secrets)
    return project


def agent_spec(text: str) -> AgentSpec:
    """What `--agent` names: `module:object` or a URL. Raises UsageError."""
    problem = _problem_with_target(text)
    if problem is not None:
        raise UsageError(problem)
    return AgentSpec(target=text)


def validated(read: Written) -> tuple[Project | None, list[Diagnostic]]:
    """What was written as a project, and everything wrong with it; None where it is none at all."""
    problems = list(read.problems)
    values = _normalised(read.values, problems)
    for key in ("root", "secrets"):
        if key in values:
            problems.append(problem_at(values.keys_at[key], "unknown-key", f"unknown key {key!r}"))
            values = values.without(key)
    project = _parsed(values, problems)
    if project is not None:
        project = project.model_copy(update={"root": str(read.root), "secrets": read.secrets})
        problems.extend(_pattern_problems(project, values))
    return project, problems


def _parsed(values: Map, problems: list[Diagnostic]) -> Project | None:
    try:
        return Project.model_validate(plain(values))
    except ValidationError as error:
        retried = _as_texts(values, error)
        if retried is not None:
            return _parsed(retried, problems)
        problems.extend(_with_homes(problem, values) for problem in problems_in(error, Project, values))
        return None


def _as_texts(values: Map, error: ValidationError) -> Map | None:
    """`values` with guessed types undone where text is wanted; None when there is nothing to undo."""
    result = values
    for entry in error.errors(include_url=False):
        spot, value, loc = spot_at(values, entry["loc"])
        if entry["type"] == "string_type" and spot.variable and not isinstance(value, (str, dict, list)):
            result = _replaced(result, loc, spot.written)
    return None if result is values else result


def _replaced(value: Any, loc: tuple[str | int, ...], new: Any) -> Any:
    if not loc:
        return new
    first, *rest = loc
    if isinstance(value, Map):
        return value.having(str(first), _replaced(value[str(first)], tuple(rest), new))
    sequence = Seq(value.at)
    for number, (item, spot) in enumerate(zip(value, value.values_at, strict=True)):
        sequence.put(_replaced(item, tuple(rest), new) if number == first else item, spot)
    return sequence


def _with_homes(problem: Diagnostic, values: Map) -> Diagnostic:
    """A hint for keys of cases that stand at the top of the file."""
    if problem.rule != "unknown-key":
        return problem
    keys = {*Case.model_fields, *SHORT_KEYS}
    at_top = [
        key
        for key in keys & set(values)
        if (values.keys_at[key].line, values.keys_at[key].column) == (problem.line, problem.column)
    ]
    if not at_top:
        return problem
    return Diagnostic(
        problem.rule,
        problem.message,
        problem.path,
        problem.line,
        problem.column,
        "what cases share stands under `defaults`",
    )


def _normalised(values: Map, problems: list[Diagnostic]) -> Map:
    for key in ("agent",):
        if key in values:
            values = values.having(key, _agent(values[key], key, values.values_at[key], problems))
    builds = values.get("builds")
    if isinstance(builds, Map):
        for name, value, _, spot in list(builds.entries()):
            builds = builds.having(name, _agent(value, f"builds.{name}", spot, problems))
        values = values.having("builds", builds)
    if isinstance(values.get("suites"), Map):
        values = values.having("suites", _suites(values["suites"], problems))
    if isinstance(values.get("defaults"), Map):
        problems.extend(_problems_with_defaults(values["defaults"]))
    return values


def _agent(value: Any, key: str, at: Spot, problems: list[Diagnostic]) -> Any:
    """An agent in the long form: a text is its target, a list no agent."""
    spec = Map(at).having("target", value) if isinstance(value, str) else value
    if not isinstance(spec, Map):
        return spec
    target = spec.get("target")
    if ("target" in spec) == ("command" in spec):
        message = f"`{key}` has one of `target` and `command`"
        problems.append(
            problem_at(at, "wrong-value", message, 'write module:object, a URL, or {command: ["...", ...]}')
        )
    elif spec.get("kind") == "otel":  # a file or folder of spans, too
        return spec
    elif isinstance(target, str) and (problem := _problem_with_target(target)) is not None:
        problems.append(problem_at(spec.values_at["target"], "wrong-value", f"`{key}`: {problem}"))
    return spec


def _problem_with_target(text: str) -> str | None:
    if _IMPORT_PATH.fullmatch(text) or _URL.fullmatch(text):
        return None
    return f"{text!r} is no agent; write module:object (such as my_agent:build) or a URL"


def _suites(suites: Map, problems: list[Diagnostic]) -> Map:
    """Every suite split into its own settings and the defaults of its cases."""
    result = Map(suites.at)
    for name, entry, key_at, spot in suites.entries():
        if entry is None or isinstance(entry, Map):
            result.put(name, _suite(entry or Map(spot), problems), key_at, spot)
        else:
            problems.append(
                problem_at(spot, "wrong-value", f"`suites.{name}` should be a mapping, not {shown(entry, spot)}")
            )
    return result


def _suite(entry: Map, problems: list[Diagnostic]) -> Map:
    own = [key for key in SuiteSpec.model_fields if key != "defaults"]
    defaults = entry.without(*own)
    problems.extend(_problems_with_defaults(defaults, extra=own))
    result = entry.without(*defaults)
    return result.having("defaults", defaults) if defaults else result


def _problems_with_defaults(defaults: Map, extra: Sequence[str] = ()) -> Iterator[Diagnostic]:
    """What is wrong in defaults taken alone; what a case has to add to them is no problem."""
    problems: list[Diagnostic] = []
    for key in ("id", "suite"):
        if key in defaults:
            message = f"`{key}` belongs to a case or its file, not here"
            problems.append(problem_at(defaults.keys_at[key], "unknown-key", message))
    written = long_form(defaults.without("id", "suite", "matrix"), problems)
    yield from problems
    try:
        Case.model_validate({"id": "default", **plain(written)})
    except ValidationError as error:
        top_keys = [*SHORT_KEYS, *extra]
        found = problems_in(error, Case, written, top_keys=top_keys)
        yield from (problem for problem in found if problem.rule == "unknown-key" or " should be " in problem.message)


def _pattern_problems(project: Project, values: Map) -> Iterator[Diagnostic]:
    for number, pattern in enumerate(project.redact):
        problem = problem_with_pattern(pattern)
        if problem is not None:
            yield problem_at(spot_at(values, ("redact", number))[0], "bad-pattern", problem)
