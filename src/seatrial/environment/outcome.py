"""The outcome: what the harness itself reads of the surroundings after the agent has ended.

Each key has an observer: SQL, a path into the state, a file of the working folder, or a function. In SQL `$input.x`,
`$identity.x` and `$state.x` are bound as parameters wherever they stand outside literals, quoted names and comments;
a path that leads nowhere is NULL, a mapping or list is its JSON text.

A statement gives its default without rows; one value as it is; one row of several columns as a mapping; several rows
as a list of these. A file gives its text, with `json: true` the JSON in it (its text where the agent wrote no JSON).
"""

from __future__ import annotations

import inspect
import json
import re
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from seatrial.core.encoding import dumps, to_json
from seatrial.core.fixture import Observer
from seatrial.core.matching import MISSING, lookup_path
from seatrial.environment.failure import FixtureError, fixture_part
from seatrial.registry import load_object

__all__ = ["Evidence", "bind", "observe"]

_SQL = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | `(?:[^`]|``)*` | \[[^\]]*\] | --[^\n]* | /\*.*?(?:\*/|\Z)
        | \$(?P<path>\w+(?:\.\w+|\[-?\d+\])*)""",
    re.VERBOSE | re.DOTALL,
)
_PLAIN = (str, int, float, bytes, type(None))


@dataclass(frozen=True)
class Evidence:
    """What observers read."""

    environment: Any
    """The trial's environment, given to functions."""
    scope: Mapping[str, Any]
    """What `$` paths in SQL start from: input, identity, state."""
    database: Callable[[], sqlite3.Connection]
    """Opens the trial's database for reading."""
    workdir: Path | None
    """None: nobody made one."""


def observe(observers: Any, evidence: Evidence) -> dict[str, Any]:
    """The outcome by `observers`: a callable that gives all of it, or a mapping of observers by key.

    Raises FixtureError when an observer does, naming its key.
    """
    if callable(observers):
        return _whole(observers, evidence)
    return {key: _observed(key, observer, evidence) for key, observer in observers.items()}


def _whole(function: Callable[..., Any], evidence: Evidence) -> dict[str, Any]:
    with fixture_part("outcome"):
        found = _called(function, evidence)
        if not isinstance(found, Mapping):
            raise FixtureError(f"the function gave a {type(found).__name__}, not a mapping")
    outcome: dict[str, Any] = to_json(dict(found))
    return outcome


def _observed(key: str, observer: Any, evidence: Evidence) -> Any:
    with fixture_part(f"outcome {key}"):
        return to_json(_value(observer, evidence))


def _called(function: Callable[..., Any], evidence: Evidence) -> Any:
    result = function(evidence.environment) if _takes_argument(function) else function()
    if inspect.iscoroutine(result):
        result.close()
        raise TypeError("an observer is a plain function, not an async one")
    return result


def _takes_argument(function: Callable[..., Any]) -> bool:
    try:
        return bool(inspect.signature(function).parameters)
    except ValueError:  # some builtins tell nothing
        return True


def _value(observer: Any, evidence: Evidence) -> Any:
    if callable(observer):
        return _called(observer, evidence)
    spec = observer if isinstance(observer, Observer) else Observer.model_validate(observer)
    if spec.sql is not None:
        return _by_sql(spec.sql, spec.default, evidence)
    if spec.state is not None:
        found = lookup_path(evidence.scope["state"], spec.state)
        return spec.default if found is MISSING else found
    if spec.file is not None:
        return _by_file(spec, evidence.workdir)
    return _called(load_object(spec.function or ""), evidence)


def _by_sql(sql: str, default: Any, evidence: Evidence) -> Any:
    statement, parameters = bind(sql, evidence.scope)
    handle = evidence.database()
    try:
        cursor = handle.execute(statement, parameters)
        columns = [column[0] for column in cursor.description or ()]
        rows = [row[0] if len(columns) == 1 else dict(zip(columns, row, strict=True)) for row in cursor]
    finally:
        handle.close()
    if not rows:
        return default
    return rows[0] if len(rows) == 1 else rows


def bind(sql: str, scope: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The statement with each `$` path replaced by a named parameter, and the parameters' values.

    Raises ValueError for a path that starts from something unknown.
    """
    parameters: dict[str, Any] = {}

    def replace(match: re.Match[str]) -> str:
        path = match["path"]
        if path is None:
            return match[0]
        name = f"p{len(parameters)}"
        parameters[name] = _parameter(path, scope)
        return f":{name}"

    return _SQL.sub(replace, sql), parameters


def _parameter(path: str, scope: Mapping[str, Any]) -> Any:
    root = re.match(r"\w+", path)
    if root is None or root[0] not in scope:
        raise ValueError(f"${path} starts from none of " + ", ".join(f"${name}" for name in scope))
    value = lookup_path(scope[root[0]], path[root.end() :].removeprefix("."))
    if value is MISSING:
        return None
    return value if isinstance(value, _PLAIN) else dumps(to_json(value))


def _by_file(spec: Observer, workdir: Path | None) -> Any:
    if workdir is None:
        return spec.default
    file = (workdir / (spec.file or "")).resolve()
    if not file.is_relative_to(workdir.resolve()):
        raise ValueError(f"{spec.file} leads out of the working folder")
    if not file.exists():
        return spec.default
    content = file.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content
    if not spec.json_file:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text
