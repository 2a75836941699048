"""Whether a fixture's database can be made at all, tried once a content before any trial needs it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from seatrial.errors import Diagnostic, InputError
from seatrial.loading.files import read_text, unreadable
from seatrial.loading.located import Spot, problem_at

__all__ = ["database_problems"]

_MAGIC = b"SQLite format 3\x00"
_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def database_problems(path: Path, shown: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a .sql script, with the line of the statement that fails, or with a database file."""
    try:
        status = path.stat()
    except OSError as error:
        return (unreadable(error, shown),)
    return _problems(path, shown, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _problems(path: Path, shown: str, _changed: int, _size: int) -> tuple[Diagnostic, ...]:
    try:
        with path.open("rb") as file:
            is_database = file.read(len(_MAGIC)) == _MAGIC or path.suffix.lower() in _SUFFIXES
        problem = _with_file(path, shown) if is_database else _with_script(read_text(path, shown), shown)
    except OSError as error:
        problem = unreadable(error, shown)
    except InputError as error:
        return error.diagnostics
    return () if problem is None else (problem,)


def _with_file(path: Path, shown: str) -> Diagnostic | None:
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as handle:
            handle.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error as error:
        return problem_at(Spot(shown), "bad-database", f"this is no SQLite database that can be read: {error}")
    return None


def _with_script(script: str, shown: str) -> Diagnostic | None:
    try:
        with closing(sqlite3.connect(":memory:")) as handle:
            handle.executescript(script)
    except (sqlite3.Error, ValueError) as error:
        line, message = _first_failing(script) or (None, str(error))
        return problem_at(Spot(shown, line), "bad-sql", f"this statement does not execute: {message}")
    return None


def _first_failing(script: str) -> tuple[int, str] | None:
    """(its line, what SQLite says) of the first statement that fails on its own; None when it takes the whole."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as handle:
        for line, statement in _statements(script):
            try:
                handle.executescript(statement)
            except (sqlite3.Error, ValueError) as error:
                return line, str(error)
    return None


def _statements(script: str) -> Iterator[tuple[int, str]]:
    """(line on which it begins, text) of every statement; a `;` in a text, comment or trigger ends none."""
    statement, line, at = "", 1, 1
    *parts, last = script.split(";")
    for part in parts:
        statement += part + ";"
        at += part.count("\n")
        if sqlite3.complete_statement(statement):
            yield line + _blank_lines(statement), statement
            statement, line = "", at
    rest = statement + last
    if rest.strip():
        yield line + _blank_lines(rest), rest


def _blank_lines(statement: str) -> int:
    """Lines before the first word of a statement."""
    return statement[: len(statement) - len(statement.lstrip())].count("\n")
