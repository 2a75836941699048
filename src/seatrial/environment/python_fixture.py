"""Fixtures in Python: a generator function that sets the trial's environment up, yields, and cleans up."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType
from typing import Any

from seatrial.environment.failure import FixtureError, fixture_part
from seatrial.errors import did_you_mean

__all__ = ["PythonFixture", "fixture_function"]

_IMPORTING = threading.RLock()


def fixture_function(location: str, folder: str = "") -> Callable[..., Any]:
    """The function at `path/to/file.py:NAME`, the path relative to `folder`.

    Raises FixtureError when there is none, or the file raises while it is read.
    """
    path, _, name = location.rpartition(":")
    file = Path(folder, path).resolve()
    with fixture_part(f"fixture {file.name}"):
        function = getattr(_module(file, file.stat().st_mtime_ns), name, None)
    if not callable(function):
        names = [key for key, value in vars(_module(file, file.stat().st_mtime_ns)).items() if callable(value)]
        hint = did_you_mean(name, names)
        raise FixtureError(f"fixture {file.name}: it has no function {name!r}" + (f"; {hint}" if hint else ""))
    return function  # type: ignore[no-any-return]  # checked above


def _module(file: Path, changed: int) -> ModuleType:
    with _IMPORTING:  # many trials ask at once, the file runs once
        return _imported(file, changed)


@functools.lru_cache(maxsize=256)
def _imported(file: Path, _changed: int) -> ModuleType:
    name = "seatrial_fixture_" + hashlib.sha256(str(file).encode("utf-8", "surrogatepass")).hexdigest()[:16]
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise FixtureError("it is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # so that dataclasses and pickles of the fixture's own classes work
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class PythonFixture:
    """One run of a fixture function: up to its `yield`, and from there to its end."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = getattr(function, "__name__", "fixture")
        self._running: Generator[Any, Any, Any] | None = None

    def set_up(self, environment: object) -> None:
        """Run it up to its `yield`. A function that does not yield has no cleaning up to do."""
        with fixture_part(f"fixture {self._name}"):
            given: Any = self._function(environment)
            if inspect.isasyncgen(given) or inspect.isawaitable(given):
                raise FixtureError("a fixture is a plain generator function, not an async one")
            if inspect.isgenerator(given):
                if not _advance(given):
                    raise FixtureError("it ended without `yield`")
                self._running = given

    def clean_up(self) -> None:
        """Run the rest, once."""
        running, self._running = self._running, None
        if running is None:
            return
        with fixture_part(f"fixture {self._name}, after its yield"):
            if _advance(running):
                running.close()
                raise FixtureError("it yielded a second time")


def _advance(running: Generator[Any, Any, Any]) -> bool:
    """Go on to the next `yield`; whether there was one."""
    try:
        next(running)
    except StopIteration:
        return False
    return True
