"""`seatrial.yaml` as it is written, with what goes over it: environment variables, then `--set`.

`--set key=value` names a key with dots (`prices."gpt-4.1".input=2`, in quotes where a name has dots itself) and gives a
YAML value, which replaces what was there.

Secrets, to be masked wherever something is written: the values of variables read through `${VAR}`, of `.env`, and of
environment variables whose names hold KEY, TOKEN, SECRET or PASSWORD. Not masked are values of fewer than six
characters, and values read only by `build_id` or as an agent's target unless their name says secret: those are names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from seatrial.errors import Diagnostic, InputError
from seatrial.loading.files import is_there, read_text
from seatrial.loading.from_environment import SETTINGS
from seatrial.loading.located import Map, Spot, problem_at, shown, without_echoes
from seatrial.loading.project_folder import PROJECT_FILE
from seatrial.loading.variables import Variables, is_refused_number, names_a_secret, read_env_file
from seatrial.loading.yaml import read_yaml

__all__ = ["Written", "input_error", "masked", "read_project"]

_SHORTEST_SECRET = 6
_KEY_PART = re.compile(r'"([^"]*)"|([^."]+)')
_TARGETS = re.compile(r"build_id|agent(\.target)?|builds\.[^.]+(\.target)?")


@dataclass
class Written:
    """`seatrial.yaml` with everything that goes over it, before validation."""

    root: Path
    values: Map
    secrets: dict[str, str]
    problems: list[Diagnostic]
    variables: frozenset[str]
    """Names of the variables that gave a value."""


def read_project(root: Path, overrides: Sequence[str], environ: Mapping[str, str]) -> Written:
    """What a project says; what cannot be read is among its `problems`."""
    problems: list[Diagnostic] = []
    env_file = _attempt(lambda: read_env_file(root / ".env"), problems) or {}
    variables = Variables({**env_file, **environ}, problems)
    written = _attempt(lambda: _read_file(root, problems), problems)
    values = variables.filled(written or Map(Spot(PROJECT_FILE)))
    for name, key in SETTINGS.items():
        if environ.get(name):
            values = _assigned(values, key.split("."), environ[name], Spot(f"environment variable {name}"), problems)
    for override in overrides:
        values = _overridden(values, override, problems)
    return Written(root, values, _secrets(variables.read, env_file, environ), problems, frozenset(variables.read))


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


def input_error(problems: list[Diagnostic], secrets: Mapping[str, str]) -> InputError:
    """All problems, each once; what a variable gave is masked in them too."""
    return InputError(
        replace(
            problem,
            message=masked(problem.message, secrets),
            path=masked(problem.path, secrets),
            hint=masked(problem.hint, secrets),
        )
        for problem in without_echoes(problems)
    )


def masked(value: Any, secrets: Mapping[str, str]) -> Any:
    """JSON data with `[secret:NAME]` in place of every secret."""
    if isinstance(value, dict):
        return {key: masked(item, secrets) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item, secrets) for item in value]
    if not isinstance(value, str):
        return value
    for name, secret in sorted(secrets.items(), key=lambda item: -len(item[1])):
        value = value.replace(secret, f"[secret:{name}]")
    return value
