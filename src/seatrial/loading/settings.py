"""Every setting in force and who said so: a file, an environment variable, `--set`, or the built-in value.

Any other variable `SEATRIAL_...` is warned about, unless `seatrial.yaml` reads it itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.errors import Diagnostic, nearest
from seatrial.loading.config import validated
from seatrial.loading.from_environment import OPTIONS, PREFIX, SETTINGS, options_from_environment
from seatrial.loading.located import NOWHERE, Map, Spot, plain, problem_at
from seatrial.loading.project_file import input_error, masked, read_project
from seatrial.loading.project_folder import find_root
from seatrial.loading.short_form import long_form

__all__ = ["Setting", "explain", "places", "unknown_variables"]

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


@dataclass(frozen=True)
class Setting:
    """One value in force, and who said so."""

    key: str
    """Dotted."""
    value: Any
    """JSON data; secrets masked."""
    origin: str
    """`built-in`, `seatrial.yaml:4:3`, `environment variable NAME`, `--set key=value`."""


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
    read = read_project(find_root(folder, start=start), overrides, environ)
    _, problems = validated(read)
    if problems:
        raise input_error(problems, read.secrets)
    written = read.values
    defaults = written.get("defaults")
    if isinstance(defaults, Map):
        written = written.having("defaults", long_form(defaults, []))
    settings = {key: Setting(key, value, "built-in") for key, value in _BUILT_IN.items()}
    for key, value, spot in _leaves(written, "", written.at):
        settings[key] = Setting(key, masked(value, read.secrets), masked(_origin(spot), read.secrets))
    for setting in _overruling(settings, environ):
        settings[setting.key] = setting
    return [settings[key] for key in sorted(settings)]


def _overruling(settings: Mapping[str, Setting], environ: Mapping[str, str]) -> list[Setting]:
    """What the options of a run that environment variables give put in place of `settings`; a seed has none of its
    own to replace."""
    names = {option: name for name, option in OPTIONS.items()}
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
    read = read_project(find_root(folder), (), os.environ)
    return {key: spot for key, _, spot in _leaves(read.values, "", read.values.at)}


def unknown_variables(folder: Path, environ: Mapping[str, str] | None = None) -> tuple[Diagnostic, ...]:
    """A warning for every environment variable `SEATRIAL_...` that nothing reads, with the nearest that is known.

    Raises UsageError when the folder is no project.
    """
    environ = os.environ if environ is None else environ
    known = {*SETTINGS, *OPTIONS}
    read = read_project(find_root(folder), (), environ).variables
    unknown = sorted(name for name in environ if name.upper().startswith(PREFIX) and name not in known | read)
    return tuple(_unknown_variable(name, [each.removeprefix(PREFIX) for each in known]) for name in unknown)


def _unknown_variable(name: str, known: Sequence[str]) -> Diagnostic:
    message = f"the environment variable {name} is not known and sets nothing"
    close = nearest(name[len(PREFIX) :], known)
    hint = f"did you mean {PREFIX}{close}?" if close else ""
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
