"""`${VAR}` and `${VAR:-default}` in `seatrial.yaml`, with the `.env` file beside it.

- A variable comes from the environment, else from `.env`. One that is in neither and has no default is an error.
- The default counts where the variable is missing or empty; `$${VAR}` stands for the text `${VAR}` itself.
- A value that is nothing but one variable is read as YAML reads a plain scalar, so `concurrency: ${N:-10}` is a
  number; where text is wanted it stays text. If it comes out empty, the key counts as not written.
- `.env`: `NAME=value` lines, `export` and comments allowed, values bare or in single or double quotes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from seatrial.core.ids import readable
from seatrial.errors import Diagnostic, InputError
from seatrial.loading.files import is_there, read_text
from seatrial.loading.located import NOWHERE, Map, Seq, Spot, problem_at
from seatrial.loading.yaml import NumberProblem, plain_scalar

__all__ = ["Variables", "is_refused_number", "names_a_secret", "read_env_file", "typed"]

_VARIABLE = re.compile(r"\$(\$?)\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_LOOKS_LIKE_ONE = re.compile(r"(?<!\$)\$\{[^}]*\}?")
_LINE = re.compile(r"(?:export\s+)?([A-Za-z_][A-Za-z0-9_.]*)\s*=\s*(.*)", re.DOTALL)
_QUOTED = re.compile(r"""(?:"((?:[^"\\]|\\.)*)"|'([^']*)')\s*(?:#.*)?""")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_ABSENT = object()


def names_a_secret(name: str) -> bool:
    """Whether a variable's name says that its value is a secret."""
    return _SECRET_NAME.search(name) is not None


def typed(text: str) -> Any:
    """`text` as a plain YAML scalar; as text where YAML has no clear answer."""
    return text if is_refused_number(text) else plain_scalar(text)


def is_refused_number(text: str) -> bool:
    """Whether YAML would refuse `text` as a number, so that in a variable or flag it is taken as text."""
    try:
        plain_scalar(text)
    except NumberProblem:
        return True
    return False


def read_env_file(path: Path, shown: str = ".env") -> dict[str, str]:
    """The variables of an env file; none when there is no file. Raises InputError with every bad line."""
    if not is_there(path, shown):
        return {}
    values: dict[str, str] = {}
    problems: list[Diagnostic] = []
    for number, line in enumerate(read_text(path, shown).splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _LINE.fullmatch(text)
        value = None if match is None else _env_value(match[2])
        if match is None or value is None:
            problems.append(Diagnostic("env-file", "a line is NAME=value, with quotes closed", shown, number))
        else:
            values[match[1]] = value
    if problems:
        raise InputError(problems)
    return values


def _env_value(text: str) -> str | None:
    if not text.startswith(('"', "'")):
        return re.split(r"\s#", text, maxsplit=1)[0].strip()
    match = _QUOTED.fullmatch(text)
    if match is None:
        return None
    if match[1] is None:
        return match[2]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), match[1])


@dataclass
class Variables:
    """Fills variables in and notes which were read where."""

    values: Mapping[str, str]
    problems: list[Diagnostic] = field(default_factory=list)
    read: dict[str, set[str]] = field(default_factory=dict)
    """Variables that gave a value, each with the dotted keys that read it."""

    def filled(self, value: Any, key: str = "", at: Spot = NOWHERE) -> Any:
        """`value` with every variable in its texts replaced."""
        if isinstance(value, Map):
            return self._mapping(value, key)
        if isinstance(value, Seq):
            sequence = Seq(value.at)
            for item, spot in zip(value, value.values_at, strict=True):
                self._put(item, key, spot, lambda new, new_at, to=sequence: to.put(new, new_at))
            return sequence
        return value

    def _mapping(self, value: Map, key: str) -> Map:
        mapping = Map(value.at)
        for name, item, key_at, spot in value.entries():
            below = f"{key}.{name}" if key else name

            def put(new: Any, new_at: Spot, name: str = name, key_at: Spot = key_at) -> None:
                mapping.put(name, new, key_at, new_at)

            self._put(item, below, spot, put)
        return mapping

    def _put(self, item: Any, key: str, spot: Spot, put: Any) -> None:
        if not isinstance(item, str):
            put(self.filled(item, key, spot), spot)
            return
        new, new_at = self._text(item, key, spot)
        if new is not _ABSENT:
            put(new, new_at)

    def _text(self, text: str, key: str, spot: Spot) -> tuple[Any, Spot]:
        if "${" not in text:
            return text, spot
        names: list[str] = []
        result = _VARIABLE.sub(lambda match: self._value(match, key, spot, names), text)
        broken = _LOOKS_LIKE_ONE.search(_VARIABLE.sub("", text))
        if broken is not None:
            hint = "write ${NAME} or ${NAME:-default}"
            message = f"{readable(broken.group())!r} is no variable"
            self.problems.append(problem_at(spot, "unknown-variable", message, hint))
        whole = _VARIABLE.fullmatch(text)
        if whole is None or whole[1]:
            return result, spot
        if not result:
            return _ABSENT, spot
        return typed(result), spot._replace(written=result, variable=f"${{{whole[2]}}}")

    def _value(self, match: re.Match[str], key: str, spot: Spot, names: list[str]) -> str:
        escaped, name, default = match.groups()
        if escaped:
            return match.group()[1:]
        value = self.values.get(name, "")
        if value:
            self.read.setdefault(name, set()).add(key)
            return value
        if default is None and name not in self.values:
            hint = f"set it, put it into .env, or write ${{{name}:-default}}"
            self.problems.append(problem_at(spot, "unknown-variable", f"the variable {name} is not set", hint))
        return default or ""
