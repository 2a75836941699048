"""Every framework that the kit is run with: what the modules `*_framework.py` beside this one hold."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from seatrial.testing.conformance import Framework, Result, check_situation

__all__ = ["all_frameworks", "frameworks_in", "modules", "result_of"]

HERE = Path(__file__).resolve().parent


def modules() -> list[str]:
    """Names of the modules, without loading any: frameworks take seconds to load."""
    return sorted(path.stem for path in HERE.glob("*_framework.py"))


@cache
def frameworks_in(name: str) -> tuple[Framework, ...]:
    """What a module offers: its `FRAMEWORKS` or `FRAMEWORK`, else every class of its own that is one."""
    module = importlib.import_module(f"conformance.{name}")
    named = getattr(module, "FRAMEWORKS", None) or getattr(module, "FRAMEWORK", None)
    offered = named if isinstance(named, (list, tuple)) else [named] if named is not None else _classes(module)
    found = tuple(one() if inspect.isclass(one) else one for one in offered)
    if not found:
        raise AssertionError(f"{name}.py has no framework: let FRAMEWORKS name them")
    return found


def _classes(module: ModuleType) -> list[Any]:
    own = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    return [value for value in own if inspect.isclass(value) and hasattr(value, "kind") and hasattr(value, "build")]


def all_frameworks() -> list[Framework]:
    """All of them, in the order of their modules."""
    return [framework for name in modules() for framework in frameworks_in(name)]


@cache
def result_of(framework: Framework, situation: str) -> Result:
    """What the kit finds, once in a session."""
    return check_situation(framework, situation)
