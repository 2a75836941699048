"""`seatrial.yaml` -> project, with every value's origin.

The project folder is the nearest one, going up from the working folder, that holds `seatrial.yaml`; without one, the
working folder itself when it holds `cases/`. Over the file come environment variables, then `--set`:

| variable | sets |
| --- | --- |
| `SEATRIAL_AGENT`, `SEATRIAL_BUILD_ID`, `SEATRIAL_CONCURRENCY`, `SEATRIAL_ISOLATION`, `SEATRIAL_HIDDEN_CASES` | `agent`, `build_id`, `concurrency`, `isolation`, `hidden_cases` |
| `SEATRIAL_HISTORY_URL`, `SEATRIAL_JUDGE_MODEL`, `SEATRIAL_JUDGE_BASE_URL` | `history.url`, `judge.model`, `judge.base_url` |
| `SEATRIAL_TRIALS`, `SEATRIAL_TIMEOUT_S`, `SEATRIAL_SEED`, `SEATRIAL_TOOLS` | the options of a run (`options_from_environment`), over every case |

`--set key=value` names a key with dots (`prices."gpt-4.1".input=2`, in quotes where a name has dots itself) and gives a
YAML value, which replaces what was there. An empty variable counts as not set. Any other variable `SEATRIAL_...` is
warned about, unless `seatrial.yaml` reads it itself.

Secrets, to be masked wherever something is written: the values of variables read through `${VAR}`, of `.env`, and of
environment variables whose names hold KEY, TOKEN, SECRET or PASSWORD. Not masked are values of fewer than six
characters, and values read only by `build_id` or as an agent's target unless their name says secret: those are names.
"""  # noqa: E501  a table row is one line

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from seatrial.core.case import Case
from seatrial.core.project import AgentSpec, Project, RunOptions, SuiteSpec
from seatrial.core.wording import wanted
from seatrial.errors import Diagnostic, InputError, UsageError, nearest
from seatrial.loading.files import is_there, read_text
from seatrial.loading.located import NOWHERE, Map, Seq, Spot, plain, problem_at, shown, spot_at, without_echoes
from seatrial.loading.rules_of_cases import problem_with_pattern
from seatrial.loading.short_form import SHORT_KEYS, long_form
from seatrial.loading.validation import problems_in
from seatrial.loading.variables import Variables, is_refused_number, names_a_secret, read_env_file, typed
from seatrial.loading.yaml import read_yaml

__all__ = [
    "PROJECT_FILE",
    "Setting",
    "agent_spec",
    "explain",
    "find_root",
    "load_project",
    "options_from_environment",
    "places",
    "unknown_variables",
]

PROJECT_FILE = "seatrial.yaml"
_ENVIRONMENT = {
    "SEATRIAL_AGENT": "agent",
    "SEATRIAL_BUILD_ID": "build_id",
    "SEATRIAL_CONCURRENCY": "concurrency",
    "SEATRIAL_HIDDEN_CASES": "hidden_cases",
    "SEATRIAL_HISTORY_URL": "history.url",
    "SEATRIAL_ISOLATION": "isolation",
    "SEATRIAL_JUDGE_BASE_URL": "judge.base_url",
    "SEATRIAL_JUDGE_MODEL": "judge.model",
}
_RUN_ENVIRONMENT = {
    "SEATRIAL_SEED": "seed",
    "SEATRIAL_TIMEOUT_S": "timeout_s",
    "SEATRIAL_TOOLS": "tools",
    "SEATRIAL_TRIALS": "trials",
}
_PREFIX = "SEATRIAL_"
_OVERRULED = {
    "timeout_s": re.compile(r"(defaults|suites\..+)\.(limits\.)?timeout_s"),
    "tools": re.compile(r"(agent|builds\..+)\.tools"),
    "trials": re.compile(r"(defaults|suites\..+)\.(thresholds\.)?trials"),
}
"""The settings over which an option of a run goes."""
_BUILT_IN: dict[str, Any] = {
    "agent.tools": "stand_in",
    "build_id": "dev",
    "concurrency": 10,
    "defaults.limits.steps": 50,
    "defaults.limits.timeout_s": 60,
    "defaults.risk": "medium",
    "defaults.thresholds.trials": 1,
    "history.max_age_days": 90,
    "history.url": "sqlite:///.seatrial/history.db",
    "isolation": "thread",
    "retries.attempts": 1,
}
_SHORTEST_SECRET = 6
_KEY_PART = re.compile(r'"([^"]*)"|([^."]+)')
_IMPORT_PATH = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_URL = re.compile(r"[a-z][a-z0-9+.-]*://\S+", re.IGNORECASE)
_TARGETS = re.compile(r"build_id|agent(\.target)?|builds\.[^.]+(\.target)?")


@dataclass(frozen=True)
class Setting:
    """One value in force, and who said so."""

    key: str
    """Dotted."""
    value: Any
    """JSON data; secrets masked."""
    origin: str
    """`built-in`, `seatrial.yaml:4:3`, `environment variable NAME`, `--set key=value`."""


@dataclass
class _Read:
    """`seatrial.yaml` with everything that goes over it, before validation."""

    root: Path
    values: Map
    secrets: dict[str, str]
    problems: list[Diagnostic]
    variables: frozenset[str]
    """Names of the variables that gave a value."""


# --- finding -------------------------------------------------------------------------------------------------------


def find_root(folder: Path | None = None, *, start: Path | None = None) -> Path:
    """The project folder: `folder` itself when given, else found upward from `start` (the working folder).

    Raises UsageError when there is none, or a folder cannot be looked into.
    """
    if folder is not None:
        return _given(folder)
    begin = (start or Path.cwd()).resolve()
    for candidate in (begin, *begin.parents):
        if is_there(candidate / PROJECT_FILE):
            return candidate
    if (begin / "cases").is_dir():
        return begin
    misnamed = [path / "seatrial.yml" for path in (begin, *begin.parents) if (path / "seatrial.yml").is_file()]
    hint = f"; {misnamed[0]} has to be named {PROJECT_FILE}" if misnamed else "; `seatrial init` makes a project"
    raise UsageError(f"there is no {PROJECT_FILE} in {begin} or above it, and no cases/ in it{hint}")


def _given(folder: Path) -> Path:
    if not folder.is_dir():
        raise UsageError(f"the project folder {folder} does not exist")
    if not (is_there(folder / PROJECT_FILE) or is_there(folder / "cases")):
        raise UsageError(f"{folder} is no project: it holds neither {PROJECT_FILE} nor cases/")
    return folder.resolve()


# --- loading -------------------------------------------------------------------------------------------------------


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
    read = _read(find_root(folder, start=start), overrides, os.environ if environ is None else environ)
    project, problems = _project(read)
    if problems or project is None:
        raise _input_error(problems, read.secrets)
    return project


def agent_spec(text: str) -> AgentSpec:
    """What `--agent` names: `module:object` or a URL. Raises UsageError."""
    problem = _problem_with_target(text)
    if problem is not None:
        raise UsageError(problem)
    return AgentSpec(target=text)


def options_from_environment(environ: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Options of a run that environment variables give; options on the command line go over them.

    Raises UsageError for a value that an option does not take.
    """
    environ = os.environ if environ is None else environ
    given = {key: typed(environ[name]) for name, key in _RUN_ENVIRONMENT.items() if environ.get(name)}
    try:
        RunOptions.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = str(first["loc"][0])
        name = next(name for name, each in _RUN_ENVIRONMENT.items() if each == key)
        should = wanted(first["type"], first.get("ctx", {}))
        message = f"the environment variable {name} is {shown(given[key])}; it should be {should}"
        raise UsageError(message) from error
    return given


def _input_error(problems: list[Diagnostic], secrets: Mapping[str, str]) -> InputError:
    """All problems, each once; what a variable gave is masked in them too."""
    return InputError(
        replace(
            problem,
            message=_masked(problem.message, secrets),
            path=_masked(problem.path, secrets),
            hint=_masked(problem.hint, secrets),
        )
        for problem in without_echoes(problems)
    )


def _read(root: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> _Read:
    problems: list[Diagnostic] = []
    env_file = _attempt(lambda: read_env_file(root / ".env"), problems) or {}
    variables = Variables({**env_file, **environ}, problems)
    written = _attempt(lambda: _read_file(root, problems), problems)
    values = variables.filled(written or Map(Spot(PROJECT_FILE)))
    for name, key in _ENVIRONMENT.items():
        if environ.get(name):
            values = _assigned(values, key.split("."), environ[name], Spot(f"environment variable {name}"), problems)
    for override in overrides:
        values = _overridden(values, override, problems)
    return _Read(root, values, _secrets(variables.read, env_file, environ), problems, frozenset(variables.read))


def _attempt(read: Any, problems: list[Diagnostic]) -> Any:
    try:
        return read()
    except InputError as error:
        problems.extend(error.diagnostics)
        return None


def _read_file(root: Path, problems: list[Diagnostic]) -> Map | None:
    path = root / PROJECT_FILE
    if not is_there(path, PROJECT_FILE):
        return None
    document = read_yaml(read_text(path, PROJECT_FILE), PROJECT_FILE, problems)
    if document is None or isinstance(document, Map):
        return document
    raise InputError(
        problem_at(Spot(PROJECT_FILE, 1, 1), "wrong-value", f"a project is a mapping, not {shown(document)}")
    )


def _overridden(values: Map, override: str, problems: list[Diagnostic]) -> Map:
    key, equals, text = override.partition("=")
    parts = [quoted or bare for quoted, bare in _KEY_PART.findall(key)]
    if not (equals and parts):
        problems.append(Diagnostic("usage", f"--set takes key=value, not {override!r}"))
        return values
    return _assigned(values, parts, text, Spot(f"--set {override}"), problems)


def _assigned(values: Map, parts: list[str], text: str, at: Spot, problems: list[Diagnostic]) -> Map:
    """`values` with a YAML text as the value at a key."""
    try:
        value = text if is_refused_number(text) else read_yaml(text, at.path)
    except InputError as error:
        problems.extend(error.diagnostics)
        return values
    spot = at._replace(written=text, variable=at.path)
    return _set_at(values, parts, value, spot, problems)


def _set_at(values: Map, parts: list[str], value: Any, at: Spot, problems: list[Diagnostic]) -> Map:
    first, *rest = parts
    if not rest:
        return values.having(first, value, at, at)
    below = values.get(first, Map(at))
    if isinstance(below, str):  # an agent or build in its short form
        below = Map(values.values_at[first]).having("target", below)
    if not isinstance(below, Map):
        problems.append(problem_at(at, "usage", f"{first!r} is {shown(below)}; set it as a whole"))
        return values
    inner = _set_at(below, rest, value, at, problems)
    return values.having(first, inner, values.keys_at.get(first, at), values.values_at.get(first, at))


def _secrets(read: Mapping[str, set[str]], env_file: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    values = {**env_file, **environ}
    names = {*read, *env_file, *(name for name in environ if names_a_secret(name))}
    return {
        name: values[name]
        for name in sorted(names)
        if len(values[name].strip()) >= _SHORTEST_SECRET and not _is_only_a_name(name, read.get(name, set()))
    }


def _is_only_a_name(name: str, keys: set[str]) -> bool:
    return bool(keys) and not names_a_secret(name) and all(_TARGETS.fullmatch(key) for key in keys)


# --- validating ----------------------------------------------------------------------------------------------------


def _project(read: _Read) -> tuple[Project | None, list[Diagnostic]]:
    problems = list(read.problems)
    values = _normalised(read.values, problems)
    for key in ("root", "secrets"):
        if key in values:
            problems.append(problem_at(values.keys_at[key], "unknown-key", f"unknown key {key!r}"))
            values = values.without(key)
    project = _validated(values, problems)
    if project is not None:
        project = project.model_copy(update={"root": str(read.root), "secrets": read.secrets})
        problems.extend(_pattern_problems(project, values))
    return project, problems


def _validated(values: Map, problems: list[Diagnostic]) -> Project | None:
    try:
        return Project.model_validate(plain(values))
    except ValidationError as error:
        retried = _as_texts(values, error)
        if retried is not None:
            return _validated(retried, problems)
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


# --- explaining ----------------------------------------------------------------------------------------------------


def explain(
    start: Path | None = None,
    *,
    folder: Path | None = None,
    overrides: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
) -> list[Setting]:
    """Every value in force with its origin, by key; secrets masked. Raises as `load_project` does.

    An option of a run that an environment variable gives (`SEATRIAL_TRIALS`) goes over every setting of its kind.
    """
    environ = os.environ if environ is None else environ
    read = _read(find_root(folder, start=start), overrides, environ)
    _, problems = _project(read)
    if problems:
        raise _input_error(problems, read.secrets)
    written = read.values
    defaults = written.get("defaults")
    if isinstance(defaults, Map):
        written = written.having("defaults", long_form(defaults, []))
    settings = {key: Setting(key, value, "built-in") for key, value in _BUILT_IN.items()}
    for key, value, spot in _leaves(written, "", written.at):
        settings[key] = Setting(key, _masked(value, read.secrets), _masked(_origin(spot), read.secrets))
    for setting in _overruling(settings, environ):
        settings[setting.key] = setting
    return [settings[key] for key in sorted(settings)]


def _overruling(settings: Mapping[str, Setting], environ: Mapping[str, str]) -> list[Setting]:
    """What the options of a run that environment variables give put in place of `settings`; a seed has none of its
    own to replace."""
    names = {option: name for name, option in _RUN_ENVIRONMENT.items()}
    found: list[Setting] = []
    for option, value in options_from_environment(environ).items():
        pattern = _OVERRULED.get(option)
        keys = [option] if pattern is None else [key for key in settings if pattern.fullmatch(key)]
        found += [Setting(key, value, f"environment variable {names[option]}") for key in keys]
    return found


def places(folder: Path) -> dict[str, Spot]:
    """Where each value of a project's settings was written, by dotted key; keys that hold mappings are left out.

    Raises UsageError when the folder is no project. Whatever is wrong in it is no matter here.
    """
    read = _read(find_root(folder), (), os.environ)
    return {key: spot for key, _, spot in _leaves(read.values, "", read.values.at)}


def unknown_variables(folder: Path, environ: Mapping[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """A warning for every environment variable `SEATRIAL_...` that nothing reads, with the nearest that is known.

    Raises UsageError when the folder is no project.
    """
    environ = os.environ if environ is None else environ
    known = {*_ENVIRONMENT, *_RUN_ENVIRONMENT}
    read = _read(find_root(folder), (), environ).variables
    unknown = sorted(name for name in environ if name.upper().startswith(_PREFIX) and name not in known | read)
    return tuple(_unknown_variable(name, [each.removeprefix(_PREFIX) for each in known]) for name in unknown)


def _unknown_variable(name: str, known: Sequence[str]) -> Diagnostic:
    message = f"the environment variable {name} is not known and sets nothing"
    close = nearest(name[len(_PREFIX) :], known)
    hint = f"did you mean {_PREFIX}{close}?" if close else ""
    return problem_at(NOWHERE, "unknown-variable", message, hint, "warning")


def _leaves(value: Any, key: str, at: Spot) -> Iterator[tuple[str, Any, Spot]]:
    if not (isinstance(value, Map) and value):
        if key:
            yield key, plain(value), at
        return
    for name, item, _, spot in value.entries():
        part = f'"{name}"' if "." in name else name
        yield from _leaves(item, f"{key}.{part}" if key else part, spot)


def _origin(spot: Spot) -> str:
    if not spot.variable or spot.variable == spot.path:
        return spot.place
    return f"{spot.place}, from {spot.variable}"


def _masked(value: Any, secrets: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [_masked(item, secrets) for item in value]
    if not isinstance(value, str):
        return value
    for name, secret in sorted(secrets.items(), key=lambda item: -len(item[1])):
        value = value.replace(secret, f"[secret:{name}]")
    return value
